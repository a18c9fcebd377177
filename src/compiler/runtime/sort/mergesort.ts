/** The sort of typed arrays, with the same comparisons as the engine's. */
import { needResched, PREEMPTED } from '../../../coroutine/core/coroutine.ts'
import { frames, rest } from '../../../coroutine/core/frames.ts'
import { part } from '../../../coroutine/core/define.ts'
import { comparisonResult, type Comparator, type Suspending } from './comparator.ts'

/** Sorts halves, then merges them, from one copy into the other. */
export function* mergeSort(values: any[], compare: Comparator): Suspending<any[]> {
  const target = part(values, 0, values.length)
  if (values.length > 1) yield* split(part(values, 0, values.length), 0, values.length, target, compare)
  return target
}

function* split(from: any[], low: number, high: number, into: any[], compare: Comparator): Suspending<void> {
  const middle = low + ((high - low) >> 1)
  if (middle - low > 1) yield* split(into, low, middle, from, compare)
  if (high - middle > 1) yield* split(into, middle, high, from, compare)
  let left = low
  let right = middle
  for (let at = low; at < high; at++) {
    if (left < middle && right >= high) into[at] = from[left++]
    else if (left < middle) {
      const a = from[left]
      const b = from[right]
      let answer = compare(a, b)
      if (frames.u !== 0) answer = yield* rest()
      if (comparisonResult(answer) <= 0) into[at] = from[left++]
      else into[at] = from[right++]
    } else into[at] = from[right++]
  }
  if (needResched()) yield PREEMPTED
}
