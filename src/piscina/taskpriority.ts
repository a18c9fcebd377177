import type { SpawnOptions, TaskPriority } from '../kernel/boot/options.ts'

/**
 * How a task of a pool stands among the others, where tasks are preempted and the program has said nothing
 * about this one.
 *
 *   level                   which tasks                                        among equals
 *   -----                   -----------                                        ------------
 *   96 'high'               for which the program has asked for that           first come, first served
 *   112 AHEAD               of a handler that often ends within AHEAD_MS,      first come, first served; after AHEAD_MS the task
 *                           or that has hardly run yet                         joins the next level
 *   124 STEADY              the others                                         first come, first served, in slices of STEADY_MS
 *   128 'normal'            in a pool where a task has a nice                  by weight, in slices of the kernel
 *
 * So a short task waits for no long one, and a handler that is always long does not take AHEAD_MS from short
 * tasks at each of its starts. Long tasks run to their end one after the other, as in piscina: sharing a CPU
 * by short slices would end all of them late, and keep what all of them have allocated alive. STEADY_MS is
 * for those that never end.
 */
export const AHEAD_MS = 10
const AHEAD_PRIORITY = 112
const STEADY_PRIORITY = 124
const STEADY_MS = 200

/**
 * A handler is long when its last runs were: each counts for a quarter of what is known, of which CERTAIN is
 * the most.
 */
const CERTAIN = 1024
const LONG = 0.75 * CERTAIN
/** How many handlers a pool tells apart; others share what is known. */
const HANDLERS = 1024

/** What a task is spawned with. */
export interface Placement {
  readonly options: Pick<SpawnOptions, 'priority' | 'nice' | 'slice' | 'roundRobin'>
  readonly goesAhead: boolean
}

interface TaskRequest {
  readonly name: string
  readonly filename: string
  readonly priority: TaskPriority | undefined
  readonly nice: number | undefined
}

const ahead: Placement = {
  options: { priority: AHEAD_PRIORITY, slice: STEADY_MS, roundRobin: true },
  goesAhead: true,
}
const steady: Placement = {
  options: { priority: STEADY_PRIORITY, slice: STEADY_MS, roundRobin: true },
  goesAhead: false,
}
const ordinary: Placement = { options: {}, goesAhead: false }

export class Placements {
  /**
   * How likely the next run of each handler is to be long: the workers learn it. Null: tasks are not
   * preempted, and it is of no use.
   */
  readonly known: Int32Array | null
  private readonly handlers = new Map<string, number>()
  private hasNice = false

  constructor(preempts: boolean) {
    this.known = preempts ? new Int32Array(new SharedArrayBuffer(HANDLERS * 4)) : null
  }

  of({ priority, nice }: TaskRequest, handler: number): Placement {
    if (nice !== undefined) this.hasNice = true
    const { known } = this
    if (known === null || nice !== undefined || (priority !== undefined && priority !== 'normal')) {
      return {
        options: { ...(priority !== undefined && { priority }), ...(nice !== undefined && { nice }) },
        goesAhead: false,
      }
    }
    if (priority === undefined && Atomics.load(known, handler) < LONG) return ahead
    return this.hasNice ? ordinary : steady
  }

  /** The number of the task's handler. */
  handlerOf({ name, filename }: TaskRequest): number {
    const { handlers } = this
    const key = `${name} ${filename}`
    let found = handlers.get(key)
    if (found === undefined) {
      found = Math.min(handlers.size, HANDLERS - 1)
      if (found < HANDLERS - 1) handlers.set(key, found)
    }
    return found
  }

  /** The priority of a task that no longer goes ahead. */
  get afterAhead(): TaskPriority {
    return this.hasNice ? 'normal' : STEADY_PRIORITY
  }
}

/** A run of this handler has returned. Two workers that learn at once may lose one of the two runs. */
export function learn(known: Int32Array, handler: number, isLong: boolean): void {
  const before = Atomics.load(known, handler)
  Atomics.store(known, handler, before + (((isLong ? CERTAIN : 0) - before) >> 2))
}
