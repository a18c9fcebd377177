import { isFault, leavesToRecovery } from '../../arena/sync/section.ts'
import { type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { checkSignal, checkTime, suspendForm, timeoutError } from '../../coroutine/core/blocking.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import { blocks, closeFaces, finishedFace, openFaces } from '../../coroutine/core/faces.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import {
  deadlineOf as deadlineOfLimit,
  sleepMs,
  timeLeft,
  timeoutLimit,
  wallLimit,
} from '../../futex/core/deadline.ts'
import { EINTR, ETIMEDOUT } from '../../futex/core/errno.ts'
import { Waiter, QUEUE_WOKEN } from '../../futex/core/records.ts'
import {
  finishWait,
  isWaitOver,
  endKeepAlive,
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
import { type SleepEnd, sleepHere, stopSleepHere } from '../../futex/core/sleephere.ts'
import { freeWaiters, makeWaiter, type WaiterOptions } from '../../futex/operations/waitwake.ts'
import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { SyncError } from './errors.ts'
import { refuseBlocking } from './caller.ts'
import type { ParkingQueue } from './queue.ts'

/**
 * One wait, three ways: how a task, a thread and a promise wait is here, once for all objects. An object says
 * in a `Wait` what it waits for. A wait has one waiter record for each queue that it waits at; the first of
 * them is the sleeper. Most waits are at one queue (`QueueWait`).
 *
 *   [1] begin   queues the waiters, or does what was wanted and returns none
 *   [2] asleep
 *   [3] woken   true: the waker gave what was wanted. false: the waiter competes again, from [1]
 *   [4] leave   the waiter gives up: its time is over, its signal was aborted, or its task was thrown into.
 *               It is off its queues. If it was woken before that, it passes the wakeup on, because the
 *               waker counts on it
 */
export interface Wait {
  /** The verb, for messages: `lock`. */
  readonly what: string
  /** Of a wait for a lock: searches for deadlocks while the wait lasts. */
  readonly long?: LongWait | null
  /** [1] */
  begin(context: FutexContext, options: WaiterOptions): readonly number[]
  /** [3]; `index`: which of the waiters was woken. */
  woken(context: FutexContext, waiters: readonly number[], index: number): boolean
  /** [4]; `index`: which of the waiters was woken, or -1. */
  leave(context: FutexContext, waiters: readonly number[], index: number): void
  /** No waiter was woken. Returns the index of a waiter that a thread served before it died, or -1. */
  servedByDead?(context: FutexContext, waiters: readonly number[]): number
  /**
   * A thread died, and every waiter checks again. True: this counts as a wakeup. Else it begins again at [1].
   */
  restarted?(): boolean
  /** Before the wait begins again: this thread takes back what its waiters had. */
  takeBack?(context: FutexContext, waiters: readonly number[]): void
}

/** A wait at one queue. */
export abstract class QueueWait implements Wait {
  abstract readonly what: string
  long: LongWait | null = null
  readonly queue: ParkingQueue

  constructor(queue: ParkingQueue) {
    this.queue = queue
  }

  /** What a walk of the queue reads in the waiter. */
  bits(): number {
    return 1
  }

  /** Whether it goes before all others, because it holds them up. */
  protected get goesFirst(): boolean {
    return false
  }

  /**
   * The queue is locked. True: what was wanted is done. False: the waiter will be queued, and the words say
   * that a waiter is there.
   */
  abstract admit(context: FutexContext, waiter: number): boolean

  /** The waiter is on the queue, and the queue is unlocked. */
  protected queued(): void {}

  begin(context: FutexContext, options: WaiterOptions): readonly number[] {
    const { queue } = this
    const priority = this.goesFirst ? { ...options, priority: FIRST_PRIORITY } : options
    const waiter = makeWaiter(context, this.bits(), priority)
    const waiters = [waiter]
    let isQueued = false
    try {
      queue.lockedDo(context, () => {
        isQueued = !this.admit(context, waiter)
        if (isQueued) queue.add(context, waiter)
      })
    } catch (error) {
      if (!isFault(error)) freeWaiters(context, waiters)
      throw error
    }
    if (isQueued) {
      this.queued()
      return waiters
    }
    freeWaiters(context, waiters)
    return NO_WAITERS
  }

  woken(_context: FutexContext, _waiters: readonly number[]): boolean {
    return true
  }

  leave(_context: FutexContext, _waiters: readonly number[], _index: number): void {}
}

const NO_WAITERS: readonly number[] = []
const FIRST_PRIORITY = -1

export interface WaitOptions {
  /** Milliseconds; then a TimeoutError is thrown. */
  readonly timeout?: number | undefined
  /**
   * A moment of the wall clock, as a Date or as Date.now() counts; then a TimeoutError is thrown. When that
   * clock is set meanwhile, the wait follows it. Not beside `timeout`.
   */
  readonly until?: Date | number | undefined
  /** Ends the wait by throwing the signal's reason. A thread that blocks checks it only before it blocks. */
  readonly signal?: AbortSignal | undefined
}

/** How often a thread checks a lock before it blocks. */
export const WAIT_SPINS = 60

const waitOptions: Known<WaitOptions> = { timeout: true, until: true, signal: true }

/** Checks the time and the signal of a call, before it changes anything. */
export function checkWait(options: WaitOptions | undefined): void {
  if (options === undefined) return
  refuseUnknown('the options of a wait', options, waitOptions)
  if (options.timeout !== undefined) checkTime('timeout', options.timeout)
  if (options.until !== undefined) checkUntil(options)
  checkSignal(options.signal)
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

/** How long a wait may last, as a limit of futex/core/deadline.ts. */
export function limitOf(options: WaitOptions | undefined): number {
  if (options === undefined) return Infinity
  return options.until === undefined
    ? timeoutLimit(options.timeout ?? Infinity)
    : wallLimit(Number(options.until))
}

function deadlineOf({ now }: FutexContext, options: WaitOptions | undefined): number {
  const limit = limitOf(options)
  return limit === Infinity ? Infinity : deadlineOfLimit(now, limit)
}

/** [3] or [4]. True: the wait was served. False: the time is over. Undefined: it begins again at [1]. */
function end(
  context: FutexContext,
  wait: Wait,
  waiters: readonly number[],
  result: number,
): boolean | undefined {
  try {
    const served = result >= 0 ? result : (wait.servedByDead?.(context, waiters) ?? -1)
    if (served >= 0 && result !== -EINTR) return wait.woken(context, waiters, served) ? true : undefined
    if (result === RESTART) {
      wait.takeBack?.(context, waiters)
      return wait.restarted?.() === true ? true : undefined
    }
    wait.leave(context, waiters, served)
    if (result === -ETIMEDOUT) return false
    throw new SyncError('ERR_HEDDLE_INTERRUPTED', `${wait.what}: the task was interrupted while it waited`)
  } finally {
    freeWaiters(context, waiters)
  }
}

/** [4], after an exception or an abort. The waiters are off their queues. */
export function abandon(context: FutexContext, wait: Wait, waiters: readonly number[]): void {
  const woken = waiters.findIndex(waiter => Atomics.load(context.i32, waiter + Waiter.queue) === QUEUE_WOKEN)
  try {
    const served = woken >= 0 ? woken : (wait.servedByDead?.(context, waiters) ?? -1)
    wait.leave(context, waiters, served)
  } finally {
    freeWaiters(context, waiters)
  }
}

/** Blocks the thread. False: the time is over. */
export function waitSync(wait: Wait, options: WaitOptions | undefined): boolean {
  const futexes = currentFutexes()
  refuseBlocking(futexes, wait.what)
  const { context } = futexes
  const deadline = deadlineOf(context, options)
  const waiters = wait.begin(context, threadWaiter())
  return waiters.length === 0 || sleepOn(context, wait, waiters, deadline)
}

/** The rest of waitSync, after the waiters are queued. */
export function sleepOn(
  context: FutexContext,
  wait: Wait,
  waiters: readonly number[],
  deadline: number,
): boolean {
  for (let queued = waiters; queued.length > 0; queued = wait.begin(context, threadWaiter())) {
    const done = end(context, wait, queued, sleepThread(context, queued, deadline, wait.long))
    if (done !== undefined) return done
  }
  return true
}

/** A promise. False: the time is over. Rejects with the signal's reason. */
export async function waitAsync(wait: Wait, options: WaitOptions | undefined): Promise<boolean> {
  const { context } = currentFutexes()
  const deadline = deadlineOf(context, options)
  for (;;) {
    const waiters = wait.begin(context, promiseWaiter())
    if (waiters.length === 0) return true
    let result: number
    try {
      result = await sleepPromise(context, waiters, deadline, options?.signal)
    } catch (aborted) {
      abandon(context, wait, waiters)
      throw aborted
    }
    const done = end(context, wait, waiters, result)
    if (done !== undefined) return done
  }
}

/** Parks the task, or the coroutine of a schedule. False: the time is over. */
export function* waitTask(wait: Wait, options: WaitOptions | undefined): Generator<number, boolean, unknown> {
  const deadline = deadlineOf(currentFutexes().context, options)
  for (;;) {
    const futexes = currentFutexes()
    const task = currentTask()
    const waiters = wait.begin(futexes.context, task === null ? promiseWaiter() : taskWaiter(task))
    if (waiters.length === 0) return true
    let result: number
    try {
      result =
        task === null
          ? yield* sleepCoroutine(futexes.context, waiters, deadline, options?.signal, wait.long ?? null)
          : yield* sleepTask(task, waiters, deadline, options?.signal, wait.long)
    } catch (thrown) {
      const { context } = currentFutexes()
      if (!leavesToRecovery(context.thread, thrown)) abandon(context, wait, waiters)
      throw thrown
    }
    const { context } = currentFutexes()
    if (result === -EINTR && options?.signal?.aborted) {
      abandon(context, wait, waiters)
      throw options.signal.reason
    }
    const done = end(context, wait, waiters, result)
    if (done !== undefined) return done
  }
}

resumable(waitTask)

/**
 * A coroutine of a schedule sleeps at its waiter's signal as a promise does; its thread runs others
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
  keepAlive()
  let finished = false
  try {
    for (;;) {
      Atomics.store(i32, at, 0)
      if (isWaitOver(context, waiters)) break
      const left = timeLeft(context.now, deadline)
      if (left <= 0) break
      const nap = sleepMs(deadline, left)
      const slept = yield* suspendForm<SleepEnd>(
        waker => sleepHere(context, waiters[0], Math.min(nap, step), end => waker.wake(end)),
        { signal },
      )
      if (slept === 'timed-out' && step < nap) long?.checkDeadlock(context)
    }
    finished = true
    return finishWait(context, waiters, -ETIMEDOUT)
  } finally {
    endKeepAlive()
    if (!finished) {
      // Thrown into: the waiters are still queued, except those that a waker removed first.
      finishWait(context, waiters, -EINTR)
      stopSleepHere(context, waiters[0])
    }
  }
}

resumable(sleepCoroutine)

/**
 * What a blocking verb returns when it need not wait: `yield*` of it ends immediately, without a generator.
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
 * Gives blocking methods their second face, the plain call in a 'use task' function. The first is `yield*`.
 */
export function blockingMethods(prototype: object, ...names: string[]): void {
  // The generators that the faces return: `toRun` must learn that they are run.
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
