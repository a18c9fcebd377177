/** The comparison of two elements, with a comparator that may suspend. */
import { unwinds } from '../../../coroutine/core/coroutine.ts'
import { frames, run } from '../../../coroutine/core/frames.ts'
import { type Callable, resumableOf } from '../builtins/callback.ts'

/** A computation that may suspend, with a `T` as its result. */
export type Suspending<T> = Generator<number, T, unknown>

/**
 * Calls the comparator of the program. It may unwind: the caller checks `frames.u`, and then `rest()` gives
 * the value. So no generator is made for a comparison that does not stop.
 */
export type Comparator = (left: any, right: any) => unknown

export function comparatorOf(fn: Callable): Comparator {
  if (unwinds(fn)) {
    return (left, right) => {
      frames.ok = 1
      try {
        return fn(left, right)
      } finally {
        frames.ok = 0
      }
    }
  }
  const resumable = resumableOf(fn)
  return resumable === undefined ? fn : (left, right) => run(resumable(left, right))
}

/** The result of a comparator: a value that is not a number counts as equal. */
export function comparisonResult(answer: unknown): number {
  const value = typeof answer === 'number' ? answer : +(answer as number)
  return value === value ? value : 0
}
