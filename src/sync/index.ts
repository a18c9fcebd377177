/** `heddle/sync`: locks, conditions, channels and the rest, between tasks, threads and promises. */
import './travelling.ts'

export { attach, domainHandle } from '../futex/ambient.ts'
export type { DomainHandle } from '../futex/domain.ts'
export { Barrier } from './barrier.ts'
export { AtomicInt32 } from './cells.ts'
export { AtomicBigInt64, AtomicFloat64 } from './cells64.ts'
export { Channel, type ChannelIterator, type ChannelOptions } from './channel.ts'
export { Condition, type ConditionOptions } from './condition.ts'
export {
  debugLocks,
  type DebugOptions,
  type LockInfo,
  type LockReport,
  locks,
  type PartyInfo,
} from './debug.ts'
export { SyncError, type SyncErrorCode } from './errors.ts'
export { Event, type EventOptions } from './event.ts'
export { futex, type FutexMoveOptions, type FutexRequeueOptions, type FutexWakeOptions } from './futex.ts'
export type { FutexLockView } from './futexlock.ts'
export type { FutexWaitEntry, FutexWaitOptions } from './futexwait.ts'
export type { FutexView } from './futexword.ts'
export { FutexError } from '../futex/errno.ts'
export { Mutex, type MutexOptions } from './mutex.ts'
export type { ObjectOptions } from './object.ts'
export { Once } from './once.ts'
export type { OwnPlace, SyncHandle } from './place.ts'
export type { ReadGuard, UpgradeGuard, WriteGuard } from './rwguards.ts'
export { RwLock } from './rwlock.ts'
export { select, selectAsync, selectSync, type SelectCase, type Selected } from './select.ts'
export { type Permits, Semaphore } from './semaphore.ts'
export { SeqLock, type SeqLockOptions } from './seqlock.ts'
export { SharedQueue, type SharedQueueOptions } from './sharedqueue.ts'
export { UnlockToken } from './token.ts'
export { Latch, WaitGroup } from './waitgroup.ts'
