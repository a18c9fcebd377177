import type { FutexContext } from '../../futex/core/context.ts'
import type { WatchedLock } from '../debug/holderwatch.ts'
import type { RwLock } from './rwlock.ts'
import { readersOf, writerOf } from './rwwaits.ts'

/**
 * For which holder a waiter of an RwLock waits, for the search for deadlocks (holderwatch.ts): the writer; or
 * one of the readers that have names, another one at each check. The waiter waits for all of them, so a cycle
 * through one of them is a deadlock. A reader that is queued behind a waiting writer has no link: it does not
 * wait for a holder.
 */
export class RwWatch implements WatchedLock {
  readonly kind = 'rwlock'
  private readonly lock: RwLock
  /** The TID of a reader that upgrades, which does not wait for its own share; else 0. */
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
