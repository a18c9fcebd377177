import type { Arena, ArenaPlan, Region } from '../../arena/memory/arena.ts'
import { assert } from '../../arena/assert.ts'
import { Deadlines } from '../../arena/trees/deadlines.ts'
import {
  type EventRingsPlan,
  EventWriter,
  recordingWord,
  reserveEventRings,
  ringOfThread,
} from '../../arena/rings/eventring.ts'
import { type HistogramPlan, reserveHistograms } from '../../arena/rings/histogram.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { initList } from '../../arena/trees/list.ts'
import { LINE_WORDS } from '../../arena/memory/record.ts'
import { Rcu } from '../../arena/sync/rcu.ts'
import { Slab } from '../../arena/memory/slab.ts'
import { initLock, Lock } from '../../arena/sync/spinlock.ts'
import { KernelThread, THREAD_MAX } from '../../arena/sync/thread.ts'
import { CpuRecord, cpuCount, cpuRecord } from '../../machine/core/cpurecord.ts'
import { kickCpu } from '../../machine/core/halt.ts'
import type { Cpu } from '../../machine/core/machine.ts'
import { Arrivals, type ArrivalsPlan, reserveArrivals } from './arrivals.ts'
import type { SchedClass } from '../classes/class.ts'
import { Entities } from './entities.ts'
import { Entity, ENTITY_WORDS } from './entity.ts'
import { Ext, extClass } from '../ext/ext.ts'
import { type ExtPlan, type ExtSizes, reserveExt } from '../ext/extlayout.ts'
import { fairClass } from '../classes/fair.ts'
import { FairTree } from '../classes/fairtree.ts'
import { fifoClass } from '../classes/fifo.ts'
import { idleClass } from '../classes/idle.ts'
import {
  EXT_MAJOR_PRIORITY,
  FAIR_MAJOR_PRIORITY,
  IDLE_MAJOR_PRIORITY,
  IDLE_PRIORITY,
  MAJOR_LEVELS,
  PRIORITY_NONE,
} from './priority.ts'
import { setReady } from '../classes/readymask.ts'
import {
  ClassRq,
  classRq,
  pushList,
  ROTATES_FAIR,
  ROTATES_FIFO,
  RUN_QUEUE_WORDS,
  RunQueue,
} from './runqueue.ts'
import { NAME_WORDS } from './taskname.ts'
import { ENTITY_AT, RUNNING, TaskRecord } from './taskrecord.ts'
import { WaitTree } from './waittree.ts'

export interface SchedulerSizes {
  readonly cpus: number
  /** How many tasks can live at a time. */
  readonly tasks: number
  /** Events in the ring of each thread, a power of two; 0, the default: there are no rings. */
  readonly events?: number
  /** Sizes of what loaded policies may use (ext.ts). */
  readonly ext?: ExtSizes
}

/** The scheduler's part of the arena. The same on every thread that plans with the same sizes. */
export interface SchedulerPlan {
  readonly cpus: number
  readonly runQueues: Region
  readonly global: Region
  readonly arrivals: ArrivalsPlan
  readonly rcu: Region
  /** A task record and its entity in each slot. */
  readonly tasks: Slab
  readonly names: Region
  readonly histograms: HistogramPlan
  readonly events: EventRingsPlan | null
  readonly ext: ExtPlan
}

/**
 * Words that belong to no CPU: the wait tree; the set of CPUs with tasks that another CPU could take; the set
 * of active CPUs.
 */
const SLEEP_LOCK = 0
const WAIT_TREE = 2
const PUSH_CPUS = LINE_WORDS
const ACTIVE_CPUS = 2 * LINE_WORDS
const GLOBAL_WORDS = 3 * LINE_WORDS

/** Reserves what the scheduler needs. Every thread calls it at the same point of its own plan. */
export function planScheduler(plan: ArenaPlan, sizes: SchedulerSizes): SchedulerPlan {
  const { cpus, tasks } = sizes
  return {
    cpus,
    runQueues: plan.reserve('run queues', cpus * RUN_QUEUE_WORDS),
    global: plan.reserve('scheduler', GLOBAL_WORDS),
    arrivals: reserveArrivals(plan, cpus),
    rcu: Rcu.reserve(plan, THREAD_MAX),
    // Each CPU's idle task is a task like any other.
    tasks: new Slab(plan, {
      name: 'tasks',
      capacity: tasks + cpus,
      words: ENTITY_AT + ENTITY_WORDS,
      option: 'tasks',
      lineAligned: true,
    }),
    names: plan.reserve('task names', (tasks + cpus) * NAME_WORDS),
    histograms: reserveHistograms(plan, cpus),
    events: sizes.events ? reserveEventRings(plan, cpus, sizes.events) : null,
    ext: reserveExt(plan, cpus, tasks + cpus, sizes.ext),
  }
}

