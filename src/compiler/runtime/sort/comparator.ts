/** How two elements are compared, with a comparator that may stop. */
import type { Twin } from '../../../coroutine/core/coroutine.ts'

/** What may stop, and gives a `T` in the end. */
export type Suspending<T> = Generator<number, T, unknown>

/** What is compared with what: the comparator, or its resumable form where it has one. */
export interface Comparator {
  readonly plain: (left: any, right: any) => unknown
  readonly resumable: Twin | undefined
}

/** A comparator's answer: what is not a number counts as equal. */
export function comparisonResult(answer: unknown): number {
  const value = typeof answer === 'number' ? answer : +(answer as number)
  return value === value ? value : 0
}
