import { fail } from '../../arena/assert.ts'
import { pause } from '../../arena/sync/pause.ts'
import { STUCK_MS } from '../../arena/sync/spinlock.ts'
import { ambient } from '../../futex/core/ambient.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { threadOf } from '../../futex/recovery/awaitowner.ts'
import { findOwner } from '../../futex/core/owner.ts'
import type { ObjectWords } from './objectwords.ts'

/**
 * The lock of an object whose every change needs one: word 0 of its place. Held for a few dozen instructions,
 * never across a wait, and never waited for with a lock of the futexes in hand.
 *
 *   0                [1] free
 *   tid              [2] held by the thread (not the task) whose TID that is
 *   tid | SLEEPERS     [3] held, and a thread may sleep at the word: unlocking notifies
 *
 * A holder that died is found by whoever wants the lock: its TID is nobody's once its death has been
 * recovered from. So nobody sleeps here for longer than STUCK_MS without a look, and no recovery has to know
 * where the places are. A TID is a domain's: whoever locks a place has claimed it for its own
 * (`claimDomain`), so that a TID that is nobody's is that of a dead one. What the lock guards changes in
 * single stores, or says in its own words what was under way: who breaks the lock finishes that.
 */
const SLEEPERS = 0x4000_0000
const TID = 0x3fff_ffff

/** True: the last holder died in it. */
export function lockObject(context: FutexContext, { i32, at }: ObjectWords): boolean {
  const { tid } = ambient()
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
  // One that may not block looks on: a turn that changes nothing is a turn like the last.
  const mine = mayBlock ? tid | SLEEPERS : tid
  for (;;) {
    const seen = Atomics.load(i32, at)
    if ((seen & TID) === tid) fail('a thread took the lock of an object that it holds already')
    // As [3]: others may sleep beside it.
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

/** A thread that sees deaths may stand here itself, before the death has been told. */
function isGone(context: FutexContext, tid: number): boolean {
  const { rescuer } = context.thread
  const record = findOwner(context, tid)
  return record !== 0 && rescuer !== null && rescuer.repairDead(threadOf(context, record), 0)
}
