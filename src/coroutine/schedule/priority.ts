import { PRIORITY_LEVELS } from './readyqueue.ts'

/** 0 runs first, 63 last; the names stand for levels. */
export type Priority = number | 'high' | 'normal' | 'low'

const named: Readonly<Record<string, number>> = { high: 16, normal: 32, low: 48 }

export function priorityLevel(priority: Priority): number {
  const level = typeof priority === 'string' ? named[priority] : priority
  if (!Number.isInteger(level) || level < 0 || level >= PRIORITY_LEVELS) {
    throw new RangeError(
      `priority: ${String(priority)} is not a priority; give an integer from 0 (first) to ${PRIORITY_LEVELS - 1} (last), or 'high', 'normal' or 'low'`,
    )
  }
  return level
}
