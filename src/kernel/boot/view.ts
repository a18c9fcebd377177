import type { Arena } from '../../arena/memory/arena.ts'
import { assert } from '../../arena/assert.ts'
import { PayloadHeap } from '../../arena/memory/heap.ts'
import { Marks } from '../../arena/memory/marks.ts'
import type { Slab } from '../../arena/memory/slab.ts'
import type { KernelThread } from '../../arena/sync/thread.ts'
import { Futexes } from '../../futex/core/futexes.ts'
import type { FutexWord, MappedBuffer, MappingHandles } from '../../futex/core/space.ts'
import { Handoff } from '../../handoff/handoff.ts'
import { isActive } from '../../machine/core/cpurecord.ts'
import { Entity } from '../../sched/core/entity.ts'
import type { Scheduler } from '../../sched/core/scheduler.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { Obstacles } from '../cpu/obstacles.ts'
import { Completions } from '../join/completions.ts'
import type { Deadlock } from '../recovery/deadlock.ts'
import { AllowlistReader } from './allowlist.ts'
import { Job, JOB_HAS_IMAGES, imagePayloads, JobImages, rankOf } from '../spawn/job.ts'
import type { KernelPlan } from './layout.ts'
import type { BooterMail } from '../cpu/mail.ts'
import { PayloadCodec } from '../../payload/codec.ts'

/** How a thread other than the first finds the kernel's futexes. */
export interface FutexDomain {
  readonly space: number
  readonly arenaMapping: MappingHandles
}

/** The services of the booting thread for task handles and kernel locks. */
export interface Booter {
  /** Messages between that thread and the tasks. */
  readonly mail: BooterMail
  /** Gives a killed job at most `ms` milliseconds to end. */
  limitGrace(job: number, ms: number): void
  reportDeadlock(deadlock: Deadlock): void
  /** The name of an imported function, by its number. */
  functionName(fn: number): string | undefined
}

/**
 * The kernel on one thread: the booting thread and every CPU have a view. The shared data is in the arena;
 * the view knows its layout, and holds this thread's own data.
 */
export class KernelView {
  readonly arena: Arena
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly f64: Float64Array<SharedArrayBuffer>
  readonly thread: KernelThread
  readonly s: Scheduler
  readonly plan: KernelPlan
  readonly jobs: Slab
  readonly heap: PayloadHeap
  readonly codec: PayloadCodec
  readonly futexes: Futexes
  readonly completions: Completions
  /** The slots of killed jobs whose grace periods the booting thread has not begun. */
  readonly killed: Marks
  readonly handoff: Handoff
  readonly allowlist: AllowlistReader
  readonly obstacles: Obstacles
  /** Null on every thread but the booting one. */
  booter: Booter | null = null
  /** The arena itself, as a mapped buffer whose words can be waited on. */
  readonly mapped: MappedBuffer
  private readonly jobTable: number
  private readonly jobImages: number

  /** Without a domain, this thread creates it. */
  constructor(plan: KernelPlan, s: Scheduler, domain?: FutexDomain) {
    const { thread } = s
    this.arena = thread.arena
    this.i32 = thread.i32
    this.f64 = thread.arena.f64
    this.thread = thread
    this.s = s
    this.plan = plan
    this.jobs = plan.jobs
    this.jobTable = plan.jobTable.start
    this.jobImages = plan.jobImages.start
    this.heap = new PayloadHeap(this.arena, plan.heap, 'heap')
    this.completions = new Completions(this.i32, plan.completions)
    this.killed = new Marks(this.i32, plan.killed)
    this.futexes = new Futexes(thread, plan.futexes, {
      now: s.now,
      scheduler: s,
      ...(domain && { space: domain.space }),
    })
    this.mapped =
      domain === undefined
        ? this.futexes.map(this.arena.buffer)
        : this.futexes.space.adopt(this.arena.buffer, domain.arenaMapping)
    this.codec = new PayloadCodec(this.heap, thread, plan.published)
    this.handoff = new Handoff(this.arena, plan.handoff, {
      ...plan.sizes.handoff,
      scheduler: s,
      context: this.futexes.context,
    })
    this.allowlist = new AllowlistReader(this)
    this.obstacles = new Obstacles(this.i32, plan.obstacles)
  }

