import { assert } from '../../arena/assert.ts'
import type { Co } from '../schedule/co.ts'
import {
  type Interrupt,
  preemptionDepth,
  safepointLine,
  type SafepointLine,
  setSafepointLine,
  swapPreemptionDepth,
} from './safepoint.ts'
import type { Slices } from '../schedule/slices.ts'

/**
 * The switch into a coroutine and back, and the interrupt that may come at any safepoint in between.
 *
 *   loop                                        safepoint, with preemption on
 *   ----                                        -----------------------------
 *   (A) preemption off                          [1] no coroutine runs: returns
 *   (B) runningCo = co                          [2] the slice is not over: returns
 *   (C) the coroutine's own depth, the switch   [3] `preempted` is the coroutine: it must yield PREEMPTED
 *   (D) preemption off again
 *   (E) it ended: runningCo = null
 *   (F) runningCo = null, the depth as before
 *   (G) takes `preempted` before the next (A)
 *
 * Between (B) and (C), and between (D) and (F), other code runs while `runningCo` names the coroutine: the
 * hook that restores its asynchronous context. A safepoint in that code would preempt a coroutine that does
 * not run yet, that is preempted already, that waits, or that has ended.
 *
 * A coroutine suspends with preemption off, from before its state changes until it continues: a tick in
 * between would make it ready although it waits. See `beginWait` in runner.ts.
 *
 * The design puts preempted coroutines into a ring, because its signal handler must not touch the ready
 * queue. Here a safepoint and the loop are the same thread, and (G) comes before each switch. So at most one
 * coroutine is preempted at a time, and one field is enough: it has no order of stores, and is never full.
 */
export class Switch {
  runningCo: Co<any> | null = null
  /** A coroutine that outranks the running one has become ready. */
  preemptWanted = false
  /** The coroutine that was preempted, until the loop takes it; null: none. */
  preempted: Co<any> | null = null
  readonly slice: number
  readonly now: () => number
  /** Called where a coroutine stops before its end, in its own asynchronous context. */
  onStop: ((co: Co<any>) => void) | null = null
  #slices: Slices
  #line: SafepointLine
  readonly #interrupt: Interrupt = () => this.preempt()

  constructor(slices: Slices, slice: number, now: () => number) {
    this.slice = slice
    this.now = now
    this.#slices = slices
    this.#line = safepointLine(slices.view, slices.index, this.#interrupt)
  }

  get slices(): Slices {
    return this.#slices
  }

  /** Takes ticks from elsewhere. Not while a coroutine runs. */
  set slices(slices: Slices) {
    assert(this.runningCo === null, 'the source of ticks changes between slices')
    this.#slices.end()
    this.#slices = slices
    this.#line = safepointLine(slices.view, slices.index, this.#interrupt)
  }

  /**
   * Runs the coroutine until it stops. The design's `Resume`: the loop calls it while no coroutine runs, and
   * reads from the coroutine afterwards how it stopped. `now` is when its slice begins.
   */
  resume(co: Co<any>, now: number): void {
    assert(this.runningCo === null, 'a coroutine is resumed while no other runs')
    assert(co.state === 'READY' || co.state === 'INITED', 'only a coroutine that is ready is switched to')
    assert(!co.isQueued, 'a coroutine that runs is on no queue')
    assert(this.preempted === null, 'the loop takes a preempted coroutine before it resumes another')
    const outer = this.mask() // (A)
    const line = setSafepointLine(this.#line)
    try {
      co.state = 'RUNNING'
      this.runningCo = co // (B)
      this.preemptWanted = false
      this.#slices.begin(now, now + this.slice)
      if (co.context === null) this.step(co)
      else co.context.run(this.step, this, co)
    } finally {
      this.runningCo = null // (F)
      setSafepointLine(line)
      swapPreemptionDepth(outer)
    }
  }

  /** The coroutine's own part of the switch. */
  step(co: Co<any>): void {
    const { coroutine, sent, raising } = co
    co.sent = undefined
    co.raising = false
    const depth = this.unmask(co) // (C)
    let finished: boolean
    try {
      if (raising) finished = coroutine.raise(sent)
      else if (coroutine.state === 'ready') finished = coroutine.start()
      else finished = coroutine.resume(sent)
    } finally {
      this.remask(co, depth) // (D)
    }
    if (finished) this.ended(co)
    else this.stopped(co)
  }

  /**
   * The design's `preemptSigHandler`: at a safepoint of the coroutine that runs. True: it must yield
   * PREEMPTED.
   */
  preempt(): boolean {
    const co = this.runningCo
    if (co === null) return false // [1]
    if (!this.#slices.isOver() && !this.preemptWanted) return false // [2]
    this.preemptWanted = false
    this.preempted = co
    co.preemptions++
    return true // [3]
  }

  /** (G) The coroutine that was preempted, for the loop to make ready; null: none. */
  takePreempted(): Co<any> | null {
    const co = this.preempted
    this.preempted = null
    assert(co === null || co.state === 'RUNNING', 'only a coroutine that runs is preempted')
    return co
  }

  /** No coroutine will run for a while. */
  idle(): void {
    this.#slices.end()
  }

  protected mask(): number {
    return swapPreemptionDepth(preemptionDepth() + 1)
  }

  protected unmask(co: Co<any>): number {
    return swapPreemptionDepth(co.coroutine.preemptionDepth)
  }

  protected remask(co: Co<any>, depth: number): void {
    co.coroutine.preemptionDepth = swapPreemptionDepth(depth)
  }

  protected ended(co: Co<any>): void {
    assert(this.preempted === null, 'a coroutine that was told to stop at a safepoint must yield there')
    this.runningCo = null // (E)
    co.state = 'STOP'
  }

  protected stopped(co: Co<any>): void {
    const { state } = co.coroutine
    if (this.preempted !== null) {
      assert(state === 'preempted', 'a coroutine that was told to stop at a safepoint must yield there')
    } else if (co.state === 'RUNNING' && state === 'suspended') {
      co.state = 'SUSPEND'
    }
    this.onStop?.(co)
  }
}
