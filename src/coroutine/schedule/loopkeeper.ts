import type { Platform } from '../../machine/core/platform.ts'

/** A turn that takes longer than this, in milliseconds, has delivered something. */
const QUIET_MS = 0.3

/**
 * Keeps the event loop turning between slices. Only the event loop knows whether a socket is readable, so it
 * turns once after each slice: about a microsecond when nothing is pending. While it delivers something it
 * turns again, because one request is often several turns (accept, read, write), for at most one slice. So a
 * busy server and a busy coroutine share the thread evenly.
 */
export class LoopKeeper {
  turns = 0
  readonly #platform: Platform
  readonly #slice: number
  /**
   * The count of delivered events after the last turn: a read costs as much as a turn. Events that a rest
   * delivered in between cause one more turn.
   */
  #seen: number | undefined

  constructor(platform: Platform, slice: number) {
    this.#platform = platform
    this.#slice = slice
    this.#seen = platform.delivered?.()
  }

  /**
   * Whether coroutines have run for half a slice since the last turn: ticks are not exact.
   */
  isDue(ranMs: number): boolean {
    return ranMs >= this.#slice / 2
  }

  async turn(): Promise<void> {
    const { now, delivered, turn } = this.#platform
    const started = now()
    let before = started
    for (;;) {
      const seen = this.#seen
      this.turns++
      await turn()
      const after = now()
      this.#seen = delivered?.()
      const quiet = this.#seen === undefined ? after - before < QUIET_MS : this.#seen === seen
      if (quiet || after - started >= this.#slice) return
      before = after
    }
  }
}