export interface SchedulerOptions {
  readonly plan: SchedulerPlan
  readonly machine: Region
  readonly thread: KernelThread
  /** Milliseconds, the same clock on every thread. */
  readonly now: () => number
  /** Makes a halted CPU check for work. */
  readonly kick?: (cpu: number) => void
  /** A CPU's slice for the fair class and round robin, in milliseconds. */
  readonly slice?: number
}

/**
 * Calls to the layer of locks about a task that has owned a lock or waited for one. On the thread of this
 * scheduler, with no lock held.
 */
export interface LockHooks {
  /** The task ends: its locks must pass to other owners. */
  exiting(task: number): void
  /** Its priority has changed; it may be in a wait queue that is ordered by priority. */
  priorityChanged(task: number): void
}

/**
 * The scheduler as one thread sees it: its views, its CPU, its clock. All shared state is in the arena.
 */
export class Scheduler {
  readonly arena: Arena
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly f64: Float64Array<SharedArrayBuffer>
  readonly thread: KernelThread
  readonly machine: Region
  readonly cpus: number
  /** The CPU that this thread is, or -1. */
  readonly cpu: number
  /** This CPU's run queue, or 0. */
  readonly queue: number
  /** The class of each major priority. */
  readonly classes: SchedClass[]
  readonly tasks: Slab
  readonly entities: Entities
  /** The words of the names (taskname.ts). */
  readonly names: number
  readonly rcu: Rcu
  /** New tasks on their way to a CPU. */
  readonly arrivals: Arrivals
  readonly fairTree: FairTree
  readonly waitTree: WaitTree
  readonly ext: Ext
  readonly sleepLock: number
  readonly timers: readonly Deadlines[]
  readonly histograms: HistogramPlan
  /** This thread's event ring, or null. */
  readonly events: EventWriter | null
  /**
   * Pointer of the word that is not 0 while events are recorded; the null word, always 0, where there are no
   * rings.
   */
  readonly recording: number
  readonly slice: number
  readonly now: () => number
  private readonly kickNow: (cpu: number) => void
  /**
   * Kicks are held back until this thread has released its locks: otherwise the woken CPU would find them
   * taken and sleep again.
   */
  private kicksWait = false
  private waitingKicksLow = 0
  private waitingKicksHigh = 0
  lockHooks: LockHooks | undefined = undefined
  /** The machine's time when this thread last read the clock. */
  clock = 0
  /** When the earliest timer of this CPU is due. */
  nextTimer: number = Infinity
  /**
   * When this CPU should run a turn of its event loop, for tasks that wait for an event of it; Infinity: no
   * task does.
   */
  turnAt: number = Infinity
  /**
   * The rest of a rescue on this CPU, which must run with no lock held, at its next turn (cpuloop.ts); null:
   * nothing to do.
   */
  finishRescue: (() => void) | null = null
  /** Packs tasks in this CPU's heap that were asked to move, between two tasks; set by the kernel's CPU. */
  packAsked: (() => void) | null = null
  /** When this CPU tries again to pack a task that should move and could not; Infinity: there is none. */
  moveAt: number = Infinity
  /** The CPU that a task which moves now should go to; -1: any. */
  moveTarget = -1
  /** Turns on this CPU take less time than a reading of the clock (cpuloop.ts): `clock` is recent enough. */
  turnsAreShort = false
  /** How the length of the turn that ends is known: a TURN_ constant (turnclock.ts). */
  turn = 0
  /** The clock was read when this turn began, and must be read when it ends: the task has long turns. */
  measuresTurn = false
  /** An interrupt happened: the next switch asks the class whether the slice has ended. */
  ticks = false
  /** The number of the RCU callback that frees a reaped task's slot. */
  readonly freeTask: number
  private readonly runQueues: number
  private readonly pushCpus: number
  private readonly activeCpus: number

