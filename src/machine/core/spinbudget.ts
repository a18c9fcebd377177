/** A sleep of so many full spins is idleness: the spin before it cost next to nothing. */
const IDLE_SPINS = 20
/** A thread spins until that many more of its spins have failed than have found work. */
const CREDIT = 4
/** The credit of a thread that tests whether spinning pays again. */
const TEST_CREDIT = 2
/** After so many short sleeps, a thread that does not spin tests it again. */
const SHORT_SLEEPS = 4
/** Each failed test doubles that number, up to this one. */
const SHORT_SLEEPS_MOST = 64

/**
 * Whether a thread without work should spin for a while before it sleeps. A spin that finds work saves both
 * sides a sleep and a wakeup. One that finds none takes the core from another thread, on a small machine from
 * the very thread that it waits for. So a thread whose spins mostly fail stops spinning.
 *
 *   after a spin                           effect
 *   it found work                          one more credit
 *   it failed, and a sleep followed        one credit less; without credit the thread stops spinning
 *   it failed, and the thread was idle     none: that says nothing about the next work, and 1 part in 20 of
 *                                          the time is no loss
 *
 * A thread that does not spin counts its short sleeps: a spin would have found that work. They need not come
 * in a row. Two threads that answer each other sleep longer now and then, when the other one has slept too.
 * After a few of them it tests two spins of full length: the first may still meet the sleep of the other
 * side. On a machine without a free core the test fails, and the next one comes later.
 */
export class SpinBudget {
  /** How long to spin, in milliseconds; 0: not at all. */
  ms: number
  /** Whether the thread has spun before this sleep. */
  spun = false
  private readonly most: number
  private credit = CREDIT
  private shortSleeps = 0
  private sleepsToTest = SHORT_SLEEPS

  constructor(most: number) {
    this.most = most
    this.ms = most
  }

  /** The spin found work, or the thread did not have to sleep. */
  found(): void {
    if (this.ms === 0) this.slept(0)
    else if (this.credit < CREDIT) this.credit++
    else this.sleepsToTest = SHORT_SLEEPS
  }

  /** The thread slept so many milliseconds: after a spin that failed, if it spins at all. */
  slept(ms: number): void {
    if (ms >= this.most * IDLE_SPINS) return
    if (this.ms > 0) {
      if (--this.credit > 0) return
      this.ms = 0
      this.shortSleeps = 0
    } else if (ms < this.most && ++this.shortSleeps >= this.sleepsToTest) {
      this.sleepsToTest = Math.min(SHORT_SLEEPS_MOST, this.sleepsToTest * 2)
      this.credit = TEST_CREDIT
      this.ms = this.most
    }
  }
}
