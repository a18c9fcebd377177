import { fail } from '../../arena/assert.ts'
import { pause } from '../../arena/sync/pause.ts'
import { STUCK_MS } from '../../arena/sync/spinlock.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { threadOf } from '../../futex/recovery/awaitowner.ts'
import { findOwner } from '../../futex/core/owner.ts'
import type { ObjectWords } from './objectwords.ts'

/**
 * The lock of a channel or a queue, where every change needs a lock: a word of the object. A thread holds it
 * for a few dozen instructions, never across a wait, and does not wait for it while it holds a lock of the
 * futexes.
 *
 *   0                 [1] free
 *   tid               [2] held by the thread (not the task) with this TID
 *   tid | SLEEPERS    [3] held, and a thread may sleep at the word: unlocking notifies
 *
 * Neither of the other locks can do this. The kernel's spin lock and the locks of the futex table are in the
 * arena, where a recovery finds them; this word may be in a buffer of the user's, and a channel needs two, on
 * cache lines of their own. A Mutex belongs to a task and parks its waiters, which needs those locks itself.
 *
 * The next thread that wants the lock finds out that its holder died: after the recovery, the TID has no
 * owner. So a waiting thread checks the holder every STUCK_MS, and no recovery has to know where these locks
 * are. The object belongs to one domain (`claimDomain`), so a TID without an owner is that of a dead thread.
 * What the lock guards changes in single stores, or a journal says what was under way: the thread that breaks
 * the lock finishes it.
 */
const SLEEPERS = 0x4000_0000
const TID = 0x3fff_ffff

/** True: the last holder died while it held the lock. */
export function lockObject(context: FutexContext, { i32, at }: ObjectWords): boolean {
  const { tid } = currentFutexes().self
  const broken = Atomics.compareExchange(i32, at, 0, tid) !== 0 && lockContended(context, i32, at, tid)
  context.thread.sections++
  return broken
}

export function unlockObject({ thread }: FutexContext, { i32, at }: ObjectWords): void {
  if ((Atomics.exchange(i32, at, 0) & SLEEPERS) !== 0) Atomics.notify(i32, at, 1)
  thread.sections--
}

function lockContended(context: FutexContext, i32: Int32Array, at: number, tid: number): boolean {
  const { mayBlock, spins } = context.thread
  for (let spin = 0; spin < spins; spin++) {
    if (Atomics.load(i32, at) === 0 && Atomics.compareExchange(i32, at, 0, tid) === 0) return false
    pause()
  }
  // A thread that may not block spins on.
  const mine = mayBlock ? tid | SLEEPERS : tid
  for (;;) {
    const seen = Atomics.load(i32, at)
    if ((seen & TID) === tid) fail('a thread took the lock of an object that it holds already')
    // To [3], because other threads may sleep at the word.
    if (seen === 0) {
      if (Atomics.compareExchange(i32, at, 0, mine) === 0) return false
    } else if (findOwner(context, seen & TID) === 0) {
      if (Atomics.compareExchange(i32, at, seen, mine | (seen & SLEEPERS)) === seen) return true
    } else if (!mayBlock) {
      if (
        isGone(context, seen & TID) &&
        Atomics.compareExchange(i32, at, seen, mine | (seen & SLEEPERS)) === seen
      )
        return true
      pause()
    } else if ((seen & SLEEPERS) !== 0 || Atomics.compareExchange(i32, at, seen, seen | SLEEPERS) === seen) {
      if (Atomics.wait(i32, at, seen | SLEEPERS, STUCK_MS) !== 'timed-out' || !isGone(context, seen & TID))
        continue
      if (Atomics.compareExchange(i32, at, seen | SLEEPERS, mine) === (seen | SLEEPERS)) return true
    }
  }
}

/** Whether the holder died. The thread that recovers from deaths may itself wait here: it recovers now. */
function isGone(context: FutexContext, tid: number): boolean {
  const { rescuer } = context.thread
  const record = findOwner(context, tid)
  return record !== 0 && rescuer !== null && rescuer.repairDead(threadOf(context, record), 0)
}
