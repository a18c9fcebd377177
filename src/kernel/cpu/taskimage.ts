import { obstacleOf, packFrames, type PackedFrames, unpackFrames } from '../../coroutine/core/packedframes.ts'
import { JOB_HAS_MAIL, JOB_LOCAL, JOB_PINNED, JOB_POSTED, Job } from '../spawn/job.ts'
import type { KernelView } from '../boot/view.ts'
import {
  type CpuTask,
  extrasOf,
  RUN_CLAIMED,
  RUN_PARKED,
  RUN_RESTARTS,
  RUN_TIMED,
  RUN_WAKEABLE,
} from './cputask.ts'
import { ImageError } from '../../payload/imagekinds.ts'
import { localOf, nameOfLocal } from './tasklocal.ts'

/**
 * The state of a started task as one value, and the task again. All of it is one graph, so that an error that
 * a frame holds is still the error that the task was killed with.
 *
 *   travels in this value    frames, values, the depth of preemption off; task-locals; whether a kill was
 *                            thrown, and which error; the value that ends its wait; how many locks it holds
 *   stays where it is        all records of the arena: state, timer, priority, locks that it holds, pending
 *                            kill, the inherited context (a payload of the job)
 *   an obstacle              everything else in the heap of its CPU: see `obstacleTo`
 */
export interface TaskImage {
  readonly frames: PackedFrames
  readonly sent: unknown
  readonly flags: number
  readonly isKilled: boolean
  readonly killedWith: unknown
  readonly locals: readonly (readonly [name: string, value: unknown])[]
  /** How many locks it holds, and shares: 0 at a checkpoint. */
  readonly locks: number
  readonly shares: number
}

/** The flags of a wait that only time, or a record of the arena, ends. */
const WAIT_FLAGS = RUN_PARKED | RUN_TIMED

/**
 * Why the task, which does not run, cannot be packed now. Null: it can. `waits`: a wait that the task can
 * leave is no obstacle.
 */
export function obstacleTo(view: KernelView, run: CpuTask, waits: boolean = false): string | null {
  const { extras } = run
  const control = Atomics.load(view.i32, run.job + Job.control)
  if ((control & JOB_PINNED) !== 0) return 'it was spawned with `movable: false`'
  if ((control & JOB_LOCAL) !== 0) return 'its function exists on this CPU only'
  if ((control & (JOB_HAS_MAIL | JOB_POSTED)) !== 0) return 'it sends or receives messages'
  if (!run.hasCode) return 'it has not begun'
  if ((run.flags & RUN_WAKEABLE) !== 0) return 'it waits for its event loop'
  if ((run.flags & RUN_CLAIMED) !== 0) return 'its wait is being cancelled'
  if (extras !== null) {
    if (extras.promise !== null || extras.stretches !== null) return 'it awaits a promise'
    if (extras.end !== null) return 'it has ended'
    if (extras.abort !== null) return 'its signal is in use: current().signal'
    for (const child of extras.children ?? []) return `a task that it spawned is not joined: ${child.name}`
    for (const local of extras.locals?.keys() ?? []) {
      if (nameOfLocal(local) === null)
        return 'a TaskLocal that was not made by a module has a value; give it a name'
    }
  }
  const obstacle = obstacleOf(run)
  if (obstacle !== null || waits || (run.flags & RUN_RESTARTS) === 0) return obstacle
  return 'it waits for a lock, and has not left its queue yet'
}

/** The value to encode. The task has no obstacle, and stays as it is. */
export function imageOf(run: CpuTask): TaskImage {
  const { extras } = run
  const locals: [string, unknown][] = []
  for (const [local, value] of extras?.locals ?? []) locals.push([nameOfLocal(local)!, value])
  return {
    frames: packFrames(run),
    sent: run.sent,
    flags: run.flags & WAIT_FLAGS,
    isKilled: extras?.isKilled ?? false,
    killedWith: extras?.killedWith,
    locals,
    locks: extras?.locks ?? 0,
    shares: extras?.shares ?? 0,
  }
}

/**
 * Fills a new CPU task from the decoded value. An image may come from anywhere: if this throws, the task is
 * as it was.
 */
export function restoreTask(run: CpuTask, image: unknown): void {
  if (!isTaskImage(image)) throw new ImageError('the image holds no state of a task')
  const locals = new Map(image.locals.map(([name, value]) => [localOf(name), value]))
  run.become(unpackFrames(image.frames))
  run.sent = image.sent
  run.flags |= image.flags & WAIT_FLAGS
  if (image.isKilled) {
    const rare = extrasOf(run)
    rare.isKilled = true
    rare.killedWith = image.killedWith
  }
  if (image.locks > 0 || image.shares > 0) {
    const rare = extrasOf(run)
    rare.locks = image.locks
    rare.shares = image.shares
  }
  if (locals.size > 0) extrasOf(run).locals = locals
}

function isTaskImage(image: unknown): image is TaskImage {
  const { flags, isKilled, locals, locks, shares } = (image ?? {}) as Partial<TaskImage>
  return (
    [flags, locks, shares].every(Number.isInteger) &&
    typeof isKilled === 'boolean' &&
    Array.isArray(locals) &&
    locals.every(local => Array.isArray(local) && typeof local[0] === 'string')
  )
}
