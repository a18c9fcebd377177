import { assert } from '../../arena/assert.ts'
import { type Layout, record, word, words } from '../../arena/memory/record.ts'

/**
 * The two-layer ready mask: which of 64 levels have tasks, and the lowest of those in constant time.
 *
 *   ready            8 bits: bit i is set when a level of group i (levels 8i to 8i + 7) is set
 *   readySecondary  64 bits: bit n is set when level n has tasks; groups 0 to 3 in the first word, 4 to 7 in
 *                   the second
 *
 * The two layers never disagree while the lock that guards the mask is free.
 */
export const ReadyMask: Layout<'ready' | 'readySecondary'> = record('ready mask', {
  ready: word,
  readySecondary: words(2),
})

const { ready, readySecondary } = ReadyMask

/** The number of the lowest set bit. Asserts that a bit is set. */
function lowestBit(bits: number): number {
  assert(bits !== 0, 'counted the trailing zeros of an empty mask')
  return 31 - Math.clz32(bits & -bits)
}

export function setReady(i32: Int32Array, mask: number, level: number): void {
  i32[mask + readySecondary + (level >> 5)] |= 1 << (level & 31)
  i32[mask + ready] |= 1 << (level >> 3)
}

/** Clears the level; the first layer only when its whole group has emptied. */
export function clearReady(i32: Int32Array, mask: number, level: number): void {
  const at = mask + readySecondary + (level >> 5)
  const left = i32[at] & ~(1 << (level & 31))
  i32[at] = left
  if (((left >>> (level & 24)) & 0xff) === 0) i32[mask + ready] &= ~(1 << (level >> 3))
}

export function isReady(i32: Int32Array, mask: number, level: number): boolean {
  return ((i32[mask + readySecondary + (level >> 5)] >>> (level & 31)) & 1) !== 0
}

/** The lowest, that is the best, level that is set. The mask must not be empty. */
export function bestReady(i32: Int32Array, mask: number): number {
  const group = lowestBit(i32[mask + ready])
  const bits = (i32[mask + readySecondary + (group >> 2)] >>> ((group & 3) << 3)) & 0xff
  return (group << 3) + lowestBit(bits)
}

/** Whether no better level than this one is set. It need not be set itself. */
export function isBestReady(i32: Int32Array, mask: number, level: number): boolean {
  if ((i32[mask + ready] & ((1 << (level >> 3)) - 1)) !== 0) return false
  const group = i32[mask + readySecondary + (level >> 5)] >>> (level & 24)
  return (group & ((1 << (level & 7)) - 1)) === 0
}
