import { Arena } from '../arena/arena.ts'
import type { Burial, Undertaking } from './web.ts'

/** The Web Worker that sees the CPUs of a page go (web.ts): it waits for each with a promise, so its event loop always turns. */
const undertakings = new Map<Burial, Undertaking>()

addEventListener('message', ({ data }: MessageEvent<Undertaking | Burial>) => {
  if (typeof data === 'number') {
    // Also where it was not yet alive: it may have the lock, and have died before it could say so.
    attend(data)
    return
  }
  undertakings.set(data.start, data)
  data.cpu.onmessage = () => attend(data.start)
})

/** Once: whoever asks first. */
function attend(start: Burial): void {
  const undertaking = undertakings.get(start)
  if (undertaking === undefined) return
  const { buffer, gone, lock, cpu } = undertaking
  undertakings.delete(start)
  cpu.close()
  void navigator.locks.request(lock, () => {
    Atomics.store(Arena.attach(buffer).i32, gone, start)
    postMessage(start satisfies Burial)
  })
}
