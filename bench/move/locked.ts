/** A task that contends for one lock, and can move while it waits. */
import { here } from '../../src/kernel/cpu/here.ts'
import type { Mutex } from '../../src/sync/mutex/mutex.ts'

export interface Contest {
  readonly mutex: Mutex
  /** From word 16 on: the cache line that the lock guards. */
  readonly words: Int32Array
  readonly ms: number
  /** Turns of a loop inside the section, and between two sections. */
  readonly inside: number
  readonly apart: number
  /** What the task measures, in shared memory, so that it does not move: see the indices below. */
  readonly measured: Float64Array
}

export const COUNT = 0
export const LONGEST = 1
export const WAITS = 2
export const SAMPLES = 400
/** The same clock on every CPU. */
function now(): number {
  return here.cpu!.s.now()
}

/** A uniform sample: when it is full, each wait replaces a random one. */
function note(measured: Float64Array, waited: number): void {
  const count = ++measured[COUNT]
  measured[LONGEST] = Math.max(measured[LONGEST], waited)
  const at = count <= SAMPLES ? count - 1 : Math.floor(Math.random() * count)
  if (at < SAMPLES) measured[WAITS + at] = waited
}

export function contend(contest: Contest): number {
  'use task movable'
  const { mutex, words, measured, inside, apart } = contest
  const own = new Int32Array(16)
  const end = now() + contest.ms
  for (;;) {
    const begun = now()
    if (begun >= end) return measured[COUNT]
    mutex.lock()
    const waited = (now() - begun) * 1000
    for (let turn = 0; turn < inside; turn++) words[16 + (turn & 15)]++
    mutex.unlock()
    note(measured, waited)
    for (let turn = 0; turn < apart; turn++) own[turn & 15]++
  }
}
