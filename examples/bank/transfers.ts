import { type Mutex, yieldNow } from '../../src/index.ts'

export const ACCOUNTS = 32

/**
 * The accounts, and behind them what to undo if whoever holds the lock dies: from, to, amount; amount 0:
 * nothing.
 */
const LOG = ACCOUNTS
export const bankWords: number = ACCOUNTS + 3

export function openAccounts(memory: SharedArrayBuffer): void {
  new Int32Array(memory, 0, ACCOUNTS).fill(1000)
}

export function sumOf(memory: SharedArrayBuffer): number {
  return new Int32Array(memory, 0, ACCOUNTS).reduce((sum, cents) => sum + cents, 0)
}

export interface Tally {
  transfers: number
  repaired: number
}

export function* transfer(
  memory: SharedArrayBuffer,
  lock: Mutex,
  seed: number,
  count: number,
): Generator<number, Tally, unknown> {
  const words = new Int32Array(memory)
  const tally: Tally = { transfers: 0, repaired: 0 }
  let random = seed + 1
  for (let n = 0; n < count; n++) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) | 0
    const from = (random >>> 4) % ACCOUNTS
    const to = (random >>> 12) % ACCOUNTS
    const amount = 1 + ((random >>> 20) % 50)
    using _held = yield* lock.lock()
    if (lock.ownerDied) {
      if (undo(memory)) tally.repaired++
      lock.makeConsistent()
    }
    begin(words, from, to, amount)
    words[from] -= amount
    if (n % 64 === 0) yield* yieldNow()
    words[to] += amount
    words[LOG + 2] = 0
    tally.transfers++
  }
  return tally
}

/** Takes the money from one account, and ends its CPU before it has arrived at the other. */
export function* dieInTransfer(
  memory: SharedArrayBuffer,
  lock: Mutex,
  account: number,
): Generator<number, never, unknown> {
  const words = new Int32Array(memory)
  yield* lock.lock()
  if (lock.ownerDied) {
    undo(memory)
    lock.makeConsistent()
  }
  begin(words, account, account + 1, 500)
  words[account] -= 500
  process.exit(1)
}

function begin(words: Int32Array, from: number, to: number, amount: number): void {
  words[LOG] = words[from]
  words[LOG + 1] = (from << 8) | to
  words[LOG + 2] = amount
}

/**
 * Puts the account that was paid from back to what it had; the one that was to be paid got nothing yet, or
 * everything.
 */
export function undo(memory: SharedArrayBuffer): boolean {
  const words = new Int32Array(memory)
  const amount = words[LOG + 2]
  if (amount === 0) return false
  const from = words[LOG + 1] >> 8
  if (words[from] !== words[LOG]) words[from] = words[LOG]
  words[LOG + 2] = 0
  return true
}
