import { Arena } from '../../arena/memory/arena.ts'
import type { StartNumber, DeathWatch } from './webmachine.ts'
import type { HubMessage } from './webhub.ts'

/**
 * The death watcher: the Web Worker that detects the end of a page's CPUs (webmachine.ts). It waits for each
 * with a promise, so its event loop always turns. For the same reason broadcasts between threads go through
 * it (webhub.ts).
 */
const waiting = new Map<StartNumber, DeathWatch>()
const lines = new Set<MessagePort>()

addEventListener('message', ({ data }: MessageEvent<DeathWatch | StartNumber | HubMessage>) => {
  // The CPU may have the lock, and have died before it could say so.
  if (typeof data === 'number') awaitEnd(data)
  else if ('heard' in data) broadcast(data, null)
  else {
    waiting.set(data.start, data)
    lines.add(data.cpu)
    data.cpu.onmessage = ({ data: message }: MessageEvent<StartNumber | HubMessage>) => {
      if (typeof message === 'number') awaitEnd(message)
      else {
        postMessage(message)
        broadcast(message, data.cpu)
      }
    }
  }
})

function broadcast(message: HubMessage, from: MessagePort | null): void {
  for (const line of lines) if (line !== from) line.postMessage(message)
}

/** Waits for the lock of the CPU. Only the first call for a start has an effect. */
function awaitEnd(start: StartNumber): void {
  const watch = waiting.get(start)
  if (watch === undefined) return
  const { buffer, gone, lock, cpu } = watch
  waiting.delete(start)
  void navigator.locks.request(lock, () => {
    Atomics.store(Arena.attach(buffer).i32, gone, start)
    postMessage(start satisfies StartNumber)
    cpu.close()
    lines.delete(cpu)
  })
}
