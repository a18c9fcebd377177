/** A look that would be shorter is none. */
const LEAST_MS = 0.004
/** Sleeps without a look before one finds out whether things have changed. */
const PROBE_EVERY = 64

/**
 * How long a thread without work should look for some before it sleeps. A look that finds something saves
 * both sides a sleep and its end; one that does not takes the core from someone else, and on a machine with
 * fewer cores than threads from the very thread that it waits for. So each look that was in vain halves the
 * next, down to none at all, each that was not doubles it, and now and then a short one finds out whether
 * things have changed.
 */
export class SpinBudget {
  /** Milliseconds; 0: do not look. */
  ms: number
  private readonly most: number
  private sleeps = 0

  constructor(most: number) {
    this.most = most
    this.ms = most
  }

  /** A look found something, or the thread was not even put to sleep. */
  succeeded(): void {
    this.ms = Math.min(this.most, Math.max(this.ms, LEAST_MS) * 2)
  }

  /** A look was in vain, or there was none. */
  failed(): void {
    if (this.ms > 0) {
      this.ms = this.ms / 2 < LEAST_MS ? 0 : this.ms / 2
    } else if (++this.sleeps % PROBE_EVERY === 0) {
      this.ms = this.most / 4
    }
  }
}
