import { listIsEmpty, listShift } from '../arena/list.ts'
import { acquire, release } from '../arena/spinlock.ts'
import type { FutexContext } from './context.ts'
import { wakeLater } from './queue.ts'
import { ALIVE, Bucket, Futex, RESTARTED } from './records.ts'
import { unlockFutex } from './table.ts'

/**
 * After a thread has died: whoever waits at an object (a queue whose key is an object's id, negated) looks again. What the dead thread was about to
 * do for them, pass a lock on or take one that it was woken for, nobody else knows of; those who look again find out. Inside an
 * RCU section; whoever is to be woken is in the wake queue.
 */
export function restartObjects(context: FutexContext): void {
  const { i32, thread, layout } = context
  for (let futex = layout.futexes.after(i32, 0); futex !== 0; futex = layout.futexes.after(i32, futex)) {
    // One that is only just being made has no key yet, and no lock; nobody waits at it.
    if (!layout.futexes.isSettled(i32, futex) || i32[futex + Futex.owner] >= 0) continue
    acquire(thread, futex + Futex.lock)
    if (Atomics.load(i32, futex + Futex.state) !== ALIVE || listIsEmpty(i32, futex + Futex.waiters)) {
      release(thread, futex + Futex.lock)
      continue
    }
    const head = futex + Futex.waiters
    const bucket = i32[futex + Futex.bucket]
    for (let waiter = listShift(i32, head); waiter !== 0; waiter = listShift(i32, head)) {
      wakeLater(context, waiter, RESTARTED)
      Atomics.sub(i32, bucket + Bucket.waiters, 1)
    }
    unlockFutex(context, futex)
  }
}
