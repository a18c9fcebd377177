import type { HandoffKnobs } from './options.ts'
import { Arena, ArenaPlan, type Region } from '../../arena/memory/arena.ts'
import { PayloadHeap } from '../../arena/memory/heap.ts'
import { type MarksPlan, reserveMarks } from '../../arena/memory/marks.ts'
import { Slab } from '../../arena/memory/slab.ts'
import type { CodeSource } from '../spawn/functions.ts'
import type { Handle } from '../../arena/memory/slab.ts'
import { CPU_MAX } from '../../arena/sync/thread.ts'
import {
  type FutexLayout,
  type FutexSizes,
  initializeFutexes,
  reserveFutexes,
} from '../../futex/core/layout.ts'
import type { MappingHandles } from '../../futex/core/space.ts'
import { type HandoffLayout, reserveHandoff } from '../../handoff/layout.ts'
import { reserveMachine } from '../../machine/core/cpurecord.ts'
import { planScheduler, type SchedulerPlan } from '../../sched/core/scheduler.ts'
import { COMPLETIONS_WORDS } from '../join/completions.ts'
import { reserveObstacles } from '../cpu/obstacles.ts'
import { reserveCounters } from './counters.ts'
import { JOB_WORDS, JobImages } from '../spawn/job.ts'
import { MODULE_TABLE_WORDS } from '../spawn/moduletable.ts'
import { initializePublished, reservePublished } from '../../payload/codec.ts'

/** The sizes of a kernel's arena. They are sent to each CPU: all threads have the same. */
export interface KernelSizes {
  readonly cpus: number
  /** The maximum of living tasks. */
  readonly tasks: number
  /** Bytes for the payloads of arguments and results. */
  readonly heap: number
  readonly futexes: FutexSizes
  /** Events that each thread's ring keeps. */
  readonly events: number
  /** Check lock order and other invariants. */
  readonly debug: boolean
  readonly handoff: HandoffKnobs
}

/**
 * The layout of a kernel's arena. Each thread creates its own: slabs remember where they last found a free
 * slot.
 */
export interface KernelPlan {
  readonly sizes: KernelSizes
  readonly machine: Region
  readonly scheduler: SchedulerPlan
  readonly futexes: FutexLayout
  readonly jobs: Slab
  /** `JobImages` of each job's slot. */
  readonly jobImages: Region
  /** The job of each task slot. */
  readonly jobTable: Region
  /** The slots of jobs that were killed, for the booting thread (monitor.ts). */
  readonly killed: MarksPlan
  readonly completions: Region
  readonly moduleTable: Region
  readonly counters: Region
  readonly heap: Region
  readonly published: Region
  /** Why tasks cannot move yet (obstacles.ts). */
  readonly obstacles: Region
  readonly handoff: HandoffLayout
  readonly words: number
}

/** The id of the booting thread for kernel locks and slabs: the first one that is not a CPU's. */
export const BOOTING_THREAD: number = CPU_MAX

/** Slots of ended tasks in their grace period, for each CPU and the booting thread. */
const ENDED_TASKS = 512

export function planKernel(sizes: KernelSizes): { plan: ArenaPlan; kernel: KernelPlan } {
  const plan = new ArenaPlan()
  const { cpus, tasks } = sizes
  const machine = reserveMachine(plan, cpus)
  const slots = tasks + (cpus + 1) * ENDED_TASKS
  const scheduler = planScheduler(plan, { cpus, tasks: slots, events: sizes.events })
  const futexes = reserveFutexes(plan, sizes.futexes, scheduler.rcu)
  const jobs = new Slab(plan, { name: 'jobs', capacity: slots, words: JOB_WORDS, option: 'tasks' })
  const jobImages = plan.reserve('images of jobs', slots * JobImages.words)
  const jobTable = plan.reserve('job table', slots + cpus)
  const killed = reserveMarks(plan, 'killed jobs', slots)
  const completions = plan.reserve('completions', COMPLETIONS_WORDS)
  const moduleTable = plan.reserve('module table', MODULE_TABLE_WORDS)
  const counters = reserveCounters(plan, cpus)
  const heap = PayloadHeap.reserve(plan, sizes.heap, 'heap')
  const published = reservePublished(plan)
  const obstacles = reserveObstacles(plan)
  const handoff = reserveHandoff(plan)
  return {
    plan,
    kernel: {
      sizes,
      machine,
      scheduler,
      futexes,
      jobs,
      jobImages,
      jobTable,
      killed,
      completions,
      moduleTable,
      counters,
      heap,
      published,
      obstacles,
      handoff,
      words: plan.words,
    },
  }
}

/**
 * Creates and marks the arena. The first `Scheduler` initializes the scheduler's part; the rest is
 * initialized here.
 */
export function createArena(sizes: KernelSizes): { arena: Arena; kernel: KernelPlan } {
  const { plan, kernel } = planKernel(sizes)
  const arena = Arena.create(plan, { debug: sizes.debug })
  kernel.jobs.initialize(arena.i32)
  initializeFutexes(arena, kernel.futexes)
  new PayloadHeap(arena, kernel.heap, 'heap').initialize()
  initializePublished(arena, kernel.published)
  return { arena, kernel }
}

/** The data that a CPU starts with. */
export interface CpuBoot {
  readonly sizes: KernelSizes
  readonly slice: number
  readonly space: Handle
  readonly arenaMapping: MappingHandles
  readonly code: CodeSource
  /** Its event loop also turns while it has no task. */
  readonly turnsIdle: boolean
  /** In a browser: the `workerData` of the program for each CPU. On Node it is in worker_threads. */
  readonly workerData?: unknown
}
