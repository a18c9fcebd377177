/** The search of TimSort: from a hint in steps that double ("galloping"), then by bisection. */
import { frames, rest } from '../../../coroutine/core/frames.ts'
import { comparisonResult, type Comparator, type Suspending } from './comparator.ts'

/**
 * The index for `key` in the sorted part of `array` from `base`: after equal elements if `after`, else before
 * them.
 */
export function* gallop(
  compare: Comparator,
  after: boolean,
  array: any[],
  key: unknown,
  base: number,
  length: number,
  hint: number,
): Suspending<number> {
  let last = 0
  let offset = 1
  let left = after ? key : array[base + hint]
  let right = after ? array[base + hint] : key
  let answer = compare(left, right)
  if (frames.u !== 0) answer = yield* rest()
  let order = comparisonResult(answer)
  const goesUp = order < 0 !== after
  const most = goesUp ? length - hint : hint + 1
  while (offset < most) {
    const element = array[goesUp ? base + hint + offset : base + hint - offset]
    left = after ? key : element
    right = after ? element : key
    answer = compare(left, right)
    if (frames.u !== 0) answer = yield* rest()
    order = comparisonResult(answer)
    if ((order < 0 !== after) !== goesUp) break
    last = offset
    offset = offset * 2 + 1
  }
  if (offset > most) offset = most
  let low = goesUp ? hint + last : hint - offset
  let high = goesUp ? hint + offset : hint - last
  low++
  while (low < high) {
    const middle = low + ((high - low) >> 1)
    left = after ? key : array[base + middle]
    right = after ? array[base + middle] : key
    answer = compare(left, right)
    if (frames.u !== 0) answer = yield* rest()
    order = comparisonResult(answer)
    if (order < 0 !== after) low = middle + 1
    else high = middle
  }
  return high
}
