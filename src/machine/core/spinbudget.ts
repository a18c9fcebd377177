/** A shorter spin is not worth starting. */
const LEAST_MS = 0.004
/** After so many short sleeps in a row, one spin of full length tests whether spinning pays again. */
const SHORT_SLEEPS = 4
/** Each failed test doubles that number, up to this one. */
const SHORT_SLEEPS_MOST = 256

/**
 * How long a thread without work should spin before it sleeps. A spin that finds work saves both sides a
 * sleep and a wakeup. One that finds none takes the core from another thread, on a small machine from the
 * very thread that it waits for. So each failed spin halves the next one, down to none, and each successful
 * one doubles it.
 *
 * A thread that no longer spins tests it again when its sleeps are short: a spin would have found that work.
 * On a machine without a free core the test fails, and the next one comes later. The test has full length:
 * two threads that wait for each other in turn may both have stopped spinning. Then each waits for the other
 * side's wakeup too, and a short test would fail for ever.
 */
export class SpinBudget {
  /** Milliseconds; 0: do not spin. */
  ms: number
  private readonly most: number
  private shortSleeps = 0
  private sleepsToTest = SHORT_SLEEPS
  private isTest = false

  constructor(most: number) {
    this.most = most
    this.ms = most
  }

  /** The spin found work, or the thread did not have to sleep. */
  succeeded(): void {
    this.ms = Math.min(this.most, Math.max(this.ms, LEAST_MS) * 2)
    this.sleepsToTest = SHORT_SLEEPS
    this.isTest = false
  }

  /** The spin found no work. */
  failed(): void {
    if (this.isTest) {
      this.isTest = false
      this.ms = 0
      this.sleepsToTest = Math.min(SHORT_SLEEPS_MOST, this.sleepsToTest * 2)
      return
    }
    this.ms = this.ms / 2 < LEAST_MS ? 0 : this.ms / 2
  }

  /** The thread slept so many milliseconds, without a spin before. */
  slept(ms: number): void {
    this.shortSleeps = ms < this.most ? this.shortSleeps + 1 : 0
    if (this.shortSleeps < this.sleepsToTest) return
    this.shortSleeps = 0
    this.ms = this.most
    this.isTest = true
  }
}
