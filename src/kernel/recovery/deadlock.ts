import { Counters, deadlockWord } from '../boot/counters.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * A deadlock is found by the thread that closes the cycle, and reported by the booting thread.
 *
 *   finder                                    booting thread, polling
 *   ------                                    -----------------------
 *   its word is 0
 *   (A) its word = the message
 *   (B) deadlocks + 1                         (C) deadlocks has changed: takes the messages from the words
 *
 * A finder whose word is in use stores nothing: a deadlock is about to be reported anyway.
 */
export interface Deadlock {
  /** The waiters, their locks, the holders, and their stacks. */
  readonly message: string
}

const NO_ROOM = 'deadlock: the arena has no room for its description; raise the option `heap` at boot'

/** Called on any thread of the kernel. */
export function reportDeadlock(view: KernelView, message: string): void {
  if (view.booter !== null) {
    view.booter.reportDeadlock({ message })
    return
  }
  const { i32, codec } = view
  const at = deadlockWord(view, view.thread.id)
  if (Atomics.load(i32, at) !== 0) return
  codec.put(at, encodeMessage(view, message)) // (A)
  Atomics.add(i32, view.plan.counters.start + Counters.deadlocks, 1) // (B)
}

/** (C): called on the booting thread, when the count has changed. */
export function takeDeadlocks(view: KernelView): Deadlock[] {
  const { i32, codec } = view
  const found: Deadlock[] = []
  for (let thread = 0; thread <= view.plan.sizes.cpus; thread++) {
    const at = deadlockWord(view, thread)
    if (Atomics.load(i32, at) === 0) continue
    const payload = codec.take(at)
    const message = codec.decode(payload)
    found.push({ message: typeof message === 'string' ? message : NO_ROOM })
    codec.free(payload)
  }
  return found
}

/** Falls back to a message that always fits. */
function encodeMessage({ codec }: KernelView, message: string): number {
  try {
    return codec.encode(message, 'message')
  } catch {
    return codec.encode(0, 'message')
  }
}
