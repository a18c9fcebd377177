import { sleep } from '../coroutine/core/blocking.ts'
import { currentHandle, spawn, type TaskReference } from '../kernel/cpu/current.ts'
import type { TaskPriority } from '../kernel/boot/options.ts'
import { AHEAD_MS, learn } from './taskpriority.ts'

/**
 * The short tasks of this CPU, which run before others (taskpriority.ts). Time is the thread's CPU time, if
 * Node provides it: on a busy machine, a task of one millisecond may be on its CPU for twenty.
 */
interface ShortTask {
  readonly task: TaskReference
  /** CPU time of the thread when the task began. */
  readonly began: number
  readonly after: TaskPriority
}

const ahead = new Set<ShortTask>()
let isWatched = false

const cpuMs: () => number =
  typeof process.threadCpuUsage === 'function'
    ? () => {
        const { user, system } = process.threadCpuUsage()
        return (user + system) / 1000
      }
    : () => performance.now()

/**
 * Runs the rest of the current task: before others at first, if `goesAhead`, and with priority `after` when
 * AHEAD_MS have passed. Records how long it took.
 */
export function* timed<T>(
  rest: Generator<number, T, unknown>,
  goesAhead: boolean,
  after: TaskPriority,
  known: Int32Array,
  handler: number,
): Generator<number, T, unknown> {
  const one: ShortTask = { task: currentHandle(), began: cpuMs(), after }
  if (goesAhead) {
    ahead.add(one)
    if (!isWatched) {
      isWatched = true
      spawn(watch, [], { name: 'head starts', detached: true, priority: 'high' })
    }
  }
  try {
    const result = yield* rest
    learn(known, handler, hasRunLong(one))
    return result
  } finally {
    ahead.delete(one)
  }
}

function hasRunLong({ task, began }: ShortTask): boolean {
  return cpuMs() - began > AHEAD_MS && task.runTime > AHEAD_MS
}

/** One watcher for all of them. Its sleep is a timer of the CPU, which also fires while the CPU computes. */
function* watch(): Generator<number, void, unknown> {
  while (ahead.size > 0) {
    yield* sleep(AHEAD_MS)
    for (const one of ahead) {
      if (!hasRunLong(one)) continue
      ahead.delete(one)
      one.task.setPriority(one.after)
    }
  }
  isWatched = false
}