  constructor(options: SchedulerOptions) {
    const { plan, machine, thread } = options
    assert(cpuCount(machine) === plan.cpus, 'the scheduler has a run queue for each CPU of the machine')
    this.arena = thread.arena
    this.i32 = thread.i32
    this.f64 = thread.arena.f64
    this.thread = thread
    this.machine = machine
    this.cpus = plan.cpus
    this.runQueues = plan.runQueues.start
    this.cpu = thread.id < plan.cpus ? thread.id : -1
    this.queue = this.cpu < 0 ? 0 : this.queueOf(this.cpu)
    this.tasks = plan.tasks
    this.entities = new Entities(plan.tasks)
    this.names = plan.names.start
    this.rcu = new Rcu(plan.rcu, THREAD_MAX)
    this.arrivals = new Arrivals(this.i32, plan.arrivals)
    this.sleepLock = plan.global.start + SLEEP_LOCK
    this.waitTree = new WaitTree(this.i32, plan.global.start + WAIT_TREE)
    this.pushCpus = plan.global.start + PUSH_CPUS
    this.activeCpus = plan.global.start + ACTIVE_CPUS
    this.fairTree = new FairTree(this.i32, this.f64)
    this.timers = Array.from(
      { length: plan.cpus },
      (_, cpu) => new Deadlines(thread.arena, this.queueOf(cpu) + RunQueue.timers),
    )
    this.histograms = plan.histograms
    const ring = plan.events === null ? -1 : ringOfThread(plan.events, thread.id)
    this.events = plan.events === null || ring < 0 ? null : new EventWriter(thread.arena, plan.events, ring)
    this.recording = plan.events === null ? 0 : recordingWord(plan.events)
    this.slice = options.slice ?? 10
    this.now = options.now
    this.kickNow = options.kick ?? (cpu => void kickCpu(this.i32, cpuRecord(machine, cpu)))
    this.classes = Array.from({ length: MAJOR_LEVELS }, () => fifoClass)
    this.classes[FAIR_MAJOR_PRIORITY] = fairClass
    this.classes[EXT_MAJOR_PRIORITY] = extClass
    this.classes[IDLE_MAJOR_PRIORITY] = idleClass
    this.ext = new Ext(this.i32, this.f64, plan.ext, this.slice)
    this.freeTask = this.rcu.register((_, node) => {
      this.tasks.free(this.i32, node - TaskRecord.rcu)
    })
    this.clock = this.now()
  }

  static forCpu(plan: SchedulerPlan, cpu: Cpu, slice?: number): Scheduler {
    return new Scheduler({
      plan,
      machine: cpu.region,
      thread: cpu.thread,
      now: () => cpu.now(),
      kick: id => cpu.kick(id),
      slice,
    })
  }

  /** Once, by the thread that made the arena, before any CPU starts. */
  initialize(): void {
    const { i32 } = this
    this.tasks.initialize(i32)
    this.rcu.initialize(i32)
    initLock(i32, this.sleepLock, lockRank('sleep'))
    this.ext.initialize()
    for (let cpu = 0; cpu < this.cpus; cpu++) this.initializeQueue(cpu)
  }

  /** The pointer of a CPU's run queue. */
  queueOf(cpu: number): number {
    assert(cpu >= 0 && cpu < this.cpus, 'there is no run queue for this CPU')
    return this.runQueues + cpu * RUN_QUEUE_WORDS
  }

  /** Half of the set of CPUs that have tasks which another CPU could take. */
  pushCpusHalf(half: number): number {
    if (half === 1 && this.cpus <= 32) return 0
    return Atomics.load(this.i32, this.pushCpus + half)
  }

  /**
   * Whether another CPU has tasks that this one could take. A plain read, because each switch asks; a hint.
   */
  othersOffer(): boolean {
    const { i32, pushCpus, cpu } = this
    if (cpu < 32) return (i32[pushCpus] & ~(1 << cpu)) !== 0 || i32[pushCpus + 1] !== 0
    return i32[pushCpus] !== 0 || (i32[pushCpus + 1] & ~(1 << (cpu - 32))) !== 0
  }

  setPushCpu(cpu: number, set: boolean): void {
    const at = this.pushCpus + (cpu >> 5)
    if (set) Atomics.or(this.i32, at, 1 << (cpu & 31))
    else Atomics.and(this.i32, at, ~(1 << (cpu & 31)))
  }

  /** Half of the active mask: the CPUs that tasks may be placed on. */
  activeHalf(half: number): number {
    if (half === 1 && this.cpus <= 32) return 0
    return Atomics.load(this.i32, this.activeCpus + half)
  }

