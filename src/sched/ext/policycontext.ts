import { acquire, release } from '../../arena/sync/spinlock.ts'
import { cpusOf, maskHas } from '../core/cpumask.ts'
import { consumeFirst, giveLocal, mayRunOn } from './dispatch.ts'
import { eject, named } from './eject.ts'
import { Entity, POLICY_PUSHABLE } from '../core/entity.ts'
import { joinQueue, setSlice, stateOf } from './ext.ts'
import {
  CURRENT,
  DIRECT,
  DispatchQueue,
  HELD,
  OUT,
  PENDING,
  QUEUE_FIFO,
  QUEUE_UNUSED,
  QUEUE_VTIME,
  TASK_WORDS,
} from './extlayout.ts'
import { taskName } from '../core/taskname.ts'
import { EXT_MAJOR_PRIORITY, IDLE_MAJOR_PRIORITY } from '../core/priority.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { TaskRecord } from '../core/taskrecord.ts'
import { lockTaskQueue } from '../core/taskqueue.ts'

/** The local queue of the CPU that the task belongs to. Lower numbers are the local queues of each CPU. */
const LOCAL_QUEUE = -1

/**
 * The context of a policy's calls, one for each CPU. Queues are numbers: `local`, `localOf(cpu)`, `global`,
 * and those of the policy. A call that is not allowed ejects the policy; then it and all later calls return
 * false.
 */
export class PolicyContext {
  readonly cpu: number
  readonly cpus: number
  /** Words that the policies on all CPUs share. Zeroed when the policy is loaded. */
  readonly words: Int32Array<SharedArrayBuffer>
  /** The same memory as numbers: float `n` is words `2n` and `2n + 1`. */
  readonly floats: Float64Array<SharedArrayBuffer>
  /** Four words for each task, from `taskAt(task)` on. Zeroed when the policy first sees the task. */
  readonly taskWords: Int32Array<SharedArrayBuffer>
  /** The local queue of the task's CPU: its tasks run on that CPU, in order. */
  readonly local: number = LOCAL_QUEUE
  readonly global: number
  /** The scheduler of this CPU, for policies that are part of the kernel. */
  readonly scheduler: Scheduler
  /** The task of the current call of selectCpu, or 0. */
  selecting = 0
  /** The run time of the task that runs here, when its turn began. */
  turnStart = 0

  constructor(s: Scheduler) {
    const { plan } = s.ext
    this.scheduler = s
    this.cpu = s.cpu
    this.cpus = s.cpus
    const { buffer } = s.arena
    this.words = new Int32Array(buffer, plan.words.start * 4, plan.words.words)
    this.floats = new Float64Array(buffer, plan.words.start * 4, plan.words.words >> 1)
    this.taskWords = new Int32Array(buffer, plan.taskWords.start * 4, plan.taskWords.words)
    this.global = s.ext.queueAt(0)
  }

  /** Milliseconds, the same clock on every CPU, as this CPU last read it. */
  get now(): number {
    return this.scheduler.clock
  }

  localOf(cpu: number): number {
    return LOCAL_QUEUE - 1 - cpu
  }

  /** A queue of the policy, by its number from 0: the first CPU that calls creates it, the others find it. */
  queue(number: number, order: 'fifo' | 'vtime' = 'fifo'): number {
    const { i32, ext, thread } = this.scheduler
    const most = ext.plan.queueCount - 1
    if (!Number.isInteger(number) || number < 0 || number >= most) {
      throw new RangeError(`queue(${String(number)}): a policy has queues 0 to ${most - 1}`)
    }
    const queue = ext.queueAt(number + 1)
    const wanted = order === 'vtime' ? QUEUE_VTIME : QUEUE_FIFO
    if (Atomics.load(i32, queue + DispatchQueue.order) === wanted) return queue
    acquire(thread, queue + DispatchQueue.lock)
    const was = i32[queue + DispatchQueue.order]
    if (was === QUEUE_UNUSED) ext.queues.setOrder(queue, wanted)
    release(thread, queue + DispatchQueue.lock)
    if (was !== QUEUE_UNUSED && was !== wanted) {
      throw new TypeError(`queue(${number}, '${order}'): it has the other order already`)
    }
    return queue
  }

  /**
   * Puts a task that was passed to the policy on a queue. `slice`: milliseconds, Infinity included; 0: the
   * default. False: the task has left, or the policy has been ejected.
   */
  dispatch(task: number, queue: number, slice = 0, front = false): boolean {
    return this.put(task, queue, slice, front)
  }

  /** The same for a queue by virtual time: the least runs first. */
  dispatchVtime(task: number, queue: number, vtime: number, slice = 0): boolean {
    const { i32, f64 } = this.scheduler
    if (!this.isTask(task)) return false
    f64[(i32[task + TaskRecord.entity] + Entity.vruntime) >> 1] = vtime
    return this.put(task, queue, slice, false)
  }

  /** Moves the first task of the queue that may run here to this CPU's local queue. False: no task may. */
  consume(queue: number): boolean {
    return this.scheduler.ext.isActive() && this.isQueue(queue) && consumeFirst(this.scheduler, queue)
  }

