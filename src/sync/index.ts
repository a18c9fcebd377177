/** `heddle/sync`: locks, conditions, channels and the rest, between tasks, threads and promises. */
import './wait/travelling.ts'

export { attach, domainHandle } from '../futex/core/currentfutexes.ts'
export type { DomainHandle } from '../futex/core/domain.ts'
export { Barrier } from './small/barrier.ts'
export { AtomicInt32 } from './small/cells.ts'
export { AtomicBigInt64, AtomicFloat64 } from './small/cells64.ts'
export { Channel, type ChannelIterator, type ChannelOptions } from './channel/channel.ts'
export { Condition, type ConditionOptions } from './condition/condition.ts'
export {
  debugLocks,
  type DebugOptions,
  type LockInfo,
  type LockReport,
  locks,
  type PartyInfo,
} from './debug/debug.ts'
export { SyncError, type SyncErrorCode } from './wait/errors.ts'
export { Event, type EventOptions } from './small/event.ts'
export {
  futex,
  type FutexMoveOptions,
  type FutexRequeueOptions,
  type FutexWakeOpOptions,
  type FutexWakeOptions,
} from './futex/futex.ts'
export type { FutexLockView } from './futex/futexpi.ts'
export type { FutexLockOptions, FutexWaitEntry, FutexWaitOptions } from './futex/futexwait.ts'
export type { FutexView } from './futex/futexword.ts'
export { FutexError } from '../futex/core/errno.ts'
export { Mutex, type MutexOptions } from './mutex/mutex.ts'
export type { ObjectOptions } from './wait/object.ts'
export { Once } from './small/once.ts'
export type { OwnPlace, SyncHandle } from './wait/objectwords.ts'
export type { ReadGuard, UpgradeGuard, WriteGuard } from './rwlock/rwguards.ts'
export { RwLock } from './rwlock/rwlock.ts'
export { select, selectAsync, selectSync, type SelectCase, type Selected } from './channel/select.ts'
export { type Permits, Semaphore } from './small/semaphore.ts'
export { SeqLock, type SeqLockOptions } from './small/seqlock.ts'
export { SharedQueue, type SharedQueueOptions } from './channel/sharedqueue.ts'
export { UnlockToken } from './mutex/locktoken.ts'
export { Latch, WaitGroup } from './small/waitgroup.ts'
