import { Entity } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { FutexContext } from '../core/context.ts'
import { FUTEX_OWNER_DIED, FUTEX_PENDING, FUTEX_WAITERS, HOLDER_MASK, type LockOwner } from '../core/owner.ts'
import { Owner, TASK } from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'

/**
 * The word of a pending lock ([P3] of pending.ts), and its transitions without the futex: one
 * compare-exchange each way, as for an uncontended lock.
 *
 *   bits    31        30           29        28 … 0
 *   [P3]    WAITERS   0            PENDING   the priority of the top waiter
 *   [P5]    0         0            PENDING   the TID of the owner that has taken it so
 */
const FORM: number = FUTEX_WAITERS | FUTEX_OWNER_DIED | FUTEX_PENDING
const IS_PENDING: number = FUTEX_WAITERS | FUTEX_PENDING

/**
 * The word of a lock that is left for its top waiter, which has this priority, and for owners at least as
 * good.
 */
export function pendingWord(priority: number): number {
  return FUTEX_WAITERS | FUTEX_PENDING | priority
}

/** Whether `pendingWord` made the word. */
export function isPending(word: number): boolean {
  return (word & FORM) === IS_PENDING
}

/**
 * Takes a pending lock for an owner whose own priority is at least that in the word: [P3] to [P5]. Its
 * inherited priority does not count: that may end before the unlock, and no priority is inherited in [P5].
 */
export function takePendingWord(context: FutexContext, owner: LockOwner, word: FutexWord): boolean {
  const { i32: words, index } = word
  const seen = Atomics.load(words, index)
  if (!isPending(seen) || ownPriority(context, owner) > (seen & HOLDER_MASK)) return false
  if (Atomics.compareExchange(words, index, seen, FUTEX_PENDING | owner.tid) !== seen) return false // (C)
  word.pendingValue = seen
  word.pendingTid = owner.tid
  return true
}

/**
 * Unlocks it: [P5] to [P3]. False: it was not taken so by this thread, or a waiter has come in the meantime,
 * and the futex must be used.
 */
export function leavePendingWord(owner: LockOwner, word: FutexWord): boolean {
  const { pendingValue } = word
  if (pendingValue === 0 || word.pendingTid !== owner.tid) return false
  word.pendingValue = 0
  const taken = FUTEX_PENDING | owner.tid
  return Atomics.compareExchange(word.i32, word.index, taken, pendingValue) === taken // (F)
}

function ownPriority({ i32 }: FutexContext, { record, kind }: LockOwner): number {
  if (kind !== TASK) return i32[record + Owner.basePriority]
  return i32[i32[i32[record + Owner.task] + TaskRecord.entity] + Entity.basePriority]
}
