import {
  FUTEX_CMP_REQUEUE_PI,
  FUTEX_LOCK_PI,
  FUTEX_LOCK_PI2,
  FUTEX_PRIVATE_FLAG,
  FUTEX_REQUEUE,
  FUTEX_TRYLOCK_PI,
  FUTEX_UNLOCK_PI,
  FUTEX_WAIT,
  FUTEX_WAIT_REQUEUE_PI,
  FUTEX_WAKE,
} from '../../src/futex/operations/call.ts'
import { SeededRandom } from '../../src/machine/simulated/random.ts'

/** One step of a script about locks, for the kernel and for us; see linux-pi.c. */
export type PiStep =
  | { readonly kind: 'P'; readonly actor: number; readonly priority: number }
  | {
      readonly kind: 'T'
      readonly actor: number
      readonly op: number
      readonly word: number
      readonly value: number
      readonly timeout: 0 | -1
      readonly val2: number
      readonly word2: number
      readonly val3: number
    }
  | { readonly kind: 'F' | 'G'; readonly actor: number; readonly word: number }
  | { readonly kind: 'O'; readonly word: number; readonly actor: number; readonly flags: number }
  | { readonly kind: 'R'; readonly actor: number; readonly word: number; readonly pi: 0 | 1 }
  | { readonly kind: 'X'; readonly actor: number }

export const ACTORS = 6
/** Words 0 and 1 are locks; 2 and 3 are sometimes conditions. */
export const WORDS = 4

/** A random sequence: actors lock, unlock, wait at conditions and end; sometimes one overwrites a word. */
export function makePiScript(seed: number, priorities: boolean, steps = 45): PiStep[] {
  const random = new SeededRandom(seed)
  const pick = <T>(...values: T[]): T => values[random.below(values.length)]
  const script: PiStep[] = []
  if (priorities) {
    for (let actor = 0; actor < ACTORS; actor++)
      script.push({ kind: 'P', actor, priority: 1 + random.below(8) })
  }
  const listed = new Set<number>()
  const flag = pick(0, 0, FUTEX_PRIVATE_FLAG)
  const call = (op: number, more: object = {}): void => {
    script.push({
      kind: 'T',
      actor: random.below(ACTORS),
      op: op | flag,
      word: random.below(3),
      value: 0,
      timeout: -1,
      val2: 0,
      word2: 0,
      val3: 0,
      ...more,
    })
  }
  for (let i = 0; i < steps; i++) {
    const kind = random.below(40)
    const actor = random.below(ACTORS)
    const word = random.below(3)
    if (kind < 12) call(pick(FUTEX_LOCK_PI, FUTEX_LOCK_PI, FUTEX_LOCK_PI2), { timeout: pick(-1, -1, -1, 0) })
    else if (kind < 22) call(FUTEX_UNLOCK_PI)
    else if (kind < 24) call(FUTEX_TRYLOCK_PI)
    else if (kind < 26) script.push({ kind: 'F', actor, word })
    else if (kind < 28) script.push({ kind: 'G', actor, word })
    else if (kind < 31) call(FUTEX_WAIT_REQUEUE_PI, { word: pick(3, 3, 2), word2: pick(0, 0, 1, 3) })
    else if (kind < 34)
      call(FUTEX_CMP_REQUEUE_PI, {
        word: pick(3, 3, 2),
        word2: pick(0, 0, 1),
        value: pick(1, 1, 1, 1, 0, 2),
        val2: pick(0, 1, 5),
        val3: pick(0, 0, 0, 1),
      })
    else if (kind < 35) call(FUTEX_WAIT, { word: pick(2, 3) })
    else if (kind < 36)
      call(pick(FUTEX_WAKE, FUTEX_REQUEUE), { value: pick(1, 5), word2: pick(0, 3), val2: 1 })
    else if (kind < 38) {
      if (listed.has(word)) continue
      listed.add(word)
      script.push({ kind: 'R', actor, word, pi: pick(1, 1, 0) })
    } else if (kind < 39) script.push({ kind: 'X', actor })
    else script.push({ kind: 'O', word, actor: pick(-1, actor), flags: random.below(4) })
  }
  return script
}

/** The line of a step for the C program. */
export function piLineOf(step: PiStep): string {
  switch (step.kind) {
    case 'P':
      return `P ${step.actor} ${step.priority}`
    case 'T':
      return `T ${step.actor} ${step.op} ${step.word} ${step.value} ${step.timeout} ${step.val2} ${step.word2} ${step.val3}`
    case 'O':
      return `O ${step.word} ${step.actor} ${step.flags}`
    case 'R':
      return `R ${step.actor} ${step.word} ${step.pi}`
    case 'X':
      return `X ${step.actor}`
    default:
      return `${step.kind} ${step.actor} ${step.word}`
  }
}
