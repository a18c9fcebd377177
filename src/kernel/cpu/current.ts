import { immovable } from '../../coroutine/core/movable.ts'
import { CoroutineError } from '../../coroutine/core/errors.ts'
import { type Known, refuseUnknown, show } from '../../coroutine/core/knownoptions.ts'
import { Entity } from '../../sched/core/entity.ts'
import type { Scheduler } from '../../sched/core/scheduler.ts'
import { setPriority } from '../../sched/core/setpriority.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { isCurrent } from '../../sched/core/wakeup.ts'
import { asyncContext } from './asynccontext.ts'
import { killUnstarted } from '../join/cancel.ts'
import { ChildTask } from '../join/childtask.ts'
import { captureContextWord } from './context.ts'
import { TaskExit } from '../join/finish.ts'
import type { AnyFunction } from '../spawn/functions.ts'
import {
  JOB_DETACHED,
  Job,
  JOB_LOCAL,
  JOB_PINNED,
  KILL_ABORTED,
  LOCAL_FUNCTION,
  JOB_RESTARTABLE,
} from '../spawn/job.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { immovableError, type ResultOf } from '../spawn/modules.ts'
import {
  checkArguments,
  checkSpawnOptions,
  priorityOf,
  type SpawnOptions,
  type TaskPriority,
} from '../boot/options.ts'
import { here } from './here.ts'
import { spawnJob, taskOptions } from '../spawn/spawn.ts'
import { nameLocal } from './tasklocal.ts'
import { extrasOf, type CpuTask } from './cputask.ts'

/** The task that is running, as it sees itself. */
export interface CurrentTask {
  readonly id: number
  readonly name: string
  /** The CPU that it runs on. */
  readonly cpu: number
  /** The id of the task that spawned it; null: it was spawned from outside, or detached. */
  readonly parent: number | null
  /** The tasks that it has spawned and not joined. */
  readonly children: readonly ChildTask[]
  /** Aborted when the task is killed: for calls of an async function. */
  readonly signal: AbortSignal
}

/** The task that this code runs in. Throws outside of one. */
export function current(): CurrentTask {
  const { on, run } = taskHere('current()')
  const { i32 } = on.view
  const { job } = run
  return {
    id: i32[job + Job.number],
    name: on.nameOf(run),
    cpu: on.cpu.id,
    parent: i32[job + Job.spawner] === 0 ? null : i32[job + Job.spawner],
    children: run.extras?.children == null ? [] : [...run.extras.children],
    get signal() {
      const rare = extrasOf(run)
      if (rare.abort === null) {
        rare.abort = new AbortController()
        if (rare.isKilled) rare.abort.abort(rare.killedWith)
      }
      return rare.abort.signal
    },
  }
}

/** @internal Changes a task from its own CPU, whether or not it has ended. */
export interface TaskReference {
  /** False: it has ended. */
  setPriority(priority: TaskPriority): boolean
  /** Milliseconds that it has been on its CPU until now. 0: it has ended. */
  readonly runTime: number
}

/** @internal A reference to the running task, for other tasks of its CPU. */
export function currentHandle(): TaskReference {
  const { on, run } = taskHere('currentHandle()')
  const { view } = on
  const handle = view.jobs.handleOf(view.i32, run.job)
  return {
    setPriority(priority) {
      const job = view.jobs.resolve(view.i32, handle)
      if (job === 0) return false
      return view.withTask(job, task => setPriority(view.s, task, priorityOf(priority)))
    },
    get runTime() {
      const job = view.jobs.resolve(view.i32, handle)
      let ran = 0
      if (job !== 0) view.withTask(job, task => (ran = runTimeHere(view.s, task)))
      return ran
    },
  }
}

/** Only this CPU charges the task, and it runs this code now: the sum does not change meanwhile. */
function runTimeHere(s: Scheduler, task: number): number {
  const { f64, i32 } = s
  const se = i32[task + TaskRecord.entity]
  const ran = f64[(se + Entity.runTime) >> 1]
  return isCurrent(s, se) ? ran + Math.max(0, s.readClock() - f64[(se + Entity.execStart) >> 1]) : ran
}

/** Whether this code runs in a task. */
export function inTask(): boolean {
  return here.cpu !== null || asyncContext.current() !== undefined
}

/**
 * Starts a task from inside a task. A function that a module given to `kernel.import` exports may start on
 * any CPU, and its arguments travel there. Any other function (a closure, or one of a module that only
 * this module imports) stays on this CPU, and its arguments are not copied.
 */
