/** Functions that the tests of heddle/durable run. */
import { once, progress, receive, sleep } from '../../src/durable/index.ts'

/** A sum that takes a while, by turns. */
export function sum(turns: number): number {
  'use task movable'
  let total = 0
  for (let turn = 0; turn < turns; turn++) {
    for (let step = 0; step < 1000; step++) total = (total * 31 + step) % 1_000_003
    if (turn % 100 === 0) progress({ turn })
  }
  return total
}

export function slept(ms: number, more: number): string {
  'use task movable'
  sleep(ms)
  return `slept ${more}`
}

export function fails(message: string): never {
  'use task movable'
  throw new TypeError(message)
}

export function sumThenFails(turns: number): never {
  'use task movable'
  throw new TypeError(`it is ${sum(turns)}`)
}

export function approval(name: string): unknown {
  'use task movable'
  const first = receive<{ by: string }>(name)
  const second = receive<number>('amount')
  return { first, second }
}

/**
 * Each call of an effect adds a line to `effects`, which belongs to the CPU: the result says what the run
 * saw.
 */
export function charged(key: string): unknown {
  'use task movable'
  const receipt = once(key, () => ({ key, number: Math.floor(Math.random() * 1e9) }))
  const again = once(key, () => ({ key, number: -1 }))
  return [receipt, again]
}

/** Goes on for a while after its sleep, so that a test sees where it is. */
export function sleptAndSummed(ms: number, turns: number): number {
  'use task movable'
  const before = sum(turns)
  sleep(ms)
  return before + sum(turns)
}

export function chargedAndReceived(key: string, name: string): unknown {
  'use task movable'
  return [once(key, () => 1), receive(name)]
}

export function receivedWith(options: object): unknown {
  'use task movable'
  return receive('x', options)
}

export function late(name: string, timeout: number): string {
  'use task movable'
  try {
    receive(name, { timeout })
    return 'received'
  } catch (error) {
    return (error as Error).name
  }
}

/** A state of `bytes` that does not compress. */
export function large(bytes: number, turns: number): number {
  'use task movable'
  const state = new Uint8Array(bytes)
  let seed = 1
  for (let at = 0; at < bytes; at++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    state[at] = seed >> 16
  }
  let total = 0
  for (let turn = 0; turn < turns; turn++) total = (total + state[turn % bytes]! * turn) % 1_000_003
  return total
}

/** Its state gets larger all the time. */
export function growing(turns: number): number {
  'use task movable'
  const state: number[] = []
  for (let turn = 0; turn < turns; turn++) state.push(sum(20) + turn / 7)
  return state.length
}

/** Its state cannot travel while it loops. */
export function stuck(turns: number): number {
  'use task movable'
  const secret = new WeakMap<object, number>()
  const key = {}
  let total = 0
  for (let turn = 0; turn < turns; turn++) total = (total * 31 + turn) % 1_000_003
  secret.set(key, total)
  return secret.get(key)!
}

/** Its state cannot travel while it loops. It can when it sleeps. */
export function stuckThenSlept(turns: number, ms: number): string {
  'use task movable'
  stuck(turns)
  sleep(ms)
  return 'slept'
}

export function throwsTexts(message: string): never {
  'use task movable'
  progress({ [message]: message })
  sleep(0)
  throw Object.assign(new RangeError(message, { cause: new Map([[1, 2n]]) }), { code: message })
}

/** Throws what has no text. */
export function throwsNothing(): never {
  'use task movable'
  throw Object.create(null)
}

export function echoed(value: unknown): unknown {
  'use task movable'
  return value
}

export function effectAndSlept(ms: number): unknown {
  'use task movable'
  once('effect', () => 1)
  sleep(ms)
  return once('effect', () => 2)
}

/** `once` inside `once`, and one whose function fails at first. */
export function nested(): unknown {
  'use task movable'
  const both = once('outer', () => once('inner', () => 5) + 1)
  const errors: string[] = []
  for (let turn = 0; turn < 2; turn++) {
    try {
      once('fails', () => {
        if (turn === 0) throw new TypeError('not yet')
        return 'done'
      })
    } catch (error) {
      errors.push((error as Error).message)
    }
  }
  return { both, inner: once('inner', () => 7), errors, fails: once('fails', () => 'again') }
}

/** Its `finally` block stores what it did. */
export function cleaned(turns: number): number {
  'use task movable'
  try {
    return sum(turns)
  } finally {
    progress('cleaned')
  }
}

/** Not compiled: it cannot move. */
export function plain(value: number): number {
  return value + 1
}

/** Compiled, and a generator: it cannot move. */
export async function movableAsync(value: number): Promise<number> {
  'use task movable'
  return value + 1
}

export function unwritable(kind: 'bigint' | 'cycle'): void {
  'use task movable'
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  progress(kind === 'bigint' ? 1n : cycle)
}

export function migrated(info: {
  readonly args: unknown[]
  readonly error: { readonly name: string }
}): unknown {
  'use task movable'
  return { migrated: info.args, because: info.error.name }
}

export async function onceAsync(key: string): Promise<string> {
  return key
}

/** An effect that waits for a promise. */
export function promised(key: string): string {
  'use task movable'
  return once(key, () => Promise.resolve(`promised ${key}`))
}

export function collected(count: number): number[] {
  'use task movable'
  const numbers: number[] = []
  while (numbers.length < count) numbers.push(receive<number>('number'))
  return numbers
}

/** Computes for so many milliseconds. */
export function busy(ms: number): string {
  'use task movable'
  const end = Date.now() + ms
  let turns = 0
  while (Date.now() < end) turns++
  return turns > 0 ? 'done' : 'idle'
}