  isCpuActive(cpu: number): boolean {
    return isActive(this.i32, this.plan.machine, cpu)
  }

  get domain(): FutexDomain {
    return { space: this.futexes.space.handle, arenaMapping: this.mapped.handles }
  }

  /** The job of a task that has not ended. */
  jobOf(task: number): number {
    return this.i32[this.jobTable + this.i32[task + TaskRecord.slot]]
  }

  bindJob(task: number, job: number): void {
    this.i32[this.jobTable + this.i32[task + TaskRecord.slot]] = job
    this.i32[job + Job.task] = task
  }

  /**
   * Separates a task that is about to end from its job: the job keeps the task's figures, and from now on
   * neither refers to the other.
   */
  separateJob(task: number, job: number): void {
    const { i32, f64 } = this
    const se = i32[task + TaskRecord.entity]
    i32[job + Job.rank] = rankOf(i32[se + Entity.basePriority], i32[se + Entity.nice])
    i32[job + Job.switches] = i32[se + Entity.turns]
    i32[job + Job.preemptions] = i32[se + Entity.preempted]
    f64[(job + Job.waitTime) >> 1] = f64[(se + Entity.waitTime) >> 1]
    Atomics.store(i32, this.jobTable + i32[task + TaskRecord.slot], 0)
    Atomics.store(i32, job + Job.task, 0)
  }

  /** The words of its JobImages, to read. */
  imagesOf(job: number): number {
    return this.jobImages + this.jobs.indexOf(job) * JobImages.words
  }

  /** The same, to write. */
  openImages(job: number): number {
    if (!this.hasImages(job)) Atomics.or(this.i32, job + Job.control, JOB_HAS_IMAGES)
    return this.imagesOf(job)
  }

  /** False: its words of JobImages are all 0. */
  hasImages(job: number): boolean {
    return (Atomics.load(this.i32, job + Job.control) & JOB_HAS_IMAGES) !== 0
  }

  /** The word of a job at which joiners wait for its outcome. */
  joinWord(job: number): FutexWord {
    return this.mapped.word(this.futexes.context, job + Job.outcome)
  }

  /** The word at which the booting thread waits for an answer of the task's CPU (cpu/asking.ts). */
  answerWord(job: number): FutexWord {
    return this.mapped.word(this.futexes.context, this.imagesOf(job) + JobImages.answers)
  }

  /**
   * Calls `act` with the job's task, if it has not ended. During the call the task's record is not reused,
   * although the task may end. False: it has ended.
   */
  withTask(job: number, act: (task: number) => void): boolean {
    const { context } = this.futexes
    context.enter()
    try {
      const task = Atomics.load(this.i32, job + Job.task)
      if (task === 0) return false
      act(task)
      return true
    } finally {
      context.leave()
    }
  }

  /** Frees an ended job with all its payloads. Its handle is stale from now on. */
  freeJob(job: number): void {
    const { i32, codec } = this
    assert(Atomics.load(i32, job + Job.outcome) !== 0, 'only an ended job is freed')
    if (i32[job + Job.args] !== 0) codec.drop(job + Job.args)
    if (i32[job + Job.result] !== 0) codec.drop(job + Job.result)
    if (i32[job + Job.reason] !== 0) codec.drop(job + Job.reason)
    if (i32[job + Job.context] !== 0) codec.drop(job + Job.context)
    if (this.hasImages(job)) {
      const images = this.imagesOf(job)
      for (const at of imagePayloads) if (i32[images + at] !== 0) codec.drop(images + at)
    }
    i32[job + Job.number] = 0
    this.jobs.free(i32, job)
  }
}
