import { Counters, deadlockWord } from '../boot/counters.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * A circle of waits is found by the thread that closes it, and the program is told on the thread that booted
 * the kernel.
 *
 *   the finder                                the booting thread, now and then
 *   ----------                                --------------------------------
 *   its word is 0
 *   (A) its word = the message
 *   (B) deadlocks + 1                         (C) deadlocks has changed: takes what it finds in the words
 *
 * One that finds its word taken leaves it at that: the program is about to hear of a deadlock.
 */
export interface Deadlock {
  /** Who waits for what, who holds it, and where they are. */
  readonly message: string
}

const NO_ROOM = 'deadlock: the arena has no room for who waits for whom'

/** From any thread of the kernel. */
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

/** On the booting thread, when the count has changed: (C). */
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

/** What always fits says less. */
function encodeMessage({ codec }: KernelView, message: string): number {
  try {
    return codec.encode(message, 'message')
  } catch {
    return codec.encode(0, 'message')
  }
}
