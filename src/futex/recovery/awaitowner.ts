import { awaitChange, partDone } from '../../arena/sync/awaiting.ts'
import { Entity } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { FutexContext } from '../core/context.ts'
import { findOwner } from '../core/owner.ts'
import { Owner, TASK } from '../core/records.ts'

/**
 * One round of a wait (arena/sync/awaiting.ts) for a word that is still `seen`, because the owner with this
 * TID has an operation under way there. True: that owner has ended, or has died and was not recovered yet;
 * the caller may take over the word by compare-exchange.
 */
export function awaitOwner(
  context: FutexContext,
  words: Int32Array,
  at: number,
  seen: number,
  tid: number,
): boolean {
  const record = findOwner(context, tid)
  if (record === 0) return true
  if (!awaitChange(context.thread, words, at, seen, threadOf(context, record))) return false
  // A TID never belongs to another life: the caller's compare-exchange tells whether the word is still that
  // owner's.
  partDone(context.thread)
  return true
}

/** The thread that an owner runs on. */
export function threadOf({ i32 }: FutexContext, record: number): number {
  if (i32[record + Owner.kind] !== TASK) return Atomics.load(i32, record + Owner.thread)
  return Atomics.load(i32, i32[i32[record + Owner.task] + TaskRecord.entity] + Entity.cpu)
}
