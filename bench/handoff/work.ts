import { pause } from '../../src/arena/sync/pause.ts'
import { needResched } from '../../src/coroutine/core/safepoint.ts'
import { Mutex } from '../../src/sync/mutex/mutex.ts'
import type { SyncHandle } from '../../src/sync/wait/objectwords.ts'

/** The lock that a task contends for: a mutex, or a word to spin at. */
export interface Contest {
  readonly mutex: SyncHandle | null
  /** Word 0: the spin lock. From word 16 on: the cache line that the lock guards. */
  readonly words: Int32Array
  readonly ms: number
  /** Turns of a loop inside the section, and between two sections. */
  readonly inside: number
  readonly apart: number
}

export interface Outcome {
  readonly count: number
  /** Waits in microseconds: a sample. */
  readonly waits: readonly number[]
  /** The longest of all, in microseconds. */
  readonly longest: number
}

const SAMPLES = 400
/** A long section can be preempted: it has a safepoint after this many turns. */
const STRETCH = 4000

function spin(words: Int32Array, turns: number): void {
  for (let turn = 0; turn < turns; turn++) words[16 + (turn & 15)]++
}

/** Locks, touches a cache line, unlocks, computes, until the time is over. */
export function* contend(contest: Contest): Generator<number, Outcome, unknown> {
  const { words, ms, inside, apart } = contest
  const mutex = contest.mutex === null ? null : Mutex.from(contest.mutex)
  const own = new Int32Array(32)
  const waits: number[] = []
  const end = performance.now() + ms
  let count = 0
  let longest = 0
  let random = (performance.now() * 1000) | 1
  for (;;) {
    const begun = performance.now()
    if (begun >= end) return { count, waits, longest }
    const token = mutex === null ? takeWord(words) : yield* mutex.lock()
    const waited = performance.now() - begun
    longest = Math.max(longest, waited * 1000)
    for (let left = inside; left > 0; left -= STRETCH) {
      spin(words, Math.min(left, STRETCH))
      if (left > STRETCH && needResched()) yield 0
    }
    if (token === null) Atomics.store(words, 0, 0)
    else token.unlock()
    count++
    // A uniform sample: when it is full, each wait replaces a random one.
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) | 0
    if (waits.length < SAMPLES) waits.push(waited * 1000)
    else if ((random >>> 8) % count < SAMPLES) waits[(random >>> 8) % SAMPLES] = waited * 1000
    spin(own, apart)
    if (needResched()) yield 0
  }
}

/**
 * Pairs of lock and unlock of a free mutex, in nanoseconds each. Written twice, so that each is compiled for
 * its own lock.
 */
export function* plainPairs(handle: SyncHandle, pairs: number): Generator<number, number, unknown> {
  const mutex = Mutex.from(handle)
  const begun = performance.now()
  for (let pair = 0; pair < pairs; pair++) {
    const token = yield* mutex.lock()
    token.unlock()
  }
  return ((performance.now() - begun) * 1e6) / pairs
}

export function* handoffPairs(handle: SyncHandle, pairs: number): Generator<number, number, unknown> {
  const mutex = Mutex.from(handle)
  const begun = performance.now()
  for (let pair = 0; pair < pairs; pair++) {
    const token = yield* mutex.lock()
    token.unlock()
  }
  return ((performance.now() - begun) * 1e6) / pairs
}

function takeWord(words: Int32Array): null {
  while (Atomics.compareExchange(words, 0, 0, 1) !== 0) pause()
  return null
}
