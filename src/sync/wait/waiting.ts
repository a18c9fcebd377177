import { isFault, leavesToRecovery } from '../../arena/sync/section.ts'
import { type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { checkTime, timeoutError, waitForm } from '../../coroutine/core/blocking.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import { blocks, closeFaces, finishedFace, openFaces } from '../../coroutine/core/faces.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { type Ambient, ambient } from '../../futex/core/ambient.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { deadlineOf as deadlineOfLimit, sleepMs, timeLeft, wallLimit } from '../../futex/core/deadline.ts'
import { EINTR, ETIMEDOUT } from '../../futex/core/errno.ts'
import { Waiter, QUEUE_WOKEN } from '../../futex/core/records.ts'
import {
  finishWait,
  isWaitOver,
  keepAlive,
  DEADLOCK_CHECK_MS,
  type LongWait,
  promiseWaiter,
  RESTART,
  sleepPromise,
  sleepTask,
  sleepThread,
  taskWaiter,
  threadWaiter,
} from '../../futex/core/sleep.ts'
import { freeWaiters, makeWaiter, type WaiterOptions } from '../../futex/operations/waitwake.ts'
import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { SyncError } from './errors.ts'
import { refuseBlocking } from './caller.ts'
import type { ParkingQueue } from './queue.ts'

/**
 * One wait, three ways. An object says what is particular to it in a `Wait`; how a task, a thread and a
 * promise wait is here, once for all objects.
 *
 *   [1] admit   under the queue's lock: true: what it wanted is done. false: it is queued, and the words say that someone waits
 *   [2] asleep
 *   [3] woken   true: what it wanted was given with the wake. false: it competes again, from [1]
 *   [4] leave   it gives up: its time is over, its signal was aborted, or its task was thrown into. It is off the queue. `woken`: a wake
 *               was first; what it brought must be passed on, because whoever sent it counts on it
 */
export interface Wait {
  /** The verb, for messages: `mutex.lock`. */
  readonly what: string
  readonly queue: ParkingQueue
  /** What those who walk the queue read in the waiter. Read at [1]. */
  readonly bits: number
  /** Before all others, for who holds them up. */
  readonly first?: boolean
  admit(context: FutexContext, waiter: number): boolean
  woken(context: FutexContext, waiter: number): boolean
  leave(context: FutexContext, woken: boolean, waiter: number): void
  /**
   * It is off the queue and was not woken: whether one who died had given it what it wanted all the same.
   * Then it counts as woken.
   */
  servedByDead?(context: FutexContext, waiter: number): boolean
  /**
   * A thread died, and whoever waits looks again. True: this counts as a wake. Else it goes round, from [1].
   */
  restarted?(): boolean
  /** Of a wait for a lock: is called upon while it lasts. */
  readonly long?: LongWait | null
  /** It need not wait: what must not be done under the queue's lock is done now. */
  admitted?(context: FutexContext): void
  /** Between [1] and [2]: it is on the queue, and what must not be done before that is done now. */
  queued?(): void
}

export interface WaitOptions {
  /** Milliseconds; then a TimeoutError is thrown. */
  readonly timeout?: number | undefined
  /**
   * A moment of the wall clock, as a Date or as Date.now() counts; then a TimeoutError is thrown. When that
   * clock is set meanwhile, the wait follows it. Not beside `timeout`.
   */
  readonly until?: Date | number | undefined
  /** Ends the wait by throwing the signal's reason. A thread that blocks looks at it only before it does. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The same as the three drivers below see it: one that waits at several queues at once has several waiters,
 * of which the first is the sleeper.
 */
export interface Parking {
  readonly what: string
  /** [1]. The waiters, queued; none: there is nothing to wait for. */
  begin(context: FutexContext, who: WaiterOptions): readonly number[]
  /** [3]; `index`: which of the waiters was woken. */
  woken(context: FutexContext, waiters: readonly number[], index: number): boolean
  /** [4]; `index`: which of them was woken, or -1. */
  leave(context: FutexContext, waiters: readonly number[], index: number): void
  /** None of them was woken: which of them one who died had served, or -1. */
  servedByDead?(context: FutexContext, waiters: readonly number[]): number
  /** See Wait. */
  restarted?(): boolean
  /** It is about to go round: what its waiters had is this thread's again. */
  takeBack?(context: FutexContext, waiters: readonly number[]): void
  readonly long?: LongWait | null
}

/** So often a thread looks at a lock before it blocks. */
export const WAIT_SPINS = 60

const FIRST_PRIORITY = -1

/** A wait at one queue. */
export class OneQueue implements Parking {
  readonly what: string
  readonly long: LongWait | null
  private readonly wait: Wait

  constructor(wait: Wait) {
    this.what = wait.what
    this.long = wait.long ?? null
    this.wait = wait
  }

  begin(context: FutexContext, who: WaiterOptions): readonly number[] {
    const waiter = begin(context, this.wait, who)
    return waiter === 0 ? [] : [waiter]
  }

  woken(context: FutexContext, waiters: readonly number[]): boolean {
    return this.wait.woken(context, waiters[0])
  }

  leave(context: FutexContext, waiters: readonly number[], index: number): void {
    this.wait.leave(context, index >= 0, waiters[0])
  }

  servedByDead(context: FutexContext, waiters: readonly number[]): number {
    return this.wait.servedByDead?.(context, waiters[0]) === true ? 0 : -1
  }

  restarted(): boolean {
    return this.wait.restarted?.() ?? false
  }
}

const waitOptions: Known<WaitOptions> = { timeout: true, until: true, signal: true }

/** The time and signal of a call, looked at before anything else is done. */
export function checkWait(options: WaitOptions | undefined): void {
  if (options === undefined) return
  refuseUnknown('the options of a wait', options, waitOptions)
  if (options.timeout !== undefined) checkTime('timeout', options.timeout)
  if (options.until !== undefined) checkUntil(options)
  options.signal?.throwIfAborted()
}

function checkUntil({ until, timeout }: WaitOptions): void {
  if (!(until instanceof Date ? until.getTime() >= 0 : typeof until === 'number' && until >= 0)) {
    throw new RangeError(`until: ${String(until)} is not a moment; give a Date, or a number as of Date.now()`)
  }
  if (timeout !== undefined)
    throw new TypeError('until: a wait has a timeout or an end, not both; leave one out')
}

export function timedOut(what: string, options: WaitOptions | undefined): Error {
  if (options?.until === undefined) return timeoutError(what, options?.timeout ?? 0)
  return new DOMException(`${what}: ${new Date(options.until).toISOString()} has passed`, 'TimeoutError')
}

/** How long a wait may last, as futex/core/deadline.ts has limits. */
export function limitOf(options: WaitOptions | undefined): number {
  if (options === undefined) return Infinity
  return options.until === undefined ? (options.timeout ?? Infinity) : wallLimit(Number(options.until))
}

function deadlineOf({ now }: FutexContext, options: WaitOptions | undefined): number {
  const limit = limitOf(options)
  return limit === Infinity ? Infinity : deadlineOfLimit(now, limit)
}

/** [1]: the waiter, queued; or 0: there is nothing to wait for. */
function begin(context: FutexContext, wait: Wait, who: WaiterOptions): number {
  const options = wait.first === true ? { ...who, priority: FIRST_PRIORITY } : who
  const waiter = makeWaiter(context, wait.bits, options)
  let queued = false
  try {
    wait.queue.lock(context)
    try {
      queued = !wait.admit(context, waiter)
      if (queued) wait.queue.add(context, waiter)
    } catch (error) {
      if (!isFault(error)) wait.queue.unlock(context)
      throw error
    }
    wait.queue.unlock(context)
  } catch (error) {
    if (!isFault(error)) freeWaiters(context, [waiter])
    throw error
  }
  if (!queued) freeWaiters(context, [waiter])
  if (!queued) {
    wait.admitted?.(context)
    return 0
  }
  wait.queued?.()
  return waiter
}

/** [3] or [4]. True: it has what it wanted. False: its time is over. Undefined: it goes round again. */
function end(
  context: FutexContext,
  parking: Parking,
  waiters: readonly number[],
  result: number,
): boolean | undefined {
  try {
    const served = result >= 0 ? result : (parking.servedByDead?.(context, waiters) ?? -1)
    if (served >= 0 && result !== -EINTR) return parking.woken(context, waiters, served) ? true : undefined
    if (result === RESTART) {
      parking.takeBack?.(context, waiters)
      return parking.restarted?.() === true ? true : undefined
    }
    parking.leave(context, waiters, served)
    if (result === -ETIMEDOUT) return false
    throw new SyncError('ERR_HEDDLE_INTERRUPTED', `${parking.what}: the task was interrupted while it waited`)
  } finally {
    freeWaiters(context, waiters)
  }
}

/** Thrown into, or aborted: it is off its queues. */
export function abandon(context: FutexContext, parking: Parking, waiters: readonly number[]): void {
  const woken = waiters.findIndex(waiter => Atomics.load(context.i32, waiter + Waiter.queue) === QUEUE_WOKEN)
  try {
    const served = woken >= 0 ? woken : (parking.servedByDead?.(context, waiters) ?? -1)
    parking.leave(context, waiters, served)
  } finally {
    freeWaiters(context, waiters)
  }
}

/** Blocks the thread. False: the time is over. */
export function waitSync(here: Ambient, wait: Wait, options: WaitOptions | undefined): boolean {
  return parkSync(here, new OneQueue(wait), options)
}

export function parkSync(here: Ambient, parking: Parking, options: WaitOptions | undefined): boolean {
  refuseBlocking(here, parking.what)
  const { context } = here.futexes
  const deadline = deadlineOf(context, options)
  const waiters = parking.begin(context, threadWaiter())
  return waiters.length === 0 || sleepOn(context, parking, waiters, deadline)
}

/** The rest of parkSync, for one that is queued. */
export function sleepOn(
  context: FutexContext,
  parking: Parking,
  waiters: readonly number[],
  deadline: number,
): boolean {
  for (let queued = waiters; queued.length > 0; queued = parking.begin(context, threadWaiter())) {
    const done = end(context, parking, queued, sleepThread(context, queued, deadline, parking.long))
    if (done !== undefined) return done
  }
  return true
}

/** A promise. False: the time is over. Rejects with the signal's reason. */
export async function waitAsync(
  here: Ambient,
  wait: Wait,
  options: WaitOptions | undefined,
): Promise<boolean> {
  return await parkAsync(here, new OneQueue(wait), options)
}

export async function parkAsync(
  here: Ambient,
  parking: Parking,
  options: WaitOptions | undefined,
): Promise<boolean> {
  const { context } = here.futexes
  const deadline = deadlineOf(context, options)
  for (;;) {
    const waiters = parking.begin(context, promiseWaiter())
    if (waiters.length === 0) return true
    let result: number
    try {
      result = await sleepPromise(context, waiters, deadline, options?.signal)
    } catch (aborted) {
      abandon(context, parking, waiters)
      throw aborted
    }
    const done = end(context, parking, waiters, result)
    if (done !== undefined) return done
  }
}

/** Parks the task, or the coroutine of a schedule. False: the time is over. */
export function* waitTask(wait: Wait, options: WaitOptions | undefined): Generator<number, boolean, unknown> {
  return yield* parkTask(new OneQueue(wait), options)
}

export function* parkTask(
  parking: Parking,
  options: WaitOptions | undefined,
): Generator<number, boolean, unknown> {
  const deadline = deadlineOf(ambient().futexes.context, options)
  for (;;) {
    const here = ambient()
    const task = currentTask()
    const waiters = parking.begin(here.futexes.context, task === null ? promiseWaiter() : taskWaiter(task))
    if (waiters.length === 0) return true
    let result: number
    try {
      result =
        task === null
          ? yield* sleepCoroutine(
              here.futexes.context,
              waiters,
              deadline,
              options?.signal,
              parking.long ?? null,
            )
          : yield* sleepTask(task, waiters, deadline, options?.signal, parking.long)
    } catch (thrown) {
      const { context } = ambient().futexes
      if (!leavesToRecovery(context.thread, thrown)) abandon(context, parking, waiters)
      throw thrown
    }
    const { context } = ambient().futexes
    if (result === -EINTR && options?.signal?.aborted) {
      abandon(context, parking, waiters)
      throw options.signal.reason
    }
    const done = end(context, parking, waiters, result)
    if (done !== undefined) return done
  }
}

resumable(waitTask)
resumable(parkTask)

/**
 * A coroutine of a schedule: it sleeps at its waiter's signal as a promise does, and its thread runs others
 * meanwhile.
 */
function* sleepCoroutine(
  context: FutexContext,
  waiters: readonly number[],
  deadline: number,
  signal: AbortSignal | undefined,
  long: LongWait | null,
): Generator<number, number, unknown> {
  const { i32 } = context
  const step = long !== null && context.detectsDeadlocks ? DEADLOCK_CHECK_MS : Infinity
  const at = waiters[0] + Waiter.signal
  const release = keepAlive()
  let finished = false
  try {
    for (;;) {
      Atomics.store(i32, at, 0)
      if (isWaitOver(context, waiters)) break
      const left = timeLeft(context.now, deadline)
      if (left <= 0) break
      const nap = sleepMs(deadline, left)
      const waiting = Atomics.waitAsync(i32, at, 0, Math.ceil(Math.min(nap, step)))
      const slept = waiting.async ? yield* waitForm(waiting.value, { signal }) : waiting.value
      if (slept === 'timed-out' && step < nap) long?.checkDeadlock(context)
    }
    finished = true
    return finishWait(context, waiters, -ETIMEDOUT)
  } finally {
    release()
    // Thrown into: still queued, but for what a wake took off first.
    if (!finished) finishWait(context, waiters, -EINTR)
    Atomics.notify(i32, at)
  }
}

resumable(sleepCoroutine)

/**
 * What a blocking verb returns when there is nothing to wait for: `yield*` of it ends at once. No generator
 * is made.
 */
export class Finished<T> implements Iterator<number, T, unknown>, Iterable<number, T, unknown> {
  private readonly result: IteratorReturnResult<T>

  constructor(value: T) {
    this.result = { done: true, value }
  }

  [Symbol.iterator](): this {
    return this
  }

  next(): IteratorResult<number, T> {
    return this.result
  }
}

Object.defineProperty(Finished.prototype, finishedFace, { value: true })

/**
 * Gives methods the second face of a blocking call: plain in a 'use task' function. The first is `yield*`.
 */
export function blockingMethods(prototype: object, ...names: string[]): void {
  // What the faces return: `toRun` must learn that it is run.
  for (const { value } of Object.values(Object.getOwnPropertyDescriptors(prototype))) {
    if (Object.prototype.toString.call(value) === '[object GeneratorFunction]') resumable(value as never)
  }
  for (const name of names) {
    const method = Object.getOwnPropertyDescriptor(prototype, name)?.value as (...args: unknown[]) => unknown
    const resumableForm = function* (this: unknown, ...args: unknown[]): Generator<number, unknown, unknown> {
      const before = openFaces()
      const made = method.apply(this, args) as Generator<number, unknown, unknown>
      closeFaces(before)
      return yield* made
    }
    Object.defineProperty(resumableForm, blocks, { value: true })
    Object.defineProperty(method, twin, { value: resumable(resumableForm) })
  }
}
