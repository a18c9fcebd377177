import { ArenaFullError } from '../../arena/memory/arena.ts'
import { type Coroutine, coroutineOf, twin } from '../../coroutine/core/coroutine.ts'
import type { AfterAwait, Stretch } from '../../thread/runner.ts'
import { Entity } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { currentContext } from './asynccontext.ts'
import type { EnterContext } from './context.ts'
import { JOB_DETACHED, JOB_LOCAL, LOCAL_FUNCTION } from '../spawn/job.ts'
import { takesStretches, wakeFromAwait } from './asynctask.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { disownJob } from '../join/outcome.ts'
import { type JobSpec, spawnJob } from '../spawn/spawn.ts'
import { RUN_OVER, type CpuTask } from './cputask.ts'

/**
 * The code after each `await` of an async task, in stretches. A stretch arrives from the event loop when its
 * promise has settled. The task runs the stretches one after the other, in its own turns: they are preempted,
 * charged to the task, and may block.
 *
 *   the task                                        | a stretch that arrives
 *   ------------------------------------------------+-----------------------------------------------------------
 *   [1] sleeps until its promise settles            | is queued, and the task is woken
 *   [2] keeps its CPU while a few microtasks run    | is queued, and found after those
 *   [3] is preempted inside another stretch         | is queued
 *   [4] blocks inside another stretch, or still     | gets its own task on this CPU: the blocked stretch may wait for it
 *       runs the code before its first await        |
 *   [5] has ended                                   | runs in the event loop
 *
 * When a stretch blocks, those that are queued behind it get their own tasks, for the same reason as in [4].
 */
export class Stretches implements AfterAwait {
  /** The stretch that has begun and not ended. */
  current: Coroutine | null = null
  /** Enters the asynchronous context of the current stretch: that of its `await`. */
  enter: EnterContext | null = null
  /** How many have run since the task last yielded its CPU. */
  inARow = 0
  private readonly on: KernelCpu
  private readonly run: CpuTask
  private readonly queue: { readonly stretch: Stretch; readonly enter: EnterContext | null }[] = []

  constructor(on: KernelCpu, run: CpuTask) {
    this.on = on
    this.run = run
  }

  get isReady(): boolean {
    return this.current !== null || this.queue.length > 0
  }

  goOn(stretch: Stretch): boolean {
    if ((this.run.flags & RUN_OVER) !== 0 || this.on.isGone) return false
    const enter = currentContext()
    if (!takesStretches(this.run) || this.current?.state === 'suspended') {
      return spawnStretch(this.on, this.run, stretch, enter)
    }
    this.queue.push({ stretch, enter })
    wakeFromAwait(this.on, this.run)
    return true
  }

  /** The stretch to run now: the current one, or else the first of the queue, which is not empty. */
  begin(): Coroutine {
    if (this.current !== null) return this.current
    const { stretch, enter } = this.queue.shift()!
    this.enter = enter
    this.current = coroutineOf(stretch.run, [], stretch)
    return this.current
  }

  /** The current stretch has reached its next `await`, or the end of its function. */
  end(): void {
    this.current = null
    this.enter = null
  }

  /** Gives each queued stretch its own task, or runs it in the event loop where there is no room. */
  release(): void {
    for (const { stretch, enter } of this.queue.splice(0)) {
      if ((this.run.flags & RUN_OVER) === 0 && spawnStretch(this.on, this.run, stretch, enter)) continue
      const run = (): void => stretch.runInEventLoop()
      queueMicrotask(enter === null ? run : () => enter(run))
    }
  }
}

/** Makes a task on this CPU that runs one stretch of another task. False: there is no room for it. */
function spawnStretch(on: KernelCpu, run: CpuTask, stretch: Stretch, enter: EnterContext | null): boolean {
  const { view } = on
  const { i32 } = view
  const name = on.nameOf(run)
  const se = i32[run.task + TaskRecord.entity]
  const spec: JobSpec = {
    fn: LOCAL_FUNCTION,
    name,
    args: 0,
    context: 0,
    control: JOB_LOCAL | JOB_DETACHED,
    owner: on.cpu.id,
    spawner: 0,
    task: {
      name,
      priority: i32[se + Entity.basePriority],
      nice: i32[se + Entity.nice],
      affinity: [on.cpu.id],
    },
  }
  const resume = (): Generator<number, void, unknown> => stretch.run()
  Object.defineProperty(resume, twin, { value: resume })
  try {
    const job = spawnJob(view, spec, made => on.code.addLocal(made, name, resume, [], { run, enter }))
    disownJob(view, job)
  } catch (error) {
    if (error instanceof ArenaFullError) return false
    throw error
  }
  on.kickSelf()
  return true
}
