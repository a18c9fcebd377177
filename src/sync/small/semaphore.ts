import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { countReleased, here } from '../../thread/context.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { type Decision, STOP, WAKE } from '../../futex/core/decision.ts'
import { Waiter } from '../../futex/core/records.ts'
import { checkCount, SyncError } from '../wait/errors.ts'
import { HOLDER_WORDS, Holders } from '../wait/holders.ts'
import { expectGrant, finishGrant, grant, wasGranted } from '../wait/countgrant.ts'
import { asPromise, inTask, type ObjectOptions, onThread, optionsOf, SyncObject } from '../wait/object.ts'
import { currentTid, refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import {
  type OwnPlace,
  type ObjectWords,
  OBJECT_WORDS,
  type SyncHandle,
  HAS_WAITERS,
} from '../wait/objectwords.ts'
import { blockingMethods, checkWait, Finished, QueueWait, type WaitOptions } from '../wait/waiting.ts'

const COUNT = 0x3fff_ffff

/**
 * Permits that were acquired together; disposing of it releases them. In a task and on a thread, a semaphore
 * has one object for all acquires of one permit, so that they allocate nothing: release or dispose of it once
 * for each. Any other is released once, and disposing of it after that does nothing.
 */
export class Permits {
  readonly semaphore: Semaphore
  readonly count: number
  private readonly lasting: boolean
  private isSpent = false

  /** @internal */
  constructor(semaphore: Semaphore, count: number, lasting: boolean) {
    this.semaphore = semaphore
    this.count = count
    this.lasting = lasting
  }

  release(): void {
    if (this.isSpent)
      throw new SyncError(
        'ERR_HEDDLE_NOT_HELD',
        'release: these permits were released before; release them once',
      )
    this.semaphore.release(this.count)
    if (!this.lasting) this.isSpent = true
  }

  [Symbol.dispose](): void {
    if (!this.isSpent) this.release()
  }
}

/**
 * A count of permits. A caller that asks for more than there are waits in a queue, by priority and then by
 * arrival, and **the first in the queue is served first**: no waiter overtakes it, however few permits it
 * asks for, so small requests do not starve a large one. When the first leaves (served, timed out, aborted),
 * the waiters behind it are served if they can be.
 *
 *   HAS_WAITERS | permits | meaning
 *   ------------+---------+--------------------------------------------------------------
 *        0      |    n    | [1] no waiters; acquire and release are one compare-exchange
 *        1      |    n    | [2] waiters, and n are not enough for the first: every change is
 *               |         |     under the queue's lock
 *
 * The releasing thread grants permits under the queue's lock, so a woken waiter has its permits. The first
 * eight permits have names (holders.ts): a caller that has to wait releases the permits of dead holders. If
 * one owner releases permits that another acquired, as for a signal, names are not used. If the granting
 * thread dies, each grant was made or not (countgrant.ts).
 */
export class Semaphore extends SyncObject {
  static readonly words: number = OBJECT_WORDS + HOLDER_WORDS
  /** @internal */
  readonly holders: Holders
  /**
   * The word as this thread last saw it: the first guess of an exchange. A failed exchange returns the
   * current word.
   */
  private expected = 0
  private readonly one: Permits
  private readonly finished: Finished<Permits>

  constructor(permits: number, options: ObjectOptions = {}) {
    checkCount('new Semaphore(permits)', permits, 0)
    super('Semaphore', Semaphore.words, options)
    this.holders = new Holders(this.i32, this.at + OBJECT_WORDS)
    this.one = new Permits(this, 1, true)
    this.finished = new Finished(this.one)
    if (permits > 0) Atomics.add(this.i32, this.at, permits)
  }

  static from(handle: SyncHandle): Semaphore {
    return new Semaphore(0, optionsOf('Semaphore', handle))
  }

  /** The one that is in this memory already. */
  static at(place: OwnPlace): Semaphore {
    return new Semaphore(0, place)
  }

  /** What `console.log` and JSON show of it. */
  override toJSON(): { readonly name?: string; readonly available: number } {
    return { ...super.toJSON(), available: this.available }
  }

  /** How many permits are available now. */
  get available(): number {
    return Atomics.load(this.i32, this.at) & COUNT
  }

  /** In a task: waits for `count` permits. */
  acquire(count = 1, options?: WaitOptions): Blocking<Permits> {
    if (!facesOpen()) refuseOutsideTask('acquire')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (!this.attempt(count, tid))
      return toRun('acquire', this.acquireInLine(count, tid, options)) as Blocking<Permits>
    return (count === 1 ? this.finished : new Finished(this.permits(count))) as unknown as Blocking<Permits>
  }

  acquireSync(count = 1, options?: WaitOptions): Permits {
    if (here.runner !== null) refuseInTask('acquire')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (this.attempt(count, tid)) return this.permits(count)
    onThread(new PermitWait(this, count), options)
    this.holders.add(tid, count)
    return this.permits(count)
  }

  async acquireAsync(count = 1, options?: WaitOptions): Promise<Permits> {
    checkWait(options)
    const { tid } = currentFutexes().self
    if (!this.attempt(count, tid)) {
      await asPromise(new PermitWait(this, count), options)
      this.holders.add(tid, count)
    }
    return new Permits(this, count, false)
  }

  /** The permits, if they are available now and there is no waiter. */
  tryAcquire(count = 1): Permits | null {
    const tid = currentTid()
    if (this.attempt(count, tid)) return this.permits(count)
    const dead = this.holders.takeDead(currentFutexes().context)
    if (dead === 0) return null
    this.serve(currentFutexes().context, dead)
    return this.attempt(count, tid) ? this.permits(count) : null
  }

  release(count = 1): void {
    checkCount('release(count)', count, 1)
    const { i32, at } = this
    const tid = currentTid()
    if (!this.holders.removeNamed(tid, count)) {
      this.refuseTooMany(Atomics.load(i32, at), count)
      this.holders.remove(tid, count)
    }
    countReleased(count)
    let { expected } = this
    if (expected + count > COUNT) expected = Atomics.load(i32, at)
    for (;;) {
      this.refuseTooMany(expected, count)
      if (expected < 0) break
      const seen = Atomics.compareExchange(i32, at, expected, expected + count)
      if (seen === expected) {
        this.expected = expected + count
        return
      }
      expected = seen
    }
    this.refuseDisposed('release')
    this.serve(currentFutexes().context, count)
  }

  private refuseTooMany(seen: number, count: number): void {
    const permits = seen & COUNT
    if (permits + count <= COUNT) return
    throw new RangeError(
      `release(${count}): the semaphore has ${permits} permits, and the maximum is ${COUNT}; release only acquired permits`,
    )
  }

  /** @internal Adds permits and grants them to waiters, in [2]. */
  serve(context: FutexContext, more: number): void {
    const { i32, at, queue } = this
    queue.lock(context)
    finishGrant(context, this)
    if (addPermits(this, more)) {
      queue.walk(context, new Giving(this))
      if (queue.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
    }
    queue.unlock(context)
  }

  private *acquireInLine(
    count: number,
    tid: number,
    options: WaitOptions | undefined,
  ): Generator<number, Permits, unknown> {
    yield* inTask(new PermitWait(this, count), options)
    this.holders.add(tid, count)
    if (here.counts && this.holders.areReliable) here.shares += count
    return this.permits(count)
  }

  /** `tid`: the name of the share. */
  private attempt(count: number, tid: number): boolean {
    checkCount('acquire(count)', count, 1)
    const { i32, at } = this
    for (let expected = Math.max(this.expected, count); ; ) {
      const seen = Atomics.compareExchange(i32, at, expected, expected - count)
      if (seen === expected) {
        this.expected = expected - count
        this.holders.add(tid, count)
        if (here.counts && this.holders.areReliable) here.shares += count
        return true
      }
      if (seen < 0) this.refuseDisposed('acquire')
      if (seen < count) return false
      expected = seen
    }
  }

  private permits(count: number): Permits {
    return count === 1 ? this.one : new Permits(this, count, false)
  }
}

/** False: there are no waiters any more, [1]. */
function addPermits({ i32, at }: ObjectWords, more: number): boolean {
  for (;;) {
    const seen = Atomics.load(i32, at)
    if (Atomics.compareExchange(i32, at, seen, seen + more) === seen) return seen < 0
  }
}

/** Grants permits until the first waiter cannot be served. */
class Giving implements Decision {
  private readonly place: ObjectWords

  constructor(place: ObjectWords) {
    this.place = place
  }

  decide(arena: Int32Array, waiter: number): typeof STOP | typeof WAKE {
    const seen = Atomics.load(this.place.i32, this.place.at)
    const wanted = arena[waiter + Waiter.bitset]
    if (wanted > (seen & COUNT)) return STOP
    grant(arena, waiter, this.place, seen - wanted)
    return WAKE
  }
}

export class PermitWait extends QueueWait {
  readonly what = 'acquire'
  private readonly semaphore: Semaphore
  private readonly count: number

  constructor(semaphore: Semaphore, count: number) {
    super(semaphore.queue)
    this.semaphore = semaphore
    this.count = count
  }

  override bits(): number {
    return this.count
  }

  admit(context: FutexContext, waiter: number): boolean {
    const { i32, at } = this.semaphore
    this.semaphore.refuseDisposed(this.what)
    finishGrant(context, this.semaphore)
    expectGrant(context, waiter)
    if ((Atomics.load(i32, at) & COUNT) < this.count) {
      const dead = this.semaphore.holders.takeDead(context)
      if (dead > 0) Atomics.add(i32, at, dead)
    }
    const firstInLine = this.queue.isEmpty(context)
    for (;;) {
      const seen = Atomics.load(i32, at)
      const permits = seen & COUNT
      const served = firstInLine && permits >= this.count
      const next = served ? permits - this.count : seen | HAS_WAITERS
      if (Atomics.compareExchange(i32, at, seen, next) === seen) return served
    }
  }

  /**
   * With a better priority it is first in the queue now, and can perhaps be served where the others cannot.
   */
  protected override queued(): void {
    if (this.semaphore.available >= this.count) this.semaphore.serve(currentFutexes().context, 0)
  }

  servedByDead(context: FutexContext, [waiter]: readonly number[]): number {
    return wasGranted(context, this.semaphore, waiter) ? 0 : -1
  }

  override leave(context: FutexContext, _waiters: readonly number[], index: number): void {
    this.semaphore.serve(context, index >= 0 ? this.count : 0)
  }
}

blockingMethods(Semaphore.prototype, 'acquire')
