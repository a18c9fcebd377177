import type { Platform } from '../../machine/core/platform.ts'
import type { Co } from './co.ts'
import { type Kinds, show } from '../core/knownoptions.ts'
import type { Priority } from './priority.ts'
import type { Slices } from './slices.ts'

export interface ScheduleOptions {
  /** Milliseconds that a coroutine runs before others, and the event loop, do. 1 by default. */
  slice?: number
  /**
   * Where the slice's end comes from: 'clock', read at safepoints; 'thread', a timekeeper thread; 'auto', the
   * clock until the schedule has been busy for a while, then the thread where there can be one. Or your own
   * source.
   */
  ticks?: 'auto' | 'clock' | 'thread' | Slices
  platform?: Platform
  /**
   * Called with an error that no coroutine caught and no caller waits for. By default such an error is an
   * unhandled rejection.
   */
  onError?: (error: unknown, co: Co<any>) => void
}

export interface GoOptions {
  name?: string
  priority?: Priority
  /** Leaves the coroutine INITED until `resume`. */
  suspended?: boolean
}

export interface RunOptions extends Omit<GoOptions, 'suspended'> {
  /** Cancels: the reason is thrown into the coroutine where it waits, or at its next safepoint. */
  signal?: AbortSignal | undefined
  /** Milliseconds, from now; then a TimeoutError is thrown into the coroutine. */
  timeout?: number | undefined
  /** Receives the reports of the coroutine through `progress`, at most one per slice. */
  onProgress?: ((value: any) => void) | undefined
}

export const scheduleOptions: Kinds<ScheduleOptions> = {
  slice: 'checked',
  ticks: 'checked',
  platform: 'checked',
  onError: 'function',
}
export const goOptions: Kinds<GoOptions> = { name: 'string', priority: 'checked', suspended: 'boolean' }
export const runOptions: Kinds<RunOptions> = {
  name: 'string',
  priority: 'checked',
  signal: 'checked',
  timeout: 'checked',
  onProgress: 'function',
}

/** The result of a coroutine that runs a function of return type `R`. */
export type ResultOf<R> = R extends Generator<any, infer T, any> ? Awaited<T> : Awaited<R>

export type AnyFunction = (...args: any[]) => any

/** `(fn, ...args)` or `(options, fn, ...args)`. */
export function splitCall<O extends object>(
  what: string,
  first: O | AnyFunction | undefined,
  rest: unknown[],
): { options: O; fn: AnyFunction; args: unknown[] } {
  if (typeof first === 'function') return { options: {} as O, fn: first as AnyFunction, args: rest }
  const [fn, ...args] = rest
  const isOptions = typeof first === 'object' && first !== null
  if (!isOptions || typeof fn !== 'function') {
    const given = isOptions ? `${what}(options, ${show(fn)})` : `${what}(${show(first)})`
    throw new TypeError(
      `${given}: not a function; give a function and its arguments, or options, a function and its arguments`,
    )
  }
  return { options: first, fn: fn as AnyFunction, args }
}

/** Throws unless `ticks` is a source of ticks. */
export function checkTicks(ticks: unknown): void {
  if ((typeof ticks === 'object' && ticks !== null) || ['auto', 'clock', 'thread'].includes(ticks as string))
    return
  throw new TypeError(
    `ticks: ${String(ticks)} is not a source of ticks; give 'auto', 'clock', 'thread', or your own source`,
  )
}

/** Throws unless `slice` is a positive number of milliseconds. */
export function checkSlice(slice: unknown): asserts slice is number {
  if (typeof slice !== 'number' || !(slice > 0) || slice === Infinity) {
    throw new RangeError(`slice: ${String(slice)} is not a slice; give a number of milliseconds above 0`)
  }
}
