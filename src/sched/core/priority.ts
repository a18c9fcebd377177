import { assert } from '../../arena/assert.ts'

/**
 * A priority is 6 bits of major level and 2 bits of minor: 0 is the highest, 255 the lowest. The major level
 * also names the scheduling class, so that finding the next task is finding the lowest set bit
 * (readymask.ts).
 *
 *   major   tasks
 *   0       FIFO: above the levels that a program can choose
 *   1-31    FIFO: outranks every ordinary task
 *   32      FAIR: ordinary tasks, the default; minor levels mean nothing here, nice does (fair.ts)
 *   33      EXT: scheduled by a policy that a user has loaded (ext.ts); without a policy, round robin
 *   34-62   FIFO: runs when no ordinary task wants to
 *   63      IDLE: each CPU's idle task
 */
export const MAJOR_LEVELS = 64
export const MINOR_LEVELS = 4

export const FAIR_MAJOR_PRIORITY = 32
export const EXT_MAJOR_PRIORITY = 33
export const IDLE_MAJOR_PRIORITY = 63

/** One past the lowest priority: compares as lower than every priority. */
export const PRIORITY_NONE = 256

export function majorPriority(priority: number): number {
  return priority >> 2
}

export function makePriority(major: number, minor: number): number {
  assert(major >= 0 && major < MAJOR_LEVELS, 'a major priority is 0 to 63')
  assert(minor >= 0 && minor < MINOR_LEVELS, 'a minor priority is 0 to 3')
  return (major << 2) | minor
}

export const FAIR_PRIORITY: number = makePriority(FAIR_MAJOR_PRIORITY, 0)
export const EXT_PRIORITY: number = makePriority(EXT_MAJOR_PRIORITY, 0)
export const IDLE_PRIORITY: number = makePriority(IDLE_MAJOR_PRIORITY, 3)

export const NICE_MIN = -20
export const NICE_MAX = 19
export const NICE_0_WEIGHT = 1024

/** Each step of nice is a factor of 1.25: two tasks one step apart share a CPU 55 : 45. */
const weights: readonly number[] = Array.from({ length: NICE_MAX - NICE_MIN + 1 }, (_, step) =>
  Math.round(NICE_0_WEIGHT / 1.25 ** (step + NICE_MIN)),
)

export function weightOfNice(nice: number): number {
  assert(Number.isInteger(nice) && nice >= NICE_MIN && nice <= NICE_MAX, 'nice is an integer from -20 to 19')
  return weights[nice - NICE_MIN]
}
