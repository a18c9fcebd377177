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
