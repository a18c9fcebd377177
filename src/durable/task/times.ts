import { checkTime } from '../../coroutine/core/blocking.ts'

/** Milliseconds, for `sleep` and time limits. */
export function seconds(count: number): number {
  return count * 1000
}

export function minutes(count: number): number {
  return count * 60_000
}

export function hours(count: number): number {
  return count * 3_600_000
}

export function days(count: number): number {
  return count * 86_400_000
}

/** The longest time that a run may be given: the times of a database end somewhere. */
export const SPAN_MAX: number = days(36_500)

/** A time that the database adds to its clock. */
export function checkSpan(name: string, ms: unknown): asserts ms is number {
  checkTime(name, ms)
  if (ms > SPAN_MAX) throw new RangeError(`${name}: ${ms} ms is more than 100 years; give a shorter time`)
}
