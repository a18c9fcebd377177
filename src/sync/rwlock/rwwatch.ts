import type { FutexContext } from '../../futex/core/context.ts'
import type { WatchedLock } from '../debug/holderwatch.ts'
import type { RwLock } from './rwlock.ts'
import { readersOf, writerOf } from './rwwaits.ts'

/**
 * What holds up a waiter of an RwLock, for the search for deadlocks (holderwatch.ts): the writer; or, where
 * readers hold it up, one of those that have names, another at each look. A waiter waits for all of them, so
 * a circle through one of them lasts. A reader that waits behind a writer in line has no link: no thread that
 * holds the lock keeps it out.
 */
export class RwWatch implements WatchedLock {
  readonly kind = 'rwlock'
  private readonly lock: RwLock
  /** The TID whose share is no obstacle: that of a reader that upgrades; 0: none. */
  private readonly except: number
  private readonly waitsForReaders: boolean
  private turn = 0

  constructor(lock: RwLock, waitsForReaders: boolean, except = 0) {
    this.lock = lock
    this.waitsForReaders = waitsForReaders
    this.except = except
  }

  get name(): string | undefined {
    return this.lock.name
  }

  holder(): number {
    const { i32, at, holders } = this.lock
    const state = Atomics.load(i32, at)
    const writer = writerOf(state)
    if (writer !== 0 || !this.waitsForReaders || readersOf(state) === 0) return writer
    return holders.nameFrom(this.turn++, this.except)
  }

  isHeldBy(tid: number): boolean {
    const { i32, at, holders } = this.lock
    return writerOf(Atomics.load(i32, at)) === tid || (this.waitsForReaders && holders.has(tid))
  }

  objectId(context: FutexContext): number {
    return this.lock.queue.objectId(context)
  }
}
