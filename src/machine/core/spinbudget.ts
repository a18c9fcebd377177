/** A shorter spin is not worth starting. */
const LEAST_MS = 0.004
/** After this many sleeps without a spin, one short spin tests whether spinning pays again. */
const PROBE_EVERY = 64

/**
 * How long a thread without work should spin before it sleeps. A spin that finds work saves both sides a
 * sleep and a wakeup. One that finds none takes the core from another thread, on a small machine from the
 * very thread that it waits for. So each failed spin halves the next one, down to none, each successful one
 * doubles it, and from time to time a short spin tests whether spinning pays again.
 */
export class SpinBudget {
  /** Milliseconds; 0: do not spin. */
  ms: number
  private readonly most: number
  private sleeps = 0

  constructor(most: number) {
    this.most = most
    this.ms = most
  }

  /** The spin found work, or the thread did not have to sleep. */
  succeeded(): void {
    this.ms = Math.min(this.most, Math.max(this.ms, LEAST_MS) * 2)
  }

  /** The spin found no work, or there was no spin. */
  failed(): void {
    if (this.ms > 0) {
      this.ms = this.ms / 2 < LEAST_MS ? 0 : this.ms / 2
    } else if (++this.sleeps % PROBE_EVERY === 0) {
      this.ms = this.most / 4
    }
  }
}
