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
 *   (A) head = job                           (C) asleep = 1
 *   (B) asleep is 1: 0, and notify           (D) head is not 0: does not sleep
 *                                            waitAsync(asleep, 1)
 *
 * (A) before (B) and (C) before (D): in every interleaving one side sees the other. A CPU that dies before
 * (A) leaves a job with an outcome that is on no list: recovery, on the booting thread, takes the list first
 * and then finds such jobs by their outcome.
 */
const HEAD = 0
const ASLEEP = LINE_WORDS
export const COMPLETIONS_WORDS: number = 2 * LINE_WORDS

export class Completions {
  private readonly i32: Int32Array<SharedArrayBuffer>
  private readonly head: number
  private readonly asleep: number

  constructor(i32: Int32Array<SharedArrayBuffer>, region: Region) {
    this.i32 = i32
    this.head = region.start + HEAD
    this.asleep = region.start + ASLEEP
  }

  /** Called on any thread. Returns whether the booting thread had to be woken. */
  push(job: number): boolean {
    const { i32, head, asleep } = this
    let first = Atomics.load(i32, head)
    for (;;) {
      i32[job + Job.next] = first
      const seen = Atomics.compareExchange(i32, head, first, job) // (A)
      if (seen === first) break
      first = seen
    }
    if (Atomics.load(i32, asleep) === 0) return false
    if (Atomics.exchange(i32, asleep, 0) === 0) return false // (B)
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

  /** Booting thread only: a promise of the next push; null: the list is not empty. */
  wait(): Promise<unknown> | null {
    const { i32, asleep } = this
    Atomics.store(i32, asleep, 1) // (C)
    if (!this.isEmpty) {
      Atomics.store(i32, asleep, 0) // (D)
      return null
    }
    const waiting = Atomics.waitAsync(i32, asleep, 1)
    return waiting.async ? waiting.value : null
  }

  /** Ends a wait, on the booting thread itself. */
  interrupt(): void {
    const { i32, asleep } = this
    if (Atomics.exchange(i32, asleep, 0) !== 0) Atomics.notify(i32, asleep)
  }
}
