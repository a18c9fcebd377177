import { RunQueue } from '../../sched/core/runqueue.ts'
import { startByArrival } from '../../sched/core/arrivals.ts'
import { Entity, POLICY_BOUND } from '../../sched/core/entity.ts'
import { ExtRecord, TAKES_LISTED } from '../../sched/ext/extlayout.ts'
import { createTask, publishTask, startTask, type TaskOptions } from '../../sched/core/fork.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { maskOf } from '../../sched/core/cpumask.ts'
import { Counters, countSpawned } from '../boot/counters.ts'
import { Job, JOB_HAS_IMAGES, JOB_LOCAL, JobImages, NOT_KILLED, OUTCOME_PENDING } from './job.ts'
import { BOOTING_THREAD } from '../boot/layout.ts'
import { priorityOf, type SpawnOptions } from '../boot/options.ts'
import { isRecording } from '../../arena/rings/eventring.ts'
import type { KernelView } from '../boot/view.ts'

/** The options of a spawn without options. */
export const noOptions: SpawnOptions = {}
const noTaskOptions: TaskOptions = {}

/** The scheduler's options of a task with these spawn options. A trace needs its name in any case. */
export function taskOptions(view: KernelView, options: SpawnOptions, name: string): TaskOptions {
  const { events } = view.plan.scheduler
  const isRecorded = events !== null && isRecording(view.i32, events)
  if (options === noOptions && !isRecorded) return noTaskOptions
  const { priority, nice, affinity, slice, roundRobin } = options
  return {
    ...((options.name !== undefined || isRecorded) && { name }),
    ...(priority !== undefined && { priority: priorityOf(priority) }),
    ...(nice !== undefined && { nice }),
    ...(affinity !== undefined && { affinity }),
    ...(slice !== undefined && { slice }),
    ...(roundRobin !== undefined && { roundRobin }),
  }
}

/** The description of a job to spawn. */
export interface JobSpec {
  readonly fn: number
  /** The task's name: its own, or its function's. */
  readonly name: string
  /** A payload, owned by this thread until the job takes it; 0: no arguments. */
  readonly args: number
  readonly context: number
  /**
   * The state of a task that goes on (cpu/taskimage.ts), a payload like `args`; undefined: the task begins.
   */
  readonly image?: number
  /** Milliseconds between two checkpoints; undefined: only on request. */
  readonly checkpoint?: number | undefined
  /** Bits of `control` (job.ts). */
  readonly control: number
  readonly owner: number
  readonly spawner: number
  readonly task: TaskOptions
}

/**
 * Creates a job and its task, and starts it: directly in the run queue of a CPU, from any thread.
 * `beforeStart` gets the job before any CPU can. With `starts` false the caller starts the task, and is the
 * booting thread. Throws ArenaFullError when there is no room; the caller then still owns the payloads.
 */
export function spawnJob(
  view: KernelView,
  spec: JobSpec,
  beforeStart?: (job: number) => void,
  starts = true,
): number {
  const { codec, i32, jobs, s, thread } = view
  const job = jobs.allocate(thread)
  let task: number
  try {
    task = createTask(s, spec.task, true)
  } catch (error) {
    jobs.free(i32, job)
    throw error
  }
  i32[job + Job.next] = 0
  i32[job + Job.fn] = spec.fn
  i32[job + Job.args] = 0
  i32[job + Job.result] = 0
  i32[job + Job.reason] = 0
  i32[job + Job.context] = 0
  i32[job + Job.killKind] = NOT_KILLED
  i32[job + Job.owner] = spec.owner
  i32[job + Job.spawner] = spec.spawner
  i32[job + Job.cpu] = 0
  i32[job + Job.starts] = 0
  i32[job + Job.crashes] = 0
  if ((i32[job + Job.control] & JOB_HAS_IMAGES) !== 0) clearImages(view, job)
  i32[job + Job.control] = spec.control
  i32[job + Job.spawnCount] = 0
  i32[job + Job.endCount] = 0
  writeAffinity(i32, job, spec.task.affinity)
  i32[job + Job.outcome] = OUTCOME_PENDING
  i32[job + Job.number] = (Atomics.add(i32, view.plan.counters.start + Counters.jobs, 1) + 1) | 0
  codec.put(job + Job.args, spec.args)
  if (spec.checkpoint !== undefined) {
    view.f64[(view.openImages(job) + JobImages.checkpointEvery) >> 1] = spec.checkpoint
  }
  if (spec.image !== undefined) putImage(view, job, task, spec.image)
  if (spec.context !== 0) codec.put(job + Job.context, spec.context)
  view.bindJob(task, job)
  publishTask(s, task)
  if ((spec.control & JOB_LOCAL) !== 0) bindUnstarted(view, task)
  countSpawned(view, job)
  if (Atomics.load(i32, s.ext.record + ExtRecord.takes) === TAKES_LISTED)
    view.allowlist.offer(task, spec.name, spec.fn)
  beforeStart?.(job)
  if (!starts) {
    jobs.publish(i32, job)
    return job
  }
  if (thread.id === BOOTING_THREAD) startByArrival(s, task)
  else startTask(s, task)
  // Until here the job dies with this thread: no task would ever run it.
  jobs.publish(i32, job)
  return job
}

/** What the slot's last job has left. Before `control` changes: a thread that dies here leaves the bit. */
function clearImages(view: KernelView, job: number): void {
  const images = view.imagesOf(job)
  view.i32.fill(0, images, images + JobImages.words)
}

/** The task of the job goes on with this state, as a packed task does. It has not been published yet. */
function putImage(view: KernelView, job: number, task: number, image: number): void {
  const { codec, heap, i32 } = view
  const images = view.openImages(job)
  i32[images + JobImages.imageBytes] = heap.capacityOf(image)
  i32[job + Job.starts] = 1
  codec.put(images + JobImages.image, image)
  Atomics.store(i32, task + TaskRecord.packed, 1)
}

/**
 * Creates a new task for a job whose last one was lost with its CPU. `packed`: it goes on with the state in
 * `JobImages.image`.
 */
export function respawnJob(view: KernelView, job: number, options: TaskOptions, packed = false): void {
  const task = createTask(view.s, options)
  Atomics.store(view.i32, job + Job.cpu, 0)
  if (packed) Atomics.store(view.i32, task + TaskRecord.packed, 1)
  view.bindJob(task, job)
  startTask(view.s, task)
}

function writeAffinity(i32: Int32Array, job: number, affinity: readonly number[] | undefined): void {
  let low = -1
  let high = -1
  if (affinity !== undefined) [low, high] = maskOf(affinity)
  i32[job + Job.affinity] = low
  i32[job + Job.affinity + 1] = high
}

/** Its function is in this CPU's heap: it can run only here. */
function bindUnstarted(view: KernelView, task: number): void {
  const { i32, s } = view
  i32[i32[task + TaskRecord.entity] + Entity.policy] |= POLICY_BOUND
  Atomics.add(i32, s.queue + RunQueue.bound, 1)
}
