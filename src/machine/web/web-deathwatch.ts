import { Arena } from '../../arena/memory/arena.ts'
import type { Burial, Undertaking } from './webmachine.ts'
import type { HubMessage } from './webhub.ts'

/**
 * The Web Worker that sees the CPUs of a page go (webmachine.ts): it waits for each with a promise, so its
 * event loop always turns. For the same reason what threads tell all others goes through here (webhub.ts).
 */
const waiting = new Map<Burial, Undertaking>()
const lines = new Set<MessagePort>()

addEventListener('message', ({ data }: MessageEvent<Undertaking | Burial | HubMessage>) => {
  // Also where it was not yet alive: it may have the lock, and have died before it could say so.
  if (typeof data === 'number') attend(data)
  else if ('heard' in data) tell(data, null)
  else {
    waiting.set(data.start, data)
    lines.add(data.cpu)
    data.cpu.onmessage = ({ data: message }: MessageEvent<Burial | HubMessage>) => {
      if (typeof message === 'number') attend(message)
      else {
        postMessage(message)
        tell(message, data.cpu)
      }
    }
  }
})

function tell(message: HubMessage, from: MessagePort | null): void {
  for (const line of lines) if (line !== from) line.postMessage(message)
}

/** Once: whoever asks first. */
function attend(start: Burial): void {
  const undertaking = waiting.get(start)
  if (undertaking === undefined) return
  const { buffer, gone, lock, cpu } = undertaking
  waiting.delete(start)
  void navigator.locks.request(lock, () => {
    Atomics.store(Arena.attach(buffer).i32, gone, start)
    postMessage(start satisfies Burial)
    cpu.close()
    lines.delete(cpu)
  })
}