  /** The task that `consume` would take, or 0. It may leave at any time. */
  first(queue: number): number {
    const s = this.scheduler
    if (!this.isQueue(queue)) return 0
    acquire(s.thread, queue + DispatchQueue.lock)
    const se = s.ext.queues.find(queue, found => mayRunOn(s, found, s.cpu))
    const task = se === 0 ? 0 : s.i32[se + Entity.task]
    release(s.thread, queue + DispatchQueue.lock)
    return task
  }

  /** How many tasks are on a queue, the local ones included, now. */
  queued(queue: number): number {
    const { i32 } = this.scheduler
    return queue < 0 || !this.isQueue(queue) ? 0 : Atomics.load(i32, queue + DispatchQueue.count)
  }

  /**
   * Makes a CPU check for work. `preempt`: the policy's task that runs there yields at its next safepoint.
   */
  kick(cpu: number, preempt = false): void {
    const s = this.scheduler
    const { i32, f64, thread } = s
    if (!this.isCpu(cpu)) {
      eject(s, 'misused', `policy: kick(${cpu}): there is no such CPU`)
      return
    }
    if (preempt) {
      const queue = s.queueOf(cpu)
      acquire(thread, queue + RunQueue.lock)
      const current = i32[queue + RunQueue.current]
      if (i32[current + Entity.priority] >> 2 === EXT_MAJOR_PRIORITY)
        f64[(current + Entity.deadline) >> 1] = 0
      release(thread, queue + RunQueue.lock)
    }
    s.resched(cpu)
  }

  /** An idle CPU that the task may run on, or -1. Prefers the CPU that it ran on last. */
  idleCpu(task: number): number {
    const { i32 } = this.scheduler
    const last = Atomics.load(i32, i32[task + TaskRecord.entity] + Entity.cpu)
    if (this.isIdle(last) && this.mayRun(task, last)) return last
    for (let cpu = 0; cpu < this.cpus; cpu++) if (this.isIdle(cpu) && this.mayRun(task, cpu)) return cpu
    return -1
  }

  isIdle(cpu: number): boolean {
    const { i32 } = this.scheduler
    const running = Atomics.load(i32, this.scheduler.queueOf(cpu) + RunQueue.runningPriority)
    return running >> 2 === IDLE_MAJOR_PRIORITY
  }

  /** Whether the task may run on this CPU: its mask, as it is now. */
  mayRun(task: number, cpu: number): boolean {
    const { i32 } = this.scheduler
    return mayRunOn(this.scheduler, i32[task + TaskRecord.entity], cpu)
  }

  /** Whether the program allows the task on this CPU, which is active: a started task could move there. */
  mayMoveTo(task: number, cpu: number): boolean {
    const { i32 } = this.scheduler
    const { allowed } = TaskRecord
    if (!(cpu >= 0 && cpu < this.cpus) || !this.scheduler.isActive(cpu)) return false
    return maskHas(i32[task + allowed], i32[task + allowed + 1], cpu)
  }

  /** Whether the task may run on one CPU only, as every started task. */
  isPinned(task: number): boolean {
    const { i32 } = this.scheduler
    const se = i32[task + TaskRecord.entity]
    return (i32[se + Entity.policy] & POLICY_PUSHABLE) === 0
  }

  /** The CPUs that the task may run on. */
  cpusOf(task: number): number[] {
    const { i32 } = this.scheduler
    const se = i32[task + TaskRecord.entity]
    return cpusOf(i32[se + Entity.affinityMask], i32[se + Entity.affinityMask + 1]).filter(
      cpu => cpu < this.cpus,
    )
  }

  /** The CPU that the task runs on, waits on, or ran on last. */
  cpuOf(task: number): number {
    const { i32 } = this.scheduler
    return Atomics.load(i32, i32[task + TaskRecord.entity] + Entity.cpu)
  }

  /** Milliseconds of this turn of the task that runs here; in `stopping`, of the task that stopped. */
  ran(task: number): number {
    const { i32, f64, clock } = this.scheduler
    const se = i32[task + TaskRecord.entity]
    const charged = f64[(se + Entity.runTime) >> 1] - this.turnStart
    return i32[this.scheduler.queue + RunQueue.current] === se
      ? charged + clock - f64[(se + Entity.execStart) >> 1]
      : charged
  }

  /** Milliseconds on a CPU in its whole life, up to when it last left one. */
  runTime(task: number): number {
    const { i32, f64 } = this.scheduler
    return f64[(i32[task + TaskRecord.entity] + Entity.runTime) >> 1]
  }

  /** Sets the rest of the running task's slice, or its next slice: milliseconds from now. */
  setSlice(task: number, ms: number): void {
    const s = this.scheduler
    const { i32, f64, thread } = s
    if (!this.isTask(task)) return
    const se = i32[task + TaskRecord.entity]
    const queue = lockTaskQueue(s, se)
    if (stateOf(s, se) === CURRENT) f64[(se + Entity.deadline) >> 1] = s.clock + ms
    else setSlice(s, se, ms)
    release(thread, queue + RunQueue.lock)
  }

