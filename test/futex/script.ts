import {
  FUTEX_CMP_REQUEUE,
  FUTEX_PRIVATE_FLAG,
  FUTEX_REQUEUE,
  FUTEX_WAIT,
  FUTEX_WAIT_BITSET,
  FUTEX_WAKE,
  FUTEX_WAKE_BITSET,
  FUTEX_WAKE_OP,
} from '../../src/futex/operations/call.ts'
import { encodeOp } from '../../src/futex/operations/wakeop.ts'
import { SeededRandom } from '../../src/machine/simulated/random.ts'

/** One step of a script, for the kernel and for us. */
export type Step =
  | { readonly set: number; readonly value: number }
  | {
      readonly waiter: number
      readonly word: number
      readonly op: number
      readonly value: number
      readonly val3: number
      /** A timeout that has passed already; -1: none. */
      readonly timeout: 0 | -1
    }
  | {
      readonly call: number
      readonly word: number
      readonly value: number
      readonly val2: number
      readonly word2: number
      readonly val3: number
    }

const WORDS = 4
const WAITERS = 24

/** A random sequence of operations: mostly valid, sometimes not, often at the same few words. */
export function makeScript(seed: number, steps = 40): Step[] {
  const random = new SeededRandom(seed)
  const pick = <T>(...values: T[]): T => values[random.below(values.length)]
  const script: Step[] = []
  let waiters = 0
  for (let i = 0; i < steps; i++) {
    const word = random.below(WORDS)
    const flag = pick(0, FUTEX_PRIVATE_FLAG)
    const kind = random.below(10)
    if (kind < 4 && waiters < WAITERS) {
      const bitset = random.below(3) === 0
      script.push({
        waiter: waiters++,
        word,
        op: (bitset ? FUTEX_WAIT_BITSET : FUTEX_WAIT) | flag,
        value: pick(0, 0, 0, 1, 2),
        val3: bitset ? pick(0, 1, 2, 3, 0x8000_0000, 0xffff_ffff) : 0,
        timeout: random.below(12) === 0 ? 0 : -1,
      })
    } else if (kind < 6) {
      const bitset = random.below(3) === 0
      script.push({
        call: (bitset ? FUTEX_WAKE_BITSET : FUTEX_WAKE) | flag,
        word,
        value: pick(0, 1, 1, 2, 3, 100, 0xffff_ffff),
        val2: 0,
        word2: 0,
        val3: bitset ? pick(0, 1, 2, 0x8000_0000, 0xffff_ffff) : 0,
      })
    } else if (kind < 8) {
      const compare = random.below(2) === 0
      script.push({
        call: (compare ? FUTEX_CMP_REQUEUE : FUTEX_REQUEUE) | flag,
        word,
        value: pick(0, 1, 2, 0xffff_ffff, 0x7fff_ffff),
        val2: pick(0, 1, 2, 100, 0x7fff_ffff),
        word2: random.below(WORDS),
        val3: compare ? pick(0, 0, 1, 2) : 0,
      })
    } else if (kind < 9) {
      const op = pick(0, 1, 2, 3, 4, 5, 7) | pick(0, 0, 8)
      script.push({
        call: FUTEX_WAKE_OP | flag,
        word,
        value: pick(0, 1, 2, 100),
        val2: pick(0, 1, 2),
        word2: random.below(WORDS),
        val3: encodeOp(op, pick(0, 1, 2, 31, 40, -1, -2048), random.below(8), pick(0, 1, 2, -1, 0xfff)) >>> 0,
      })
    } else {
      script.push({ set: word, value: pick(0, 0, 0, 1, 2) })
    }
  }
  // The end wakes all waiters, and the script records where each one waited.
  for (let word = 0; word < WORDS; word++) {
    for (const flag of [0, FUTEX_PRIVATE_FLAG]) {
      script.push({ call: FUTEX_WAKE | flag, word, value: 1000, val2: 0, word2: 0, val3: 0 })
    }
  }
  return script
}

/** The line of a step for the C program. */
export function lineOf(step: Step): string {
  if ('set' in step) return `S ${step.set} ${step.value}`
  if ('waiter' in step)
    return `W ${step.waiter} ${step.word} ${step.op} ${step.value} ${step.val3} ${step.timeout}`
  return `K ${step.word} ${step.call} ${step.value} ${step.val2} ${step.word2} ${step.val3}`
}
