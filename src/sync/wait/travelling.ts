import { onBoot } from '../../kernel/boot/hooks.ts'
import { onEveryCpu, registerTravelling } from '../../payload/travelling.ts'
import { printsAs } from '../../coroutine/core/printed.ts'
import { Barrier } from '../small/barrier.ts'
import { AtomicInt32 } from '../small/cells.ts'
import { AtomicBigInt64, AtomicFloat64 } from '../small/cells64.ts'
import { Channel } from '../channel/channel.ts'
import { Condition } from '../condition/condition.ts'
import { debugLocks, joinDebugMode } from '../debug/debug.ts'
import { Event } from '../small/event.ts'
import { Mutex } from '../mutex/mutex.ts'
import { setOnMade } from '../debug/observer.ts'
import { Once } from '../small/once.ts'
import type { SyncHandle } from './objectwords.ts'
import { RwLock } from '../rwlock/rwlock.ts'
import { Semaphore } from '../small/semaphore.ts'
import { SeqLock } from '../small/seqlock.ts'
import { SharedQueue } from '../channel/sharedqueue.ts'
import { Latch, WaitGroup } from '../small/waitgroup.ts'

/**
 * In payloads (arguments and results of tasks, values in channels) objects travel by reference, as their
 * handles.
 */
interface Travels<T> {
  readonly prototype: T
  new (...args: never[]): T
  from(handle: SyncHandle): T
}

function travel<T extends { readonly handle: SyncHandle; toJSON: () => object }>(
  name: string,
  Class: Travels<T>,
): void {
  printsAs(Class, name)
  registerTravelling<T, SyncHandle>(
    `heddle.${name}`,
    Class,
    object => object.handle,
    handle => Class.from(handle),
  )
}

// A task may get an object of a class that its module imports only as a type.
onEveryCpu(new URL('./travelling.ts', import.meta.url).href)

// Here, because every CPU loads this file, also a CPU whose tasks import nothing of the library.
setOnMade(joinDebugMode)

// A kernel that is booted for debugging records its locks; a wait that would close a deadlock throws.
onBoot((_view, { debug }) => (debug ? debugLocks({ throws: true }) : undefined))

travel('Mutex', Mutex)
travel('Condition', Condition)
travel('Semaphore', Semaphore)
travel('RwLock', RwLock)
travel('Barrier', Barrier)
travel('WaitGroup', WaitGroup)
travel('Latch', Latch)
travel('Once', Once)
travel('Event', Event)
travel('Channel', Channel)
travel('SharedQueue', SharedQueue)
travel('SeqLock', SeqLock)
travel('AtomicInt32', AtomicInt32)
travel('AtomicBigInt64', AtomicBigInt64)
travel('AtomicFloat64', AtomicFloat64)
