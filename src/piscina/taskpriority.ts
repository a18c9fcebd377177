import type { SpawnOptions, TaskPriority } from '../kernel/boot/options.ts'

/**
 * The priority of a pool's task among the others, if tasks are preempted and the program has set none.
 *
 *   level                   which tasks                                        among equals
 *   -----                   -----------                                        ------------
 *   96 'high'               tasks with that option                             first come, first served
 *   112 AHEAD               tasks of a handler that often ends within          first come, first served; after AHEAD_MS the
 *                           AHEAD_MS, or that has hardly run yet               task moves to the next level
 *   124 STEADY              the others                                         first come, first served, in slices of STEADY_MS
 *   128 'normal'            in a pool where a task has a nice value            by weight, in slices of the kernel
 *
 * So a short task never waits for a long one, and a handler that is always long does not take AHEAD_MS from
 * short tasks at each start. Long tasks run to their end one after the other, as in piscina: in short slices,
 * all of them would end late, and all their memory would stay in use. STEADY_MS is for tasks that never end.
 */
export const AHEAD_MS = 10
const AHEAD_PRIORITY = 112
const STEADY_PRIORITY = 124
const STEADY_MS = 200

/**
 * A handler is long if its last runs were. Each run counts for a quarter of the estimate, which is at most
 * CERTAIN.
 */
const CERTAIN = 1024
const LONG = 0.75 * CERTAIN
/** How many handlers a pool distinguishes; further ones share an entry. */
const HANDLERS = 1024

/** The spawn options of a task. */
interface Placement {
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
   * The estimate for each handler that its next run is long, updated by the workers. Null if tasks are not
   * preempted.
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

  /** The priority of a task after AHEAD_MS. */
  get afterAhead(): TaskPriority {
    return this.hasNice ? 'normal' : STEADY_PRIORITY
  }
}

/** Records a run of this handler. Two concurrent updates may lose one of the runs. */
export function learn(known: Int32Array, handler: number, isLong: boolean): void {
  const before = Atomics.load(known, handler)
  Atomics.store(known, handler, before + (((isLong ? CERTAIN : 0) - before) >> 2))
}
