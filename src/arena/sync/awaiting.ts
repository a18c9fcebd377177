import { pause } from './pause.ts'
import { STUCK_MS } from './spinlock.ts'
import type { KernelThread } from './thread.ts'

/**
 * The one way to wait for another thread that takes no lock of the kernel: a turn of a wait at a word that
 * still says `seen`, which thread `owner` is about to change (-1: it is not known which thread). The caller
 * looks again after each turn, for as long as it takes.
 *
 *   1  spins for about as long as a lock is held
 *   2  parks, for at most STUCK_MS: the thread that changes the word may have lost its core to this one, and need not notify
 *   3  asks whether the owner is alive, where this thread can see deaths
 *
 * True: the owner is dead, and its part is the caller's to do: a loop that only looks again would wait for
 * ever, because a thread that recovers from deaths may be the one that waits. When it has done that part, the
 * caller calls `partDone`: until then the dead thread's id is nobody else's. `test/spins.test.ts` finds loops
 * that wait in another way.
 */
export function awaitChange(
  thread: KernelThread,
  i32: Int32Array,
  at: number,
  seen: number,
  owner: number,
): boolean {
  for (let spin = 0; spin < thread.spins; spin++) {
    if (Atomics.load(i32, at) !== seen) return false
    pause()
  }
  if (!thread.mayBlock) pause()
  else if (Atomics.wait(i32, at, seen, STUCK_MS) !== 'timed-out') return false
  const { rescuer } = thread
  if (owner < 0 || rescuer === null) return false
  rescuer.keepIds?.()
  if (rescuer.repairDead(owner, 0)) return true
  rescuer.freeIds?.()
  return false
}

/** After awaitChange said true: the dead thread's part is done. */
export function partDone(thread: KernelThread): void {
  thread.rescuer?.freeIds?.()
}
