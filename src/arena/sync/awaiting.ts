import { pause } from './pause.ts'
import { STUCK_MS } from './spinlock.ts'
import type { KernelThread } from './thread.ts'

/**
 * The one way to wait for another thread without a lock of the kernel: one turn of a wait at a word that
 * still holds `seen`, and that thread `owner` is about to change (-1: the thread is not known). The caller
 * reads the word again after each turn, for as long as it takes.
 *
 *   1  spins for about as long as a lock is held
 *   2  parks, for at most STUCK_MS: the thread that changes the word may need this core, and need not notify
 *   3  asks whether the owner is alive, where this thread can see deaths
 *
 * True: the owner is dead, and the caller must do its part. A loop that only reads again could wait for ever,
 * because the waiting thread may be the one that recovers from deaths. When the caller has done that part, it
 * calls `partDone`: until then no other thread gets the dead thread's id. `test/spins.test.ts` finds loops
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

/** After awaitChange returned true: the dead thread's part is done. */
export function partDone(thread: KernelThread): void {
  thread.rescuer?.freeIds?.()
}
