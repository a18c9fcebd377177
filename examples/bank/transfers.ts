import { type Mutex, yieldNow } from '../../src/index.ts'

export const ACCOUNTS = 32

/**
 * The accounts, then the undo log for the death of the lock's owner: from, to, amount. Amount 0: nothing to
 * undo.
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

/** Takes the money from one account, and ends its CPU before the money reaches the other. */
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

/** Restores the balance of the paying account. The receiving account has nothing yet, or the whole amount. */
export function undo(memory: SharedArrayBuffer): boolean {
  const words = new Int32Array(memory)
  const amount = words[LOG + 2]
  if (amount === 0) return false
  const from = words[LOG + 1] >> 8
  if (words[from] !== words[LOG]) words[from] = words[LOG]
  words[LOG + 2] = 0
  return true
}
