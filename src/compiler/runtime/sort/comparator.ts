/** The comparison of two elements, with a comparator that may suspend. */
import type { Twin } from '../../../coroutine/core/coroutine.ts'

/** A computation that may suspend, with a `T` as its result. */
export type Suspending<T> = Generator<number, T, unknown>

/** The comparator, or its resumable form if it has one. */
export interface Comparator {
  readonly plain: (left: any, right: any) => unknown
  readonly resumable: Twin | undefined
}

/** The result of a comparator: a value that is not a number counts as equal. */
export function comparisonResult(answer: unknown): number {
  const value = typeof answer === 'number' ? answer : +(answer as number)
  return value === value ? value : 0
}
