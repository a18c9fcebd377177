import type { KernelThread } from '../arena/thread.ts'
import type { FutexContext } from '../futex/context.ts'
import type { Place } from './place.ts'

/**
 * The lock of an object whose every change needs one: word 0 of its place. Held for a few dozen instructions, never across a wait.
 *
 *   0                [1] free
 *   tag              [2] held by the thread whose tag that is
 *   tag | PARKED     [3] held, and a thread may sleep at the word: unlocking notifies
 */
const PARKED = 0x100
const pause: () => void = (Atomics as { pause?: () => void }).pause ?? (() => undefined)

export function lockPlace({ thread }: FutexContext, { i32, at }: Place): void {
  if (Atomics.compareExchange(i32, at, 0, thread.ownerTag) !== 0) {
    lockContended(i32, at, thread)
  }
}

export function unlockPlace({ thread }: FutexContext, { i32, at }: Place): void {
  if (Atomics.compareExchange(i32, at, thread.ownerTag, 0) === thread.ownerTag) return
  Atomics.store(i32, at, 0)
  Atomics.notify(i32, at, 1)
}

function lockContended(i32: Int32Array, at: number, thread: KernelThread): void {
  const { ownerTag: tag } = thread
  // One that may not block looks on without counting: a turn that changes nothing is a turn like the last.
  for (let spin = 0; spin < thread.spins || !thread.mayBlock; spin += thread.mayBlock ? 1 : 0) {
    if (Atomics.load(i32, at) === 0 && Atomics.compareExchange(i32, at, 0, tag) === 0) return
    pause()
  }
  for (;;) {
    const seen = Atomics.load(i32, at)
    // As [3]: others may sleep beside it.
    if (seen === 0) {
      if (Atomics.compareExchange(i32, at, 0, tag | PARKED) === 0) return
    } else if ((seen & PARKED) !== 0 || Atomics.compareExchange(i32, at, seen, seen | PARKED) === seen) {
      Atomics.wait(i32, at, seen | PARKED)
    }
  }
}
