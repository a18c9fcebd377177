import { listFirst, listIsEmpty, ListNode } from '../../arena/trees/list.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import type { Decision } from '../../futex/core/decision.ts'
import { domainTag, nextObject } from '../../futex/core/domainwords.ts'
import type { QueueKey } from '../../futex/pi/pirequeue.ts'
import { enqueue, wakeAll, walkQueue } from '../../futex/core/queue.ts'
import { Bucket, Futex, Waiter } from '../../futex/core/records.ts'
import { bucketOf, lockFutex, lockOrCreateFutex, unlockFutex } from '../../futex/core/table.ts'
import { disposedError, SyncError } from './errors.ts'
import { DISPOSED, DOMAIN, ID, type ObjectWords } from './objectwords.ts'
import { underLock } from './underlock.ts'

/**
 * A queue of an object, as this thread sees it: a futex whose key is the object's id and not a word of a
 * mapping. It exists only while someone waits. Its lock is what makes the long ways of an object one at a
 * time: whoever is about to wait looks at the words and queues itself under it, and whoever changes them for
 * someone who waits does so under it.
 *
 *   waiter                                    who lets go
 *   ------                                    -----------
 *   (A) locks the queue
 *   (B) sets WAITERS in the state word        (C) compare-exchange of the state word without WAITERS:
 *   queues itself; unlocks; sleeps                fails after (B), succeeds before
 *                                             (D) locks the queue, serves it, unlocks
 *
 * If (C) succeeds, (B) finds the word as (C) left it and need not wait. If it fails, (D) comes after the
 * waiter is queued.
 */
export class ParkingQueue {
  private readonly place: ObjectWords
  private readonly index: number
  private owner = 0
  private bucket = 0
  private hint = 0
  private futex = 0

  constructor(place: ObjectWords, index = 0) {
    this.place = place
    this.index = index
  }

  /** The id of the object, by which others know it. */
  objectId(context: FutexContext): number {
    if (this.owner === 0) this.findOwner(context)
    return -this.owner
  }

  /** Where the table of futexes has it. */
  key(context: FutexContext): QueueKey {
    if (this.owner === 0) this.findOwner(context)
    return { bucket: this.bucket, owner: this.owner, index: this.index }
  }

  /** The first who waits, or 0. It is locked. */
  first({ i32 }: FutexContext): number {
    return listFirst(i32, this.futex + Futex.waiters)
  }

  /**
   * Until `unlock`, nobody else changes who waits, and this thread makes no other call of this queue's.
   * `spare`: a slot for the futex, if it has to be made, for who cannot bear that there is none.
   */
  lock(context: FutexContext, spare = 0): void {
    if (this.owner === 0) this.findOwner(context)
    context.enter()
    try {
      this.futex = lockOrCreateFutex(context, this.bucket, this.owner, this.index, this.hint, spare)
    } catch (error) {
      context.leave()
      throw error
    }
    if (spare !== 0 && this.futex !== spare) context.layout.futexes.free(context.i32, spare)
    this.hint = context.layout.futexes.handleOf(context.i32, this.futex)
  }

  /** Runs `body` with the queue locked. */
  lockedDo<T>(context: FutexContext, body: () => T): T {
    this.lock(context)
    return underLock(body, () => this.unlock(context))
  }

  /** As `lock`, but false, with nothing locked, when nobody waits. */
  lockIfWaiting(context: FutexContext): boolean {
    if (this.owner === 0) this.findOwner(context)
    context.enter()
    this.futex = lockFutex(context, this.bucket, this.owner, this.index, this.hint)
    if (this.futex === 0) context.leave()
    return this.futex !== 0
  }

  isEmpty({ i32 }: FutexContext): boolean {
    return listIsEmpty(i32, this.futex + Futex.waiters)
  }

  /** Queues a waiter by its priority, behind its equals. */
  add(context: FutexContext, waiter: number): void {
    Atomics.add(context.i32, this.bucket + Bucket.waiters, 1)
    enqueue(context, this.futex, waiter)
  }

  /** Queues those that a walk of another queue took off to be moved here. */
  addMoved(context: FutexContext, first: number): void {
    const { i32 } = context
    for (let waiter = first; waiter !== 0; ) {
      const next = i32[waiter + Waiter.links + ListNode.next]
      i32[waiter + Waiter.links + ListNode.next] = 0
      this.add(context, waiter)
      waiter = next
    }
  }

  /**
   * Asks the decision about each waiter in turn. Returns the first of those to be moved, linked by their
   * `next`.
   */
  walk(context: FutexContext, decision: Decision): number {
    return walkQueue(context, this.futex, decision)
  }

  /** Whoever was woken meanwhile is told. */
  unlock(context: FutexContext): void {
    this.unlockQuietly(context)
    wakeAll(context)
  }

  /** As `unlock`, for who locks another queue before it tells those that it woke. */
  unlockQuietly(context: FutexContext): void {
    const { futex } = this
    this.futex = 0
    unlockFutex(context, futex)
    context.leave()
  }

  /** The object's id: claimed here if it has none. */
  private findOwner(context: FutexContext): void {
    const { i32, at } = this.place
    claimDomain(context, this.place)
    let id = Atomics.load(i32, at + ID)
    if (id === 0) {
      const mine = nextObject(context)
      id = Atomics.compareExchange(i32, at + ID, 0, mine)
      if (id === 0) id = mine
    }
    this.bucket = bucketOf(context, -id, this.index)
    this.owner = -id
  }
}

/**
 * The object belongs to this thread's domain from now on, if to none before. Throws if it is another's, or
 * disposed of.
 */
export function claimDomain(context: FutexContext, { i32, at }: ObjectWords): void {
  const tag = domainTag(context)
  const before = Atomics.compareExchange(i32, at + DOMAIN, 0, tag)
  if (before === DISPOSED) throw disposedError('the call')
  if (before !== 0 && before !== tag) {
    throw new SyncError(
      'ERR_HEDDLE_DOMAIN',
      'the object belongs to another domain: threads that wait for one another must share one. Boot the kernel before the first use of a lock, or pass `handle` and make the object with `from(handle)`',
    )
  }
}
