import type { Region } from '../../arena/memory/arena.ts'
import { pause } from '../../arena/sync/pause.ts'
import { LINE_WORDS } from '../../arena/memory/record.ts'
import { Job } from '../spawn/job.ts'

/**
 * The ended jobs that the booting thread still has to handle: one list for all CPUs, newest first, pushed by
 * compare-exchange and taken whole. One wakeup serves all jobs that were pushed before it is noticed.
 *
 *   CPU                                      booting thread
 *   ---                                      --------------
 *   (A) head = job                           (C) asleep = SLEEPS, or DOZES
 *   (B) asleep is SLEEPS: AWAKE, and notify  (D) head is not 0: does not sleep
 *       asleep is DOZES: the same, unless    waitAsync(asleep), for at most DOZE_MS if it dozes
 *       its tasks end in quick succession
 *
 * (A) before (B) and (C) before (D): in every interleaving one side sees the other.
 *
 * A wakeup of the booting thread costs a CPU more than a small task. So that thread dozes first when it has
 * just collected: a CPU with more tasks, which end within STREAM_MS of each other, wakes it for every
 * DOZE_JOBS of them only. It finds the others when its doze ends, a millisecond later at most. If it finds
 * none, it sleeps.
 *
 * A CPU that dies before
 * (A) leaves a job with an outcome that is on no list: recovery, on the booting thread, takes the list first
 * and then finds such jobs by their outcome.
 */
const HEAD = 0
const ASLEEP = LINE_WORDS

/** The values of `asleep`. */
const AWAKE = 0
const SLEEPS = 1
const DOZES = 2

const DOZE_MS = 1
const DOZE_JOBS = 64
const STREAM_MS = 0.05

export const COMPLETIONS_WORDS: number = 2 * LINE_WORDS

export class Completions {
  private readonly i32: Int32Array<SharedArrayBuffer>
  private readonly head: number
  private readonly asleep: number
  /** When this thread last pushed, and how many jobs since it last woke the booting thread. */
  private lastPush = -Infinity
  private unannounced = 0

  constructor(i32: Int32Array<SharedArrayBuffer>, region: Region) {
    this.i32 = i32
    this.head = region.start + HEAD
    this.asleep = region.start + ASLEEP
  }

  /**
   * Called on any thread. `now`: the time, from a CPU that has more tasks; Infinity: from any other thread.
   * Returns whether the booting thread had to be woken.
   */
  push(job: number, now: number = Infinity): boolean {
    const { i32, head, asleep } = this
    const streams = now - this.lastPush < STREAM_MS && ++this.unannounced < DOZE_JOBS
    this.lastPush = now === Infinity ? -Infinity : now
    let first = Atomics.load(i32, head)
    for (;;) {
      i32[job + Job.next] = first
      const seen = Atomics.compareExchange(i32, head, first, job) // (A)
      if (seen === first) break
      first = seen
    }
    const state = Atomics.load(i32, asleep)
    if (state === AWAKE || (state === DOZES && streams)) return false
    this.unannounced = 0
    if (Atomics.exchange(i32, asleep, AWAKE) === AWAKE) return false // (B)
    Atomics.notify(i32, asleep)
    return true
  }

  /**
   * Takes all jobs in the order of their ends: returns the first, and `next` links the others. 0: there is
   * none.
   */
  take(): number {
    const { i32, head } = this
    if (Atomics.load(i32, head) === 0) return 0
    let newest = Atomics.exchange(i32, head, 0)
    let oldest = 0
    while (newest !== 0) {
      const next = i32[newest + Job.next]
      i32[newest + Job.next] = oldest
      oldest = newest
      newest = next
    }
    return oldest
  }

  get isEmpty(): boolean {
    return Atomics.load(this.i32, this.head) === 0
  }

  /** Polls `times` times, without returning to the event loop. True: the list is not empty. */
  poll(times: number): boolean {
    for (let time = 0; time < times; time++) {
      if (!this.isEmpty) return true
      pause()
    }
    return false
  }

  /**
   * Booting thread only: a promise of the next push, which may resolve without one if the thread dozes; null:
   * the list is not empty.
   */
  wait(dozes: boolean): Promise<unknown> | null {
    if (!this.fallAsleep(dozes)) return null
    const waiting = dozes
      ? Atomics.waitAsync(this.i32, this.asleep, DOZES, DOZE_MS)
      : Atomics.waitAsync(this.i32, this.asleep, SLEEPS)
    return waiting.async ? waiting.value : null
  }

  /** The booting thread announces that it will sleep. False: the list is not empty. */
  fallAsleep(dozes: boolean): boolean {
    const { i32, asleep } = this
    Atomics.store(i32, asleep, dozes ? DOZES : SLEEPS) // (C)
    if (this.isEmpty) return true // (D)
    Atomics.store(i32, asleep, AWAKE)
    return false
  }

  /** For checks: a push that no thread collects, because the booting thread sleeps on. */
  get isForgotten(): boolean {
    return !this.isEmpty && Atomics.load(this.i32, this.asleep) === SLEEPS
  }

  /** Ends a wait, on the booting thread itself. A CPU may have died at (B), before its notify. */
  interrupt(): void {
    const { i32, asleep } = this
    Atomics.store(i32, asleep, AWAKE)
    Atomics.notify(i32, asleep)
  }
}
