import {
  BLOCK,
  BLOCK_FUTEX,
  FUTEX,
  BLOCK_LOCK,
  LOCK_ACQUIRE,
  LOCK_CONTEND,
  LOCK_RELEASE,
  threadActor,
} from '../../arena/rings/events.ts'
import { countTime, LOCK_HOLD, LOCK_WAIT } from '../../arena/rings/histogram.ts'
import { actorOf } from '../../sched/core/events.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { FutexContext } from './context.ts'
import { findOwner } from './owner.ts'
import { Futex, Owner, PI_LOCK, Waiter } from './records.ts'

/**
 * Events and histograms of locks and futexes, recorded on slow paths only: taking and unlocking an
 * uncontended lock records nothing. A thread without a scheduler records nothing.
 */

/** The task or thread of a TID, as events name it; 0: unknown. */
export function actorOfTid(context: FutexContext, tid: number): number {
  const record = tid === 0 ? 0 : findOwner(context, tid)
  return record === 0 ? 0 : actorOfRecord(context, record)
}

function actorOfRecord({ i32 }: FutexContext, record: number): number {
  const task = i32[record + Owner.task]
  return task === 0 ? threadActor(i32[record + Owner.thread]) : i32[task + TaskRecord.slot]
}

/** The caller waits for a lock that `owner` holds. */
export function recordContended(context: FutexContext, lock: number, owner: number): void {
  const s = context.scheduler
  if (s === undefined || s.i32[s.recording] === 0) return
  s.events?.write(LOCK_CONTEND, s.now(), actorOf(s), lock, actorOfTid(context, owner), 0, 0)
}

/** The caller has acquired the lock, after waiting since `since`. */
export function recordAcquired(context: FutexContext, lock: number, since: number): void {
  const s = context.scheduler
  if (s === undefined) return
  const now = s.now()
  countTime(s.i32, s.histograms, s.cpu, LOCK_WAIT, now - since)
  if (s.i32[s.recording] !== 0) s.events?.write(LOCK_ACQUIRE, now, actorOf(s), lock, 1, 0, 0)
}

/**
 * The caller unlocks a lock that has waiters. `since`: when it acquired the lock, if it had to wait, else 0.
 */
export function recordReleased(context: FutexContext, lock: number, since: number): void {
  const s = context.scheduler
  if (s === undefined) return
  const now = s.now()
  if (since !== 0) countTime(s.i32, s.histograms, s.cpu, LOCK_HOLD, now - since)
  if (s.i32[s.recording] !== 0) s.events?.write(LOCK_RELEASE, now, actorOf(s), lock, 1, 0, 0)
}

/** A call that wakes or moves waiters: the operation, the word and the result. */
export function recordFutex(context: FutexContext, operation: number, word: number, result: number): void {
  const s = context.scheduler
  if (s === undefined || s.i32[s.recording] === 0) return
  s.events?.write(FUTEX, s.now(), actorOf(s), operation, word, result, 0)
}

/** The running task is about to sleep with this waiter. */
export function recordBlocked(context: FutexContext, waiter: number): void {
  const s = context.scheduler
  if (s === undefined || s.i32[s.recording] === 0) return
  const { i32 } = context
  const futex = Atomics.load(i32, waiter + Waiter.queue)
  if (futex <= 0) return
  const isLock = i32[waiter + Waiter.pi] === PI_LOCK
  const owner = i32[futex + Futex.pi]
  const whom = isLock && owner !== 0 ? actorOfRecord(context, owner) : 0
  s.events?.write(
    BLOCK,
    s.now(),
    actorOf(s),
    isLock ? BLOCK_LOCK : BLOCK_FUTEX,
    i32[futex + Futex.index],
    whom,
    0,
  )
}
