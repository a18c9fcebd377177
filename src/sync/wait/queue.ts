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
 * mapping. The futex exists only while there are waiters. The slow paths of an object run under the lock of
 * its queue: a waiter checks the words and queues itself under it, and an unlocker serves waiters under it.
 *
 *   waiter                                    unlocker
 *   ------                                    --------
 *   (A) locks the queue
 *   (B) sets HAS_WAITERS in the state word    (C) compare-exchange of the state word without HAS_WAITERS:
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

  /** The id of the object, which is the same on all threads. */
  objectId(context: FutexContext): number {
    if (this.owner === 0) this.findOwner(context)
    return -this.owner
  }

  /** The futex's key in the futex table. */
  key(context: FutexContext): QueueKey {
    if (this.owner === 0) this.findOwner(context)
    return { bucket: this.bucket, owner: this.owner, index: this.index }
  }

  /** The first waiter, or 0. The queue is locked. */
  first({ i32 }: FutexContext): number {
    return listFirst(i32, this.futex + Futex.waiters)
  }

  /**
   * Until `unlock`, no other thread changes the queue. This thread does not lock it twice. `spare`: a
   * preallocated futex record, for callers that must not fail when the table is full.
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

  /** As `lock`, but false, and not locked, when there is no waiter. */
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

  /** Queues a waiter by its priority, behind those of equal priority. */
  add(context: FutexContext, waiter: number): void {
    Atomics.add(context.i32, this.bucket + Bucket.waiters, 1)
    enqueue(context, this.futex, waiter)
  }

  /** Queues the waiters that a walk of another queue removed. */
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
   * Asks the decision about each waiter in turn. Returns the first waiter to be moved; the others follow by
   * `next`.
   */
  walk(context: FutexContext, decision: Decision): number {
    return walkQueue(context, this.futex, decision)
  }

  /** Wakes the waiters that a walk decided to wake. */
  unlock(context: FutexContext): void {
    this.unlockQuietly(context)
    wakeAll(context)
  }

  /** As `unlock`, but the caller wakes the waiters later, after it has locked another queue. */
  unlockQuietly(context: FutexContext): void {
    const { futex } = this
    this.futex = 0
    unlockFutex(context, futex)
    context.leave()
  }

  /** Finds the object's id; claims one if it has none. */
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
 * The object belongs to this thread's domain from now on, if it belonged to none. Throws if it belongs to
 * another domain, or was disposed of.
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
