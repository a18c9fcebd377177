import type { FutexContext } from '../core/context.ts'
import { EFAULT, ENOSYS } from '../core/errno.ts'
import { wakeAll } from '../core/queue.ts'
import { Bucket } from '../core/records.ts'
import type { FutexWord } from '../core/space.ts'
import { MATCH_ANY, wakeQueued } from './waitwake.ts'

/** The operations of FUTEX_WAKE_OP on the second word, and the comparisons with its old value. */
export const OP_SET = 0
export const OP_ADD = 1
export const OP_OR = 2
export const OP_ANDN = 3
export const OP_XOR = 4
/** A flag of an operation: the operand is 1 << oparg. */
export const OP_ARG_SHIFT = 8

export const CMP_EQ = 0
export const CMP_NE = 1
export const CMP_LT = 2
export const CMP_LE = 3
export const CMP_GT = 4
export const CMP_GE = 5

/** Packs an operation in the form of the system call: 4, 4, 12 and 12 bits. */
export function encodeOp(op: number, oparg: number, cmp: number, cmparg: number): number {
  return ((op & 0xf) << 28) | ((cmp & 0xf) << 24) | ((oparg & 0xfff) << 12) | (cmparg & 0xfff)
}

function signExtend12(value: number): number {
  return (value << 20) >> 20
}

/**
 * FUTEX_WAKE_OP: changes the second word atomically, wakes waiters of the first word, and of the second if
 * its old value compares true. Returns how many were woken at both, or an error, negated.
 *
 * `exact`: a limit of 0 wakes none; the system call wakes one.
 *
 * Linux holds both queue locks for the whole call; here each walk holds its own. A waiter at the second word
 * reads the word under that word's lock: before the change it is queued when the second walk comes, after the
 * change it does not sleep. So no wakeup is lost, and no two locks are held.
 */
export function wakeOp(
  context: FutexContext,
  first: FutexWord,
  second: FutexWord,
  shared: boolean,
  limit: number,
  secondLimit: number,
  encoded: number,
  exact: boolean = false,
): number {
  const { i32 } = context
  if (!first.isMapped(i32, shared) || !second.isMapped(i32, shared)) return -EFAULT
  const outcome = changeAndCompare(second, encoded)
  if (outcome < 0) return outcome
  let woken = 0
  if ((limit !== 0 || !exact) && hasWaiters(i32, first, shared))
    woken = wakeQueued(context, first, shared, limit, MATCH_ANY)
  const wakesSecond = outcome === 1 && (secondLimit !== 0 || !exact)
  if (woken >= 0 && wakesSecond && hasWaiters(i32, second, shared)) {
    const more = wakeQueued(context, second, shared, secondLimit, MATCH_ANY)
    woken = more < 0 ? more : woken + more
  }
  wakeAll(context)
  return woken
}

function hasWaiters(i32: Int32Array, word: FutexWord, shared: boolean): boolean {
  return Atomics.load(i32, (shared ? word.sharedBucket : word.privateBucket) + Bucket.waiters) !== 0
}

/**
 * Returns 1 or 0 for the comparison, or -ENOSYS. An unknown comparison is detected after the change, as on
 * Linux.
 */
function changeAndCompare({ i32, index }: FutexWord, encoded: number): number {
  const op = (encoded >>> 28) & 7
  const cmp = (encoded >>> 24) & 0xf
  const cmparg = signExtend12(encoded)
  let oparg = signExtend12(encoded >> 12)
  if ((encoded & (OP_ARG_SHIFT << 28)) !== 0) oparg = 1 << (oparg & 31)
  let old: number
  switch (op) {
    case OP_SET:
      old = Atomics.exchange(i32, index, oparg)
      break
    case OP_ADD:
      old = Atomics.add(i32, index, oparg)
      break
    case OP_OR:
      old = Atomics.or(i32, index, oparg)
      break
    case OP_ANDN:
      old = Atomics.and(i32, index, ~oparg)
      break
    case OP_XOR:
      old = Atomics.xor(i32, index, oparg)
      break
    default:
      return -ENOSYS
  }
  switch (cmp) {
    case CMP_EQ:
      return old === cmparg ? 1 : 0
    case CMP_NE:
      return old !== cmparg ? 1 : 0
    case CMP_LT:
      return old < cmparg ? 1 : 0
    case CMP_LE:
      return old <= cmparg ? 1 : 0
    case CMP_GT:
      return old > cmparg ? 1 : 0
    case CMP_GE:
      return old >= cmparg ? 1 : 0
    default:
      return -ENOSYS
  }
}
