import { checkOptions, type Kinds, show } from '../../coroutine/core/knownoptions.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { freeWaiters, makeWaiter, type WaiterOptions } from '../../futex/operations/waitwake.ts'
import { checkCount } from '../wait/errors.ts'
import { asPromise, inTask, onThread } from '../wait/object.ts'
import { refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import {
  handleOf,
  openHandle,
  type OwnPlace,
  type ObjectWords,
  wordsFor,
  ownPlaceKinds,
  type SyncHandle,
} from '../wait/objectwords.ts'
import { lockObject, unlockObject } from '../wait/objectlock.ts'
import { claimDomain, ParkingQueue } from '../wait/queue.ts'
import { underLock } from '../wait/underlock.ts'
import { blockingMethods, checkWait, type Wait, type WaitOptions } from '../wait/waiting.ts'
import { WakeCount } from '../wait/wakecount.ts'

const CAPACITY = 3
const FIELDS = 4
const HEAD = 5
const TAIL = 6
const PUSHERS = 7
const POPPERS = 8
const HEADER_WORDS = 16

export interface SharedQueueOptions extends OwnPlace {
  /** How many records it holds. */
  readonly capacity: number
  /** How many numbers a record has; the default is 1. */
  readonly fields?: number | undefined
  readonly name?: string | undefined
}

const queueKinds: Kinds<SharedQueueOptions> = {
  ...ownPlaceKinds,
  capacity: 'checked',
  fields: 'checked',
  name: 'string',
}

/**
 * A queue of records of a fixed number of float64s. They pass between threads unchanged: nothing is encoded,
 * nothing is allocated. Any number of threads push and pop; records come out in the order of the pushes.
 *
 * Every change is under the object's lock, and a record is in the queue from the store of `tail` until the
 * store of `head`, so the holder of the lock may die at any step. One slot is always free, so that `head` and
 * `tail` tell empty from full. A woken waiter checks again: another thread may have been first.
 */
export class SharedQueue implements ObjectWords {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly name: string | undefined
  readonly capacity: number
  readonly fields: number
  private readonly f64: Float64Array<SharedArrayBuffer>
  private readonly pushers: ParkingQueue
  private readonly poppers: ParkingQueue
  /** The context of the last lock by this thread: the queue belongs to its domain. */
  private joined: FutexContext | null = null

  constructor(options: SharedQueueOptions) {
    checkOptions('new SharedQueue(options)', options, queueKinds)
    const { capacity, fields = 1, name } = options
    checkCount('new SharedQueue({ capacity })', capacity, 1, 1 << 24)
    checkCount('new SharedQueue({ fields })', fields, 1, 1 << 16)
    const { i32, at } = wordsFor('SharedQueue', SharedQueue.words(capacity, fields), options)
    if (at % 2 !== 0) throw new RangeError('new SharedQueue({ index }): it starts at an even word')
    this.i32 = i32
    this.at = at
    this.name = name
    this.capacity = capacity
    this.fields = fields
    this.f64 = new Float64Array(i32.buffer, 0, Math.floor(i32.length / 2))
    Atomics.store(i32, at + CAPACITY, capacity)
    Atomics.store(i32, at + FIELDS, fields)
    this.pushers = new ParkingQueue(this, 0)
    this.poppers = new ParkingQueue(this, 1)
  }

  static words(capacity: number, fields = 1): number {
    return HEADER_WORDS + 2 * (capacity + 1) * fields
  }

  static from(handle: SyncHandle): SharedQueue {
    const { place, options } = openHandle('SharedQueue', handle)
    const { i32, at } = place
    return new SharedQueue({
      ...options,
      buffer: i32.buffer,
      index: at,
      capacity: Atomics.load(i32, at + CAPACITY),
      fields: Atomics.load(i32, at + FIELDS),
    })
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly name?: string; readonly capacity: number; readonly length: number } {
    const { name, capacity, length } = this
    return { ...(name !== undefined && { name }), capacity, length }
  }

  get handle(): SyncHandle {
    return handleOf('SharedQueue', this, { name: this.name })
  }

  /** How many records are in it now. */
  get length(): number {
    const length = Atomics.load(this.i32, this.at + TAIL) - Atomics.load(this.i32, this.at + HEAD)
    return length < 0 ? length + this.capacity + 1 : length
  }

  /** Without waiting; false: it is full. */
  tryPush(...record: number[]): boolean {
    return this.pushFrom(record)
  }

  /** As tryPush, with the record in a list or a typed array. */
  tryPushFrom(record: ArrayLike<number>): boolean {
    return this.pushFrom(record)
  }

  /** Without waiting, into `record`; false: it is empty. */
  tryPopInto(record: { [index: number]: number }): boolean {
    const { context } = currentFutexes()
    this.lock(context)
    const popped = this.popLocked(record)
    unlockObject(context, this)
    if (popped) this.wakeOther(context, false)
    return popped
  }

  /** Without waiting; undefined: it is empty. */
  tryPop(): number[] | undefined {
    const record: number[] = []
    return this.tryPopInto(record) ? record : undefined
  }

  /** In a task: waits for room. */
  push(record: ArrayLike<number>, options?: WaitOptions): Blocking<void> {
    if (!facesOpen()) refuseOutsideTask('push')
    checkWait(options)
    return toRun('push', this.pushInTask(record, options)) as Blocking<void>
  }

  pushSync(record: ArrayLike<number>, options?: WaitOptions): void {
    refuseInTask('push')
    checkWait(options)
    if (this.pushFrom(record)) return
    onThread(new RecordWait(this, true, record), options)
  }

  async pushAsync(record: ArrayLike<number>, options?: WaitOptions): Promise<void> {
    checkWait(options)
    if (this.pushFrom(record)) return
    await asPromise(new RecordWait(this, true, record), options)
  }

  /** In a task: waits for a record, and returns it in `into`. */
  pop(into: number[] | Float64Array = [], options?: WaitOptions): Blocking<ArrayLike<number>> {
    if (!facesOpen()) refuseOutsideTask('pop')
    checkWait(options)
    if (!Array.isArray(into)) this.checkInto(into)
    return toRun('pop', this.popInTask(into, options)) as Blocking<ArrayLike<number>>
  }

  popSync(into: number[] | Float64Array = [], options?: WaitOptions): ArrayLike<number> {
    refuseInTask('pop')
    checkWait(options)
    if (!Array.isArray(into)) this.checkInto(into)
    if (this.tryPopInto(into)) return into
    onThread(new RecordWait(this, false, into), options)
    return into
  }

  async popAsync(into: number[] | Float64Array = [], options?: WaitOptions): Promise<ArrayLike<number>> {
    checkWait(options)
    if (!Array.isArray(into)) this.checkInto(into)
    if (this.tryPopInto(into)) return into
    await asPromise(new RecordWait(this, false, into), options)
    return into
  }

  /** The options of a wait, in the place of `into`, would get the numbers of the record. */
  private checkInto(into: unknown): void {
    if (into instanceof Float64Array && into.length >= this.fields) return
    const got = into instanceof Float64Array ? `a Float64Array of ${into.length}` : show(into)
    throw new TypeError(
      `pop(into, options): into: got ${got}; give a list, a Float64Array of ${this.fields}, or undefined`,
    )
  }

  /** @internal */
  queueOf(pushes: boolean): ParkingQueue {
    return pushes ? this.pushers : this.poppers
  }

  /** @internal Pushes or pops, or queues the waiter. */
  performOrQueue(context: FutexContext, pushes: boolean, record: ArrayLike<number>, waiter: number): boolean {
    this.lock(context)
    return underLock(
      () => {
        const done = pushes ? this.pushLocked(record) : this.popLocked(record as number[])
        if (!done) this.addWaiter(context, pushes, waiter)
        return done
      },
      () => unlockObject(context, this),
    )
  }

  private lock(context: FutexContext): void {
    if (context !== this.joined) {
      claimDomain(context, this)
      this.joined = context
    }
    lockObject(context, this)
  }

  /** The flag last: it may be set without a waiter, and is never clear while a waiter is queued. */
  private addWaiter(context: FutexContext, pushes: boolean, waiter: number): void {
    const queue = this.queueOf(pushes)
    queue.lock(context)
    queue.add(context, waiter)
    queue.unlockQuietly(context)
    Atomics.store(this.i32, this.at + (pushes ? PUSHERS : POPPERS), 1)
  }

  /** @internal After a change: wakes the first waiter at the other end. No lock is held. */
  wakeOther(context: FutexContext, pushed: boolean): void {
    const queue = this.queueOf(!pushed)
    const flag = this.at + (pushed ? POPPERS : PUSHERS)
    if (Atomics.load(this.i32, flag) === 0) return
    queue.lock(context)
    queue.walk(context, new WakeCount(1))
    if (queue.isEmpty(context)) Atomics.store(this.i32, flag, 0)
    queue.unlock(context)
  }

  private pushFrom(record: ArrayLike<number>): boolean {
    if (record.length !== this.fields) {
      throw new RangeError(
        `push: the record has ${record.length} numbers; give ${this.fields}, as the queue has`,
      )
    }
    const { context } = currentFutexes()
    this.lock(context)
    const pushed = this.pushLocked(record)
    unlockObject(context, this)
    if (pushed) this.wakeOther(context, true)
    return pushed
  }

  private pushLocked(record: ArrayLike<number>): boolean {
    const { i32, at, f64, fields } = this
    const tail = i32[at + TAIL]
    const next = this.after(tail)
    if (next === i32[at + HEAD]) return false
    const slot = (at + HEADER_WORDS) / 2 + tail * fields
    for (let field = 0; field < fields; field++) f64[slot + field] = record[field]
    Atomics.store(i32, at + TAIL, next)
    return true
  }

  private popLocked(record: { [index: number]: number }): boolean {
    const { i32, at, f64, fields } = this
    const head = i32[at + HEAD]
    if (head === i32[at + TAIL]) return false
    const slot = (at + HEADER_WORDS) / 2 + head * fields
    for (let field = 0; field < fields; field++) record[field] = f64[slot + field]
    Atomics.store(i32, at + HEAD, this.after(head))
    return true
  }

  private after(index: number): number {
    return index === this.capacity ? 0 : index + 1
  }

  private *pushInTask(
    record: ArrayLike<number>,
    options: WaitOptions | undefined,
  ): Generator<number, void, unknown> {
    if (this.pushFrom(record)) return
    yield* inTask(new RecordWait(this, true, record), options)
  }

  private *popInTask(
    into: number[] | Float64Array,
    options: WaitOptions | undefined,
  ): Generator<number, ArrayLike<number>, unknown> {
    if (this.tryPopInto(into)) return into
    yield* inTask(new RecordWait(this, false, into), options)
    return into
  }
}

/** Not a QueueWait: the object's lock is taken before the lock of a queue. */
export class RecordWait implements Wait {
  readonly what: string
  private readonly shared: SharedQueue
  private readonly pushes: boolean
  private readonly record: ArrayLike<number>

  constructor(shared: SharedQueue, pushes: boolean, record: ArrayLike<number>) {
    this.what = pushes ? 'push' : 'pop'
    this.shared = shared
    this.pushes = pushes
    this.record = record
  }

  begin(context: FutexContext, waiterOptions: WaiterOptions): readonly number[] {
    const waiters = [makeWaiter(context, 1, waiterOptions)]
    let queued = false
    try {
      queued = !this.shared.performOrQueue(context, this.pushes, this.record, waiters[0])
    } finally {
      if (!queued) freeWaiters(context, waiters)
    }
    if (queued) return waiters
    this.shared.wakeOther(context, this.pushes)
    return []
  }

  /** It checks again: another thread may have been first. */
  woken(): boolean {
    return false
  }

  leave(context: FutexContext, _waiters: readonly number[], index: number): void {
    if (index >= 0) this.shared.wakeOther(context, !this.pushes)
  }
}

blockingMethods(SharedQueue.prototype, 'push', 'pop')