  /** Milliseconds of its slice that the task that runs here has left. */
  sliceLeft(task: number): number {
    const { i32, f64, clock } = this.scheduler
    return f64[(i32[task + TaskRecord.entity] + Entity.deadline) >> 1] - clock
  }

  /** The virtual time that the task was last dispatched with, or that was set since. */
  vtime(task: number): number {
    const { i32, f64 } = this.scheduler
    return f64[(i32[task + TaskRecord.entity] + Entity.vruntime) >> 1]
  }

  setVtime(task: number, vtime: number): void {
    const { i32, f64 } = this.scheduler
    if (!this.isTask(task)) return
    f64[(i32[task + TaskRecord.entity] + Entity.vruntime) >> 1] = vtime
  }

  /** 1024 for an ordinary task; 1.25 times as much for each step of nice below 0. */
  weight(task: number): number {
    const { i32 } = this.scheduler
    return i32[i32[task + TaskRecord.entity] + Entity.weight]
  }

  nice(task: number): number {
    const { i32 } = this.scheduler
    return i32[i32[task + TaskRecord.entity] + Entity.nice]
  }

  name(task: number): string {
    return taskName(this.scheduler, task)
  }

  /** Where the task's words begin in `taskWords`. */
  taskAt(task: number): number {
    return this.scheduler.i32[task + TaskRecord.slot] * TASK_WORDS
  }

  private put(task: number, queue: number, slice: number, front: boolean): boolean {
    const s = this.scheduler
    const { i32, thread, ext } = s
    if (!ext.isActive() || !this.isTask(task)) return false
    if (!(slice >= 0)) {
      eject(s, 'misused', `policy: a slice of ${slice} ms for task ${named(s, task)}`, task)
      return false
    }
    const se = i32[task + TaskRecord.entity]
    if (this.selecting !== 0) return this.putDirect(task, se, queue, slice)
    if (queue < 0) return this.putLocal(task, se, queue, slice, front)
    if (!this.isQueue(queue)) return false
    const home = lockTaskQueue(s, se)
    const state = stateOf(s, se)
    if (state === HELD) {
      setSlice(s, se, slice)
      acquire(thread, queue + DispatchQueue.lock)
      joinQueue(s, queue, se, front)
      release(thread, queue + DispatchQueue.lock)
    }
    release(thread, home + RunQueue.lock)
    if (state !== HELD) return this.refuse(task, state)
    // A CPU that checks the queue after this insert finds the task; a CPU that checked before has published
    // that it is idle.
    const idle = this.idleCpu(task)
    if (idle >= 0) s.kick(idle)
    return true
  }

  private putLocal(task: number, se: number, queue: number, slice: number, front: boolean): boolean {
    const s = this.scheduler
    const cpu = queue === LOCAL_QUEUE ? -1 : LOCAL_QUEUE - 1 - queue
    if (cpu >= 0 && (!this.isCpu(cpu) || !this.mayRun(task, cpu))) {
      eject(s, 'forbidden CPU', `policy: task ${named(s, task)} may not run on CPU ${cpu}`, task, cpu)
      return false
    }
    const state = giveLocal(s, se, cpu, slice, front)
    return state === HELD || this.refuse(task, state)
  }

  /** Inside selectCpu: the task is on no queue, and its pi lock is held. */
  private putDirect(task: number, se: number, queue: number, slice: number): boolean {
    const s = this.scheduler
    if (task !== this.selecting || queue !== LOCAL_QUEUE) {
      eject(s, 'misused', 'policy: selectCpu can dispatch only its own task, to `local`', task)
      return false
    }
    setSlice(s, se, slice)
    s.i32[se + Entity.extState] |= DIRECT
    return true
  }

  /** The policy may not place the task: it has left, which is no mistake, or it is placed already. */
  private refuse(task: number, state: number): false {
    const s = this.scheduler
    if (state !== OUT && state !== PENDING) {
      eject(s, 'dispatched twice', `policy: task ${named(s, task)} was dispatched twice`, task)
    }
    return false
  }

  private isTask(task: number): boolean {
    const s = this.scheduler
    const index = (task - s.tasks.pointerAt(0)) / (s.tasks.pointerAt(1) - s.tasks.pointerAt(0))
    const known = Number.isInteger(index) && index >= 0 && index < s.tasks.capacity
    if (known) return s.tasks.isAllocated(s.i32, task)
    eject(s, 'misused', `policy: ${String(task)} is not a task`)
    return false
  }

  private isQueue(queue: number): boolean {
    const s = this.scheduler
    const number = (queue - this.global) / DispatchQueue.words
    const known =
      Number.isInteger(number) &&
      number >= 0 &&
      number < s.ext.plan.queueCount &&
      Atomics.load(s.i32, queue + DispatchQueue.order) !== QUEUE_UNUSED
    if (!known) eject(s, 'misused', `policy: ${String(queue)} is not a queue`)
    return known
  }

  private isCpu(cpu: number): boolean {
    return Number.isInteger(cpu) && cpu >= 0 && cpu < this.cpus
  }
}
