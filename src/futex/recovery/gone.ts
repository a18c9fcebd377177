import { awaitChange, partDone } from '../../arena/sync/awaiting.ts'
import { Entity } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { FutexContext } from '../core/context.ts'
import { findOwner } from '../core/owner.ts'
import { Owner, TASK } from '../core/records.ts'

/**
 * One turn of a wait (arena/sync/awaiting.ts) at a word that still says `seen`, because the owner with this
 * TID has something under way there. True: that one is no more, or has died and nobody has recovered it yet;
 * the word is the caller's to take over, by compare-exchange.
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
  // A TID is never that of another life: the compare-exchange of the caller says whether the word is still
  // that one's.
  partDone(context.thread)
  return true
}

/** The thread that an owner runs on. */
export function threadOf({ i32 }: FutexContext, record: number): number {
  if (i32[record + Owner.kind] !== TASK) return Atomics.load(i32, record + Owner.thread)
  return Atomics.load(i32, i32[i32[record + Owner.task] + TaskRecord.entity] + Entity.cpu)
}
