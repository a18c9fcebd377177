/**
 * `sort` without a comparator, of a long list. The engine sorts runs of it, and the merges of the runs can be
 * suspended. It is for values that are compared without running code: numbers, strings and the like. The
 * engine sorts a list with objects as a whole, because a program can observe their `toString`.
 */
import { needResched, PREEMPTED } from '../../../coroutine/core/coroutine.ts'
import { define } from '../../../coroutine/core/define.ts'

type Stops<T> = Generator<number, T, unknown>

/** Shorter lists are sorted in one call: a few milliseconds. */
export const LONG_LIST: number = 4096
/** Elements in a run. */
const RUN = 1024
/** Merged elements between two safepoints, as a mask. */
const mergesBetween = 1023

const { sort } = Array.prototype

type IsBehind = (left: any, right: any) => boolean

/** The engine's default comparison. */
const byText: IsBehind = (left, right) => `${left}` > `${right}`
const byUnits: IsBehind = (left, right) => left > right
/** Numbers: negative zero is before zero, NaN is last. */
const byValue: IsBehind = (left, right) => {
  if (left < right) return false
  if (left > right) return true
  if (left === right) return left === 0 && Object.is(right, -0) && !Object.is(left, -0)
  return Number.isNaN(left) && !Number.isNaN(right)
}

/** Sorts a private list without holes and `undefined`. */
export function* defaultSort(values: unknown[], run: number = RUN): Stops<unknown[]> {
  let isText = true
  for (let k = 0; k < values.length; k++) {
    const value = values[k]
    if (typeof value === 'string') continue
    isText = false
    if (
      (typeof value === 'object' && value !== null) ||
      typeof value === 'function' ||
      typeof value === 'symbol'
    )
      return Reflect.apply(sort, values, []) as unknown[]
    if ((k & mergesBetween) === mergesBetween && needResched()) yield PREEMPTED
  }
  const from: unknown[] = []
  for (let start = 0; start < values.length; start += run) {
    const part: unknown[] = []
    const end = Math.min(start + run, values.length)
    for (let k = start; k < end; k++) define(part, k - start, values[k])
    Reflect.apply(sort, part, [])
    for (let k = start; k < end; k++) define(from, k, part[k - start])
    if (needResched()) yield PREEMPTED
  }
  return yield* merged(from, values, run, isText ? byUnits : byText)
}

/** The same for a typed array, by value. */
export function* defaultSortTyped<T extends { [index: number]: any; length: number }>(
  values: T & { subarray(from: number, to: number): { sort(): unknown }; slice(): T },
  run: number = RUN * 8,
): Stops<T> {
  for (let start = 0; start < values.length; start += run) {
    values.subarray(start, start + run).sort()
    if (needResched()) yield PREEMPTED
  }
  return yield* merged<T>(values, values.slice(), run, byValue)
}

/**
 * Merges sorted runs, back and forth between two lists of one length. Returns the one that is sorted at the
 * end.
 */
function* merged<T extends { [index: number]: any; length: number }>(
  first: T,
  second: T,
  run: number,
  isBehind: IsBehind,
): Stops<T> {
  let from = first
  let to = second
  const { length } = from
  for (let width = run; width < length; width *= 2) {
    let at = 0
    for (let start = 0; start < length; start += 2 * width) {
      let left = start
      const middle = Math.min(start + width, length)
      let right = middle
      const end = Math.min(start + 2 * width, length)
      while (at < end) {
        const takesRight = left >= middle || (right < end && isBehind(from[left], from[right]))
        to[at++] = takesRight ? from[right++] : from[left++]
        if ((at & mergesBetween) === 0 && needResched()) yield PREEMPTED
      }
    }
    const other = from
    from = to
    to = other
  }
  return from
}
