import { captureOrigin } from '../../coroutine/core/uncaught.ts'

/** The place that spawned a task. */
export type Origin = { readonly stack?: string } | null

/** Frames of the spawning place that the errors of a task show. */
const ORIGIN_FRAMES = 4
/** The first spawns of a turn each capture their stack; after them only one of several does. */
const EXACT_SPAWNS = 64
const LOOK_EVERY = 64
/** From this many spawns on, even fewer do. */
const MANY_SPAWNS = 1024
const MANY_LOOK_EVERY = 1024

/**
 * Captures the places that spawn. Capturing a stack costs more than the rest of a spawn. So in a long run of
 * spawns of one function, without an `await` in between, only some capture it: such a run is a loop.
 */
export class Origins {
  private spawns = 0
  private fn: object | null = null
  private latest: Origin = null
  private readonly endTurn = (): void => {
    this.spawns = 0
    this.fn = null
    this.latest = null
  }

  /** The place that called `below`, which spawns `fn`. */
  take(fn: object, below: (...args: any[]) => unknown): Origin {
    const spawns = this.spawns++
    if (spawns === 0) queueMicrotask(this.endTurn)
    const every = spawns < MANY_SPAWNS ? LOOK_EVERY : MANY_LOOK_EVERY
    if (spawns >= EXACT_SPAWNS && this.fn === fn && spawns % every !== 0) return this.latest
    this.fn = fn
    this.latest = captureOrigin(below, ORIGIN_FRAMES)
    return this.latest
  }
}
