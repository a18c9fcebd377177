import { futex, yieldNow } from '../../../src/index.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'

const LOCK = 2
const CONDITION = 3
const INSIDE = 4
const TIMED = { timeout: 3 }

/** Tasks lock and unlock one PI word, and wait at a condition beside it. */
export function* useWord(
  words: Int32Array<SharedArrayBuffer>,
  seed: number,
  turns: number,
): Generator<number, void, any> {
  const random = new SeededRandom(seed)
  for (let turn = 0; turn < turns; turn++) {
    try {
      if (random.below(4) === 0) {
        futex.cmpRequeuePi(words, CONDITION, words, LOCK, 0, { move: 1 })
        continue
      }
      const isHeld =
        random.below(4) === 0
          ? (yield* futex.waitRequeuePi(words, CONDITION, 0, words, LOCK, TIMED)) === 'ok'
          : yield* futex.lockPi(words, LOCK, TIMED)
      if (!isHeld) continue
    } catch (error) {
      freeLostLock(words, error)
      continue
    }
    try {
      Atomics.store(words, INSIDE, 1)
      yield* yieldNow()
      if (Atomics.exchange(words, INSIDE, 0) !== 1) throw new Error('two tasks hold one PI lock')
    } finally {
      futex.unlockPi(words, LOCK)
    }
  }
}

/** The same from async code, with an owner of its own for each turn. */
export async function useWordAsync(
  words: Int32Array<SharedArrayBuffer>,
  seed: number,
  turns: number,
): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await new Promise(resolve => setTimeout(resolve, (seed >>> (turn & 7)) & 3))
    const owner = await futex.lockPiAsync(words, LOCK, { timeout: 5 }).catch((error: unknown) => {
      freeLostLock(words, error)
      return null
    })
    if (owner !== null) futex.unlockPi(words, LOCK, owner)
  }
}

/** A holder that dies while no owner waits leaves the lock locked, as on Linux: ESRCH says so. */
function freeLostLock(words: Int32Array, error: unknown): void {
  if ((error as { code?: string }).code !== 'ESRCH') throw error
  Atomics.compareExchange(words, LOCK, Atomics.load(words, LOCK), 0)
}
