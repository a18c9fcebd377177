import { startThreadTimekeeper, type ThreadTimekeeper } from '../../machine/timekeeper/threadtimekeeper.ts'
import { ClockSlices, ThreadSlices } from './slices.ts'
import type { Switch } from '../core/switch.ts'

/** How long a schedule must have been busy before a thread is started for it: both times must have passed. */
const THREAD_AFTER_MS = 100
const THREAD_AFTER_SLICES = 10

/** A schedule that was collected gives its timekeeper back. */
const abandoned = new FinalizationRegistry<ThreadTimekeeper>(timekeeper => timekeeper.close())

/**
 * The source of a schedule's ticks. With a timekeeper thread safepoints are cheapest, but the thread takes
 * some tens of milliseconds to start. Until it runs, and where there can be none, the clock is read instead.
 */
export class TickSource {
  readonly #switch: Switch
  readonly #wanted: 'auto' | 'clock' | 'thread'
  #busyMs = 0
  #timekeeper: ThreadTimekeeper | undefined
  #isThread = false
  #tried = false

  constructor(wanted: 'auto' | 'clock' | 'thread', to: Switch) {
    if (wanted !== 'auto' && wanted !== 'clock' && wanted !== 'thread') {
      throw new RangeError(
        `ticks: ${String(wanted)} is not a source of ticks; give 'auto', 'clock' or 'thread'`,
      )
    }
    this.#wanted = wanted
    this.#switch = to
    if (wanted !== 'thread') return
    this.#start()
    if (this.#timekeeper === undefined) {
      throw new Error(
        "ticks: 'thread' needs workers and memory that can be shared; use 'auto' or 'clock' here",
      )
    }
  }

  get kind(): 'clock' | 'thread' {
    return this.#isThread ? 'thread' : 'clock'
  }

  /**
   * Coroutines have run for `ms`, and none runs now: the source is changed here if there is a better one.
   */
  busy(ms: number): void {
    if (this.#isThread || this.#wanted === 'clock') return
    if (this.#timekeeper === undefined) {
      this.#busyMs += ms
      const after = Math.max(THREAD_AFTER_MS, THREAD_AFTER_SLICES * this.#switch.slice)
      if (!this.#tried && this.#busyMs >= after) this.#start()
      return
    }
    if (!this.#timekeeper.isRunning()) return
    const { i32, region, cpu, shift } = this.#timekeeper
    this.#switch.slices = new ThreadSlices(i32, region, cpu, shift)
    this.#isThread = true
  }

  /** Ends the thread. */
  close(): void {
    if (this.#isThread) this.#switch.slices = new ClockSlices(this.#switch.now)
    this.#isThread = false
    abandoned.unregister(this)
    this.#timekeeper?.close()
    this.#timekeeper = undefined
    this.#tried = true
  }

  #start(): void {
    this.#tried = true
    this.#timekeeper = startThreadTimekeeper()
    if (this.#timekeeper !== undefined) abandoned.register(this, this.#timekeeper, this)
  }
}
