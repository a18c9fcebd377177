import type { Platform } from '../../machine/core/platform.ts'

/** A turn that takes longer than this, in milliseconds, has delivered something. */
const QUIET_MS = 0.3

/**
 * Keeps the event loop alive between slices. Whether a socket is readable is known to nobody but the loop
 * itself, so it is let round once after each slice: about a microsecond when nothing is pending. While it
 * does deliver something it is let round again, because one request is often several rounds (accept, read,
 * write), for at most as long as a slice: so a busy server and a busy coroutine share the thread evenly.
 */
export class LoopKeeper {
  turns = 0
  readonly #platform: Platform
  readonly #slice: number

  constructor(platform: Platform, slice: number) {
    this.#platform = platform
    this.#slice = slice
  }

  /**
   * Whether coroutines have run for long enough since the last turn. Half a slice: ticks are never quite
   * exact.
   */
  isDue(ranMs: number): boolean {
    return ranMs >= this.#slice / 2
  }

  async turn(): Promise<void> {
    const { now, delivered, turn } = this.#platform
    const started = now()
    let before = started
    for (;;) {
      const events = delivered?.()
      this.turns++
      await turn()
      const after = now()
      const quiet = events === undefined ? after - before < QUIET_MS : delivered?.() === events
      if (quiet || after - started >= this.#slice) return
      before = after
    }
  }
}
