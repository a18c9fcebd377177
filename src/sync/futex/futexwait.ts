import type { FutexContext } from '../../futex/core/context.ts'
import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import type { Prepared } from '../../futex/operations/call.ts'
import { deadlineOf, timeoutLimit, wallLimit } from '../../futex/core/deadline.ts'
import { EAGAIN, EINTR, EINVAL, ETIMEDOUT, FutexError } from '../../futex/core/errno.ts'
import { parkFor, type WaitResult } from '../../futex/core/futexes.ts'
import { type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import type { FutexWord } from '../../futex/core/space.ts'
import { finishWait, promiseWaiter, RESTART, taskWaiter, threadWaiter } from '../../futex/core/sleep.ts'
import {
  freeWaiters,
  MATCH_ANY,
  queueNewWaiter,
  type WaiterOptions,
} from '../../futex/operations/waitwake.ts'
import { bitsetIn, type FutexView, sharedIn, valueIn, wordOf } from './futexword.ts'
import { refuseBlocking, refuseInTask } from '../wait/caller.ts'

/** The options of a wait for a lock. */
export interface FutexLockOptions {
  /** Milliseconds. */
  readonly timeout?: number | undefined
  /** A moment of the wall clock. When that clock is set, the wait follows it. */
  readonly until?: Date | number | undefined
  /** Ends the wait by throwing the signal's reason. A thread that blocks checks it only before it blocks. */
  readonly signal?: AbortSignal | undefined
}

export interface FutexWaitOptions extends FutexLockOptions {
  /** A wake wakes it if the two bitsets have a bit in common. */
  readonly bitset?: number | undefined
  /** The flags of futex2: FUTEX2_PRIVATE, and the size, if it is given, must be that of the view. */
  readonly flags?: number | undefined
}

/** A word of a vector, as a struct futex_waitv. */
export interface FutexWaitEntry {
  readonly view: FutexView
  readonly index: number
  readonly value: number | bigint
  /** The flags of futex2, for this word. */
  readonly flags?: number | undefined
}

export const lockOptions: Known<FutexLockOptions> = { timeout: true, until: true, signal: true }

const waitOptions: Known<FutexWaitOptions> = { ...lockOptions, bitset: true, flags: true }

/** The deadline of a wait by this domain's clock, or Infinity. */
export function deadlineIn(
  { now }: FutexContext,
  what: string,
  options: FutexLockOptions,
  known: Known<FutexLockOptions> = waitOptions,
): number {
  refuseUnknown(`the options of ${what}`, options, known)
  const { timeout, until } = options
  if (timeout !== undefined && until !== undefined)
    throw new FutexError(EINVAL, what, `timeout: ${String(timeout)} beside until; give one of them`)
  const moment = typeof until === 'number' || until instanceof Date ? Number(until) : Number.NaN
  const limit = until === undefined ? timeoutLimit(timeout ?? Infinity) : wallLimit(moment)
  if (typeof limit !== 'number' || Number.isNaN(limit) || (timeout ?? moment) < 0) {
    const text = until === undefined ? `timeout: ${String(timeout)}` : `until: ${String(until)}`
    throw new FutexError(EINVAL, what, `${text} is not a time`)
  }
  return limit === Infinity ? Infinity : deadlineOf(now, limit)
}

/** Throws the reason of a signal that is aborted. */
export function checkSignal(what: string, signal: AbortSignal | undefined): void {
  if (signal === undefined) return
  if (!(signal instanceof AbortSignal))
    throw new FutexError(EINVAL, what, `signal: ${typeof signal} is not an AbortSignal`)
  signal.throwIfAborted()
}

function prepare(
  futexes: Futexes,
  waiterOptions: WaiterOptions,
  what: string,
  entries: readonly FutexWaitEntry[],
  options: FutexWaitOptions,
): Prepared {
  checkSignal(what, options.signal)
  const { context } = futexes
  const shared = entries.map(({ view, flags }) => sharedIn(view, what, flags))
  const bitset = bitsetIn(what, options.bitset ?? MATCH_ANY)
  const deadline = deadlineIn(context, what, options)
  const words = entries.map(({ view, index }) => wordOf(futexes, what, view, index))
  const values = entries.map(({ view, value }) => valueIn(view, what, value))
  const waiters: number[] = []
  for (let at = 0; at < words.length; at++) {
    let queued: number
    try {
      queued = queueOne(context, words[at], shared[at], values[at], bitset, waiterOptions, waiters)
    } catch (full) {
      // The waiters before it leave their queues: they would take wakeups from other waiters.
      const woken = takeBack(context, waiters, -EAGAIN)
      if (woken < 0) throw full
      return woken
    }
    // Another of the words may have been woken meanwhile: that is the result then.
    if (queued < 0) return takeBack(context, waiters, queued)
    waiters.push(queued)
  }
  return { waiters, deadline, vector: true }
}

/**
 * Queues a waiter; returns it, or an error, negated. A word that has changed already costs no lock and no
 * waiter.
 */
function queueOne(
  context: FutexContext,
  word: FutexWord,
  shared: boolean,
  value: number,
  bitset: number,
  waiterOptions: WaiterOptions,
  before: readonly number[],
): number {
  if (Atomics.load(word.i32, word.index) !== value) return -EAGAIN
  return queueNewWaiter(context, word, shared, value, bitset, waiterOptions, before[0])
}

function takeBack(context: FutexContext, waiters: readonly number[], error: number): number {
  const result = waiters.length === 0 ? error : finishWait(context, waiters, error)
  freeWaiters(context, waiters)
  return result
}

/** The index of the woken word, or an error, negated. After a death the wait ends with a spurious wakeup. */
function done(result: number): number {
  return result === RESTART ? 0 : result
}

/** The result of a wait for its caller. */
export function said(result: number, what: string, signal?: AbortSignal | undefined): WaitResult {
  if (result >= 0) return 'ok'
  if (result === -EAGAIN) return 'not-equal'
  if (result === -ETIMEDOUT) return 'timed-out'
  if (result === -EINTR) signal?.throwIfAborted()
  throw new FutexError(-result, what)
}

/** The wait of a task: the index of the word that was woken, or an error, negated. */
export function* waitIn(
  what: string,
  entries: readonly FutexWaitEntry[],
  options: FutexWaitOptions,
): Generator<number, number, unknown> {
  const futexes = currentFutexes()
  const task = currentTask()
  if (task === null)
    throw new FutexError(EINVAL, what, 'no task of a kernel runs here: use the Sync or Async form')
  const prepared = prepare(futexes, taskWaiter(task), what, entries, options)
  return done(typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared, options.signal))
}

resumable(waitIn)

/** The same, blocking this thread. */
export function waitOnThread(
  what: string,
  entries: readonly FutexWaitEntry[],
  options: FutexWaitOptions,
): number {
  refuseInTask(what)
  const futexes = currentFutexes()
  refuseBlocking(futexes, what)
  const prepared = prepare(futexes, threadWaiter(), what, entries, options)
  return done(typeof prepared === 'number' ? prepared : futexes.blockFor(prepared))
}

/** The same, as a promise. */
export async function waitAsPromise(
  what: string,
  entries: readonly FutexWaitEntry[],
  options: FutexWaitOptions,
): Promise<number> {
  const futexes = currentFutexes()
  const prepared = prepare(futexes, promiseWaiter(), what, entries, options)
  return done(typeof prepared === 'number' ? prepared : await futexes.promiseFor(prepared, options.signal))
}