  /** Whether tasks may be placed on the CPU. */
  isActive(cpu: number): boolean {
    return ((this.activeHalf(cpu >> 5) >>> (cpu & 31)) & 1) !== 0
  }

  /** With the CPU's run queue locked: its `online` word and this bit change together. */
  setActive(cpu: number, active: boolean): void {
    const at = this.activeCpus + (cpu >> 5)
    if (active) Atomics.or(this.i32, at, 1 << (cpu & 31))
    else Atomics.and(this.i32, at, ~(1 << (cpu & 31)))
  }

  /** Reads the clock. */
  readClock(): number {
    return (this.clock = this.now())
  }

  /** Makes a halted CPU check for work: now, or when `sendKicks` is called. */
  kick(cpu: number): void {
    if (!this.kicksWait) this.kickNow(cpu)
    else if (cpu < 32) this.waitingKicksLow |= 1 << cpu
    else this.waitingKicksHigh |= 1 << (cpu - 32)
  }

  /**
   * Holds kicks back until `sendKicks`: called before locks are taken to queue a task. Does not nest.
   */
  holdKicks(): void {
    this.kicksWait = true
  }

  sendKicks(): void {
    this.kicksWait = false
    while (this.waitingKicksLow !== 0) {
      const cpu = 31 - Math.clz32(this.waitingKicksLow & -this.waitingKicksLow)
      this.waitingKicksLow &= this.waitingKicksLow - 1
      this.kickNow(cpu)
    }
    while (this.waitingKicksHigh !== 0) {
      const cpu = 31 - Math.clz32(this.waitingKicksHigh & -this.waitingKicksHigh)
      this.waitingKicksHigh &= this.waitingKicksHigh - 1
      this.kickNow(cpu + 32)
    }
  }

  /** Asks a CPU to reschedule at its next safepoint; wakes it up if it is halted. */
  resched(cpu: number): void {
    Atomics.store(this.i32, cpuRecord(this.machine, cpu) + CpuRecord.needResched, 1)
    if (cpu !== this.cpu) this.kick(cpu)
  }

  private initializeQueue(cpu: number): void {
    const { i32 } = this
    const queue = this.queueOf(cpu)
    initLock(i32, queue + RunQueue.lock, lockRank('run queue'))
    initLock(i32, queue + RunQueue.timerLock, lockRank('timer'))
    i32[queue + RunQueue.cpu] = cpu
    i32[queue + RunQueue.runningPriority] = PRIORITY_NONE
    i32[queue + RunQueue.pushBest] = PRIORITY_NONE
    for (let level = 0; level < MAJOR_LEVELS; level++) {
      const rq = classRq(queue, level)
      i32[rq + ClassRq.classId] = level
      i32[rq + ClassRq.cpu] = cpu
      i32[rq + ClassRq.queue] = queue
      if (this.classes[level] === fifoClass) i32[rq + ClassRq.rotates] = ROTATES_FIFO
      if (this.classes[level] === fairClass) {
        i32[rq + ClassRq.rotates] = ROTATES_FAIR
        initList(i32, rq + ClassRq.list)
      }
      initList(i32, pushList(queue, level))
    }
    const task = this.tasks.allocate(this.thread)
    const entity = task + ENTITY_AT
    i32[task + TaskRecord.slot] = this.tasks.indexOf(task)
    i32[task + TaskRecord.entity] = entity
    i32[task + TaskRecord.state] = RUNNING
    i32[entity + Entity.task] = task
    i32[entity + Entity.cpu] = cpu
    i32[entity + Entity.priority] = IDLE_PRIORITY
    i32[entity + Entity.basePriority] = IDLE_PRIORITY
    i32[entity + Entity.inherited] = PRIORITY_NONE
    i32[entity + Entity.affinityMask + (cpu >> 5)] = 1 << (cpu & 31)
    i32[entity + Entity.rq] = classRq(queue, IDLE_MAJOR_PRIORITY)
    initLock(i32, entity + Entity.piLock, lockRank('pi'))
    this.tasks.publish(i32, task)
    i32[queue + RunQueue.idle] = entity
    i32[queue + RunQueue.current] = entity
    // The idle level is always ready, so the ready mask is never empty.
    setReady(i32, queue + RunQueue.readyMask, IDLE_MAJOR_PRIORITY)
    assert(i32[queue + RunQueue.lock + Lock.word] === 0, 'a new run queue is unlocked')
  }
}
