import { captureOrigin } from '../../coroutine/core/uncaught.ts'

/** Where a task was spawned. */
export type Origin = { readonly stack?: string } | null

/** Frames of where it was spawned that the errors of a task show. */
const ORIGIN_FRAMES = 4
/** Spawns of one turn that each look for themselves; and how often one of those after them does. */
const EXACT_SPAWNS = 64
const LOOK_EVERY = 64
/** And how often when there are thousands. */
const MANY_SPAWNS = 1024
const MANY_LOOK_EVERY = 1024

/**
 * Takes the places that spawn. A look at the stack costs more than all the rest of a spawn, so in a long run
 * of spawns of one function, without so much as an `await` in between, only some look: a loop is what makes
 * thousands of them.
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

  /** The place that called `below`, which was asked to spawn `fn`. */
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
