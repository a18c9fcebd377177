import { sleep } from '../../../src/coroutine/core/blocking.ts'
import type { Mutex } from '../../../src/sync/index.ts'

/** The movable tasks of the move chaos. `expected` says what each returns, computed by plain code. */

/** One round: some microseconds. */
function mixed(sum: number, i: number): number {
  'use task movable'
  for (let j = 0; j < 300; j++) sum = (Math.imul(sum, 31) + i + j) | 0
  return sum
}

export function compute(n: number, rounds: number): number {
  'use task movable'
  let sum = n
  for (let i = 0; i < rounds; i++) sum = mixed(sum, i)
  return sum
}

function deep(n: number, depth: number, rounds: number): number {
  'use task movable'
  if (depth === 0) return compute(n, rounds)
  const below = deep(n + 1, depth - 1, rounds)
  return (Math.imul(below, 7) + depth) | 0
}

/** Many frames. */
export function frames(n: number, rounds: number): number {
  'use task movable'
  return deep(n, 1 + (n % 20), rounds)
}

interface Node {
  readonly name: string
  peer: Node | null
  count: number
}

/** A cycle, a Map with an iterator in use, and a closure with a variable of its own. */
export function objects(n: number, rounds: number): number {
  'use task movable'
  const one: Node = { name: 'one', peer: null, count: n }
  const two: Node = { name: 'two', peer: one, count: 0 }
  one.peer = two
  let calls = 0
  const add = (value: number): void => {
    calls++
    one.peer!.count = (one.peer!.count + value) | 0
  }
  const map = new Map<number, number>()
  for (let i = 0; i < 8; i++) map.set(i, n + i)
  for (const [key, value] of map) add(compute(key + value, rounds >> 3))
  if (two.peer!.peer !== two || calls !== 8) throw new Error('an object is another one after a move')
  return (one.count + two.count) | 0
}

/** Kilobytes of state. */
export function bytes(n: number, rounds: number): number {
  'use task movable'
  const state = new Uint8Array(4096)
  for (let i = 0; i < rounds; i++) state[i & 4095] ^= mixed(n, i)
  let sum = 0
  for (const byte of state) sum = (Math.imul(sum, 31) + byte) | 0
  return sum
}

export function naps(n: number, rounds: number): number {
  'use task movable'
  let sum = 0
  for (let i = 0; i < 4; i++) {
    sum = (sum + compute(n + i, rounds >> 2)) | 0
    sleep(i)
  }
  return sum
}

/** Catches, and cleans up: the error and its stack of frames move. */
export function cleans(n: number, rounds: number): number {
  'use task movable'
  let sum = 0
  try {
    try {
      sum = compute(n, rounds >> 1)
      throw new RangeError(`error ${n}`)
    } finally {
      sum = (sum + compute(sum, rounds >> 1)) | 0
    }
  } catch (error) {
    if (!(error instanceof RangeError) || error.message !== `error ${n}`) throw error
  }
  return sum
}

/**
 * `words[0]`: how many tasks are in the section; `words[1]`: how often there were two. A task that goes on
 * from a checkpoint inside of the section would unlock what it does not hold.
 */
export function guarded(n: number, rounds: number, mutex: Mutex, words: Int32Array): number {
  'use task movable'
  const before = compute(n, rounds >> 3)
  mutex.lock()
  if (mutex.ownerDied) {
    Atomics.store(words, 0, 0)
    mutex.makeConsistent()
  }
  if (Atomics.add(words, 0, 1) !== 0) Atomics.add(words, 1, 1)
  const inside = compute(before, rounds >> 1)
  Atomics.sub(words, 0, 1)
  mutex.unlock()
  return compute(inside, rounds >> 3)
}

export const KINDS = ['compute', 'frames', 'objects', 'bytes', 'naps', 'cleans', 'guarded'] as const
export type Kind = (typeof KINDS)[number]

function plain(n: number, rounds: number): number {
  let sum = n
  for (let i = 0; i < rounds; i++) sum = mixed(sum, i)
  return sum
}

/** The result of a task. */
export function expected(kind: Kind, n: number, rounds: number): number {
  switch (kind) {
    case 'compute':
      return plain(n, rounds)
    case 'frames': {
      const depth = 1 + (n % 20)
      let sum = plain(n + depth, rounds)
      for (let level = 1; level <= depth; level++) sum = (Math.imul(sum, 7) + level) | 0
      return sum
    }
    case 'objects': {
      let sum = 0
      for (let i = 0; i < 8; i++) sum = (sum + plain(i + n + i, rounds >> 3)) | 0
      return (n + sum) | 0
    }
    case 'bytes': {
      const state = new Uint8Array(4096)
      for (let i = 0; i < rounds; i++) state[i & 4095] ^= mixed(n, i)
      let sum = 0
      for (const byte of state) sum = (Math.imul(sum, 31) + byte) | 0
      return sum
    }
    case 'naps': {
      let sum = 0
      for (let i = 0; i < 4; i++) sum = (sum + plain(n + i, rounds >> 2)) | 0
      return sum
    }
    case 'cleans': {
      const sum = plain(n, rounds >> 1)
      return (sum + plain(sum, rounds >> 1)) | 0
    }
    case 'guarded':
      return plain(plain(plain(n, rounds >> 3), rounds >> 1), rounds >> 3)
  }
}