export function spawn<A extends unknown[], R>(
  fn: (...args: A) => R,
  args?: A,
  options?: SpawnOptions,
): ChildTask<ResultOf<R>>
export function spawn(
  fn: AnyFunction,
  args: readonly unknown[] = [],
  options: SpawnOptions = {},
): ChildTask<any> {
  const { on, run } = taskHere('spawn()')
  const { view } = on
  checkSpawnOptions(options, view.plan.sizes.cpus)
  if (typeof fn !== 'function')
    throw new TypeError(`spawn(${show(fn)}): not a function; give a function of this module or of another`)
  checkArguments(fn.name, args)
  const number = on.code.functions.numberOf(fn)
  const { detached = false, restartable = false } = options
  const name = options.name ?? (fn.name || 'task')
  const isLocal = number === undefined
  if (options.movable === true) {
    const why = isLocal
      ? 'no other CPU knows it; export it from a module that kernel.import loads'
      : immovable(fn)
    if (why !== null) throw immovableError(name, why)
  }
  const task = taskOptions(view, isLocal ? { ...options, affinity: [on.cpu.id] } : options, name)
  const control =
    (isLocal ? JOB_LOCAL : 0) |
    (detached ? JOB_DETACHED : 0) |
    (options.movable === false ? JOB_PINNED : 0) |
    (restartable && !isLocal ? JOB_RESTARTABLE : 0)
  const context = captureContextWord(view.codec)
  let word = 0
  let job: number
  try {
    if (!isLocal) word = view.codec.encodeList(args, 'args', options.transfer as readonly ArrayBuffer[])
    job = spawnJob(
      view,
      {
        fn: number ?? LOCAL_FUNCTION,
        name,
        args: word,
        context,
        control,
        owner: on.cpu.id,
        spawner: detached ? 0 : view.i32[run.job + Job.number],
        task,
      },
      made => {
        if (isLocal) on.code.addLocal(made, name, fn, args)
        const { signal } = options
        if (signal?.aborted === true) killUnstarted(view, made, KILL_ABORTED, signal.reason)
      },
    )
  } catch (error) {
    view.codec.free(word)
    view.codec.free(context)
    throw error
  }
  const child = new ChildTask<any>(view, job, name)
  const { timeout = Infinity } = options
  const watched = detached ? options.signal : undefined
  if (timeout !== Infinity || watched !== undefined) {
    const handle = view.jobs.handleOf(view.i32, job)
    const limit = (): Generator<number, void, unknown> => child.limit(handle, timeout, watched)
    spawn(limit, [], { name: `limit of ${name}`, detached: true, priority: 'high' })
  }
  if (detached) child.disown()
  else {
    const rare = extrasOf(run)
    rare.children ??= new Set()
    rare.children.add(child)
    child.onTaken = () => rare.children?.delete(child)
    if (options.signal !== undefined) child.watch(options.signal)
  }
  return child
}

/** Ends the running task here, as if it had returned `value`. Its `finally` blocks run. */
export function exit(value?: unknown): never {
  taskHere('exit()')
  throw new TaskExit(value)
}

const taskLocalOptions: Known<TaskLocalOptions> = { name: true }

export interface TaskLocalOptions {
  /**
   * Its name, the same on every CPU, by which a task that moves finds it. Default: the place in the source;
   * enough for a task-local that a module makes when it is loaded.
   */
  readonly name?: string
}

/** A value for each task. */
export class TaskLocal<T> {
  readonly #initial: () => T

  constructor(initial: () => T, options: TaskLocalOptions = {}) {
    if (typeof initial !== 'function')
      throw new TypeError(
        `new TaskLocal(${show(initial)}): not a function; give one that returns the first value, as in () => 0`,
      )
    refuseUnknown('new TaskLocal(initial, options)', options, taskLocalOptions)
    if (options.name !== undefined && typeof options.name !== 'string')
      throw new TypeError(`name: ${show(options.name)} is not a string; give a string`)
    this.#initial = initial
    nameLocal(this, options.name, TaskLocal)
  }

  get value(): T {
    const locals = this.#locals()
    if (!locals.has(this)) locals.set(this, this.#initial())
    return locals.get(this) as T
  }

  set value(value: T) {
    this.#locals().set(this, value)
  }

  #locals(): Map<object, unknown> {
    return (extrasOf(taskHere('a task-local value').run).locals ??= new Map())
  }
}

/** @internal The running task, and its CPU. */
export function taskHere(what: string): { on: KernelCpu; run: CpuTask } {
  const on = here.cpu
  if (on !== null) return { on, run: on.currentRun() }
  const run = asyncContext.current()
  const its = run?.extras?.on
  if (run !== undefined && its != null) return { on: its, run }
  throw new CoroutineError(
    'ERR_HEDDLE_RUNNING_CO_NULL',
    `${what} needs a task, and none is running here: call it from a function that kernel.spawn runs`,
  )
}
