import { listFirst, listIsEmpty, listNext, listRemove } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import type { FutexContext } from '../core/context.ts'
import { wakeLater } from '../core/queue.ts'
import { ALIVE, Bucket, Futex, PI_LOCK, QUEUE_RESTARTED, Waiter } from '../core/records.ts'
import { unlockFutex } from '../core/table.ts'

/**
 * After a thread has died: waiters at an object (a queue whose key is an object's id, negated) check its
 * state again. Only the dead thread knew what it was about to do for them: pass a lock on, or take one that
 * it was woken for. Words of the public futex calls have such keys too.
 *
 * Waiters for a PI lock stay on their queue: recover.ts repairs that queue, and the locks of a dead owner are
 * passed on (exit.ts). Removing such a waiter without `unblock` would leave its owner waiting for a lock that
 * it has left.
 *
 * Inside an RCU section; the sleepers to wake are in the wake queue.
 */
export function restartObjects(context: FutexContext): void {
  const { i32, thread, layout } = context
  for (let futex = layout.futexes.after(i32, 0); futex !== 0; futex = layout.futexes.after(i32, futex)) {
    // A futex under construction has no key, no lock and no waiters yet.
    if (!layout.futexes.isPublished(i32, futex) || i32[futex + Futex.owner] >= 0) continue
    acquire(thread, futex + Futex.lock)
    if (Atomics.load(i32, futex + Futex.state) !== ALIVE || listIsEmpty(i32, futex + Futex.waiters)) {
      release(thread, futex + Futex.lock)
      continue
    }
    const head = futex + Futex.waiters
    const bucket = i32[futex + Futex.bucket]
    for (let waiter = listFirst(i32, head); waiter !== 0; ) {
      const next = listNext(i32, head, waiter)
      if (i32[waiter + Waiter.pi] !== PI_LOCK) {
        listRemove(i32, head, waiter)
        wakeLater(context, waiter, QUEUE_RESTARTED)
        Atomics.sub(i32, bucket + Bucket.waiters, 1)
      }
      waiter = next
    }
    unlockFutex(context, futex)
  }
}
