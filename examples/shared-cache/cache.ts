import type { RwLock } from '../../src/index.ts'

/** Open addressing: a key (plus one; 0 is free) and its value, in two words a slot. */
const SLOTS = 1024
export const CACHE_BYTES: number = SLOTS * 8

/** The slot of a key, or the free slot where it belongs. */
function slotOf(words: Int32Array, key: number): number {
  let slot = Math.imul(key, 0x9e37_79b1) >>> 22
  while (words[slot * 2] !== 0 && words[slot * 2] !== key + 1) slot = (slot + 1) % SLOTS
  return slot * 2
}

/** The expensive computation that the cache saves. */
function compute(key: number): number {
  let value = key + 1
  for (let turn = 0; turn < 20_000; turn++) value = (Math.imul(value, 1_103_515_245) + 12_345) & 0x7fff_ffff
  return value
}

export interface Tally {
  hits: number
  misses: number
  wrong: number
}

export function* client(
  memory: SharedArrayBuffer,
  lock: RwLock,
  seed: number,
  asked: number,
  keys: number,
): Generator<number, Tally, unknown> {
  const words = new Int32Array(memory)
  const tally: Tally = { hits: 0, misses: 0, wrong: 0 }
  let random = seed + 1
  for (let n = 0; n < asked; n++) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) | 0
    const key = (random >>> 8) % keys
    const value = yield* get(words, lock, key, tally)
    if (n % 500 === 0 && value !== compute(key)) tally.wrong++
  }
  return tally
}

function* get(
  words: Int32Array,
  lock: RwLock,
  key: number,
  tally: Tally,
): Generator<number, number, unknown> {
  {
    using _reading = yield* lock.lockRead()
    const slot = slotOf(words, key)
    if (words[slot] !== 0) {
      tally.hits++
      return words[slot + 1]
    }
  }
  using _writing = yield* lock.lockWrite()
  // Another task may have stored the value between the two locks.
  const slot = slotOf(words, key)
  if (words[slot] !== 0) {
    tally.hits++
    return words[slot + 1]
  }
  tally.misses++
  words[slot + 1] = compute(key)
  words[slot] = key + 1
  return words[slot + 1]
}
