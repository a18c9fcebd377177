import type { Platform } from '../../machine/core/platform.ts'
import type { Slices } from './slices.ts'

/**
 * Time that passes only in the simulation: each safepoint costs a fixed time, and an idle wait takes its full
 * virtual time. A schedule on virtual time does the same in every run, and an hour of sleep takes no real
 * time.
 *
 *     const time = new VirtualTime()
 *     const schedule = new Schedule({ platform: time, ticks: time.slices(0.01) })
 *     schedule.runSync()
 */
export class VirtualTime implements Platform {
  readonly timerGrain = 0
  #now = 0

  now = (): number => this.#now

  advance(ms: number): void {
    this.#now += ms
  }

  turn = (): Promise<void> => Promise.resolve()

  setTimer(callback: () => void, ms: number): unknown {
    const timer = { live: true }
    void Promise.resolve().then(() => {
      if (!timer.live) return
      this.#now += ms
      callback()
    })
    return timer
  }

  clearTimer(timer: unknown): void {
    ;(timer as { live: boolean }).live = false
  }

  block(ms: number): void {
    this.#now += ms
  }

  /** Slices on this time; a safepoint costs so many milliseconds. */
  slices(safepointMs: number): Slices {
    return new VirtualSlices(this, safepointMs)
  }
}

class VirtualSlices implements Slices {
  readonly view: Int32Array = Int32Array.of(1)
  readonly index = 0
  readonly #time: VirtualTime
  readonly #safepointMs: number
  #end = 0

  constructor(time: VirtualTime, safepointMs: number) {
    this.#time = time
    this.#safepointMs = safepointMs
  }

  begin(_now: number, end: number): void {
    this.#end = end
  }

  isOver(): boolean {
    this.#time.advance(this.#safepointMs)
    return this.#time.now() >= this.#end
  }

  ask(): void {
    // The word is up all the time.
  }

  end(): void {
    this.#end = Infinity
  }
}
