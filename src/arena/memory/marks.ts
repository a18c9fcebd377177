import type { ArenaPlan } from './arena.ts'

/**
 * A set of slot numbers. Any thread adds to it, without a lock; one thread takes all of them, in time that
 * grows with what it takes and not with the number of slots. A tree of bitmaps: a word covers 32 slots, each
 * higher word 32 words.
 *
 *   adder                                      taker
 *   -----                                      -----
 *   (A) sets the bit of the slot               (C) clears the word above, and goes to each word that had a
 *   (B) sets the bit of that word in the           bit there
 *       word above, and so on up               (D) clears the word, and has the slots
 *
 * (A) before (B) and (C) before (D). An adder that sets its bit after (D) sets the bit above after (C), so
 * the taker finds it the next time.
 *
 * An adder that dies between (A) and (B) leaves a bit that the taker does not find. Recovery adds the slot
 * again.
 */
export interface MarksPlan {
  /** The first word of each level; the last level has one word. */
  readonly levels: readonly number[]
}

export function reserveMarks(plan: ArenaPlan, name: string, slots: number): MarksPlan {
  const levels: number[] = []
  for (let bits = slots; bits > 1 || levels.length === 0; ) {
    bits = Math.ceil(bits / 32)
    levels.push(plan.reserve(`${name} ${levels.length}`, bits).start)
  }
  return { levels }
}

export class Marks {
  private readonly i32: Int32Array
  private readonly levels: readonly number[]

  constructor(i32: Int32Array, plan: MarksPlan) {
    this.i32 = i32
    this.levels = plan.levels
  }

  add(slot: number): void {
    const { i32, levels } = this
    let at = slot
    for (let level = 0; level < levels.length; level++) {
      Atomics.or(i32, levels[level] + (at >>> 5), 1 << (at & 31)) // (A), then (B)
      at >>>= 5
    }
  }

  /** Calls `act` with each slot of the set, and empties it. */
  take(act: (slot: number) => void): void {
    this.takeFrom(this.levels.length - 1, 0, act)
  }

  private takeFrom(level: number, word: number, act: (slot: number) => void): void {
    const { i32, levels } = this
    const at = levels[level] + word
    if (Atomics.load(i32, at) === 0) return
    for (let bits = Atomics.exchange(i32, at, 0); bits !== 0; bits &= bits - 1) {
      const below = word * 32 + (31 - Math.clz32(bits & -bits))
      if (level === 0) act(below)
      else this.takeFrom(level - 1, below, act) // (C), then (D)
    }
  }
}
