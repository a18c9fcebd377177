import { acquire, release } from '../../arena/sync/spinlock.ts'
import { CpuRecord, cpuRecord } from '../../machine/core/cpurecord.ts'
import { KICKED } from '../../machine/core/halt.ts'
import { drainEjected, eject, named } from '../ext/eject.ts'
import { Entity } from './entity.ts'
import { stateOf } from '../ext/ext.ts'
import { HELD, PENDING } from '../ext/extlayout.ts'
import { taskName } from './taskname.ts'
import { isOnline } from '../balance/hotplug.ts'
import { EXT_MAJOR_PRIORITY } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { ENTITY_AT } from './taskrecord.ts'

/**
 * The watchdog checks periodically for two states that should not last:
 *
 *   starved   a task has been runnable for `limit` and no CPU has run it
 *   stuck     a CPU was asked to reschedule `limit` ago and has not: its task has no safepoints, or its event
 *             loop keeps the thread (`turning`): a long callback, or an endless chain of microtasks
 *
 * A policy (ext.ts) that starves one of its tasks, or has lost it, is ejected.
 *
 * A call looks at every CPU, and at up to LOOK_MOST tasks: where there are more, several calls see all of
 * them, so that no call takes long.
 *
 * It runs on no CPU, so that a stuck CPU cannot hide: the thread that makes it calls `look`. A busy CPU
 * counts its interrupts (`heartbeat`); each call asks the CPUs that have not counted since the last call to
 * reschedule.
 */
const LOOK_MOST = 8192

export type WatchdogReport =
  | {
      readonly kind: 'starved'
      readonly task: number
      readonly name: string
      readonly cpu: number
      readonly ms: number
    }
  | {
      readonly kind: 'stuck'
      readonly cpu: number
      /** The task that the CPU runs; 0: none, its event loop has the thread. */
      readonly task: number
      readonly name: string
      readonly ms: number
      /** The event loop has the thread: `task` is not the cause. */
      readonly turning: boolean
    }

export class Watchdog {
  private readonly s: Scheduler
  private readonly limit: number
  /** The slot of the task that it looks at next. */
  private slot = 0
  private readonly heartbeats: { count: number; since: number; asked: boolean }[] = []

  /** `limit`: in milliseconds. */
  constructor(s: Scheduler, limit: number) {
    this.s = s
    this.limit = limit
    for (let cpu = 0; cpu < s.cpus; cpu++) this.heartbeats.push({ count: -1, since: 0, asked: false })
  }

  /** Checks every CPU, and tasks. Reports a state at each call that sees it, for as long as it lasts. */
  look(): WatchdogReport[] {
    const reports: WatchdogReport[] = []
    const now = this.s.readClock()
    for (let cpu = 0; cpu < this.s.cpus; cpu++) this.lookAtCpu(cpu, now, reports)
    this.lookAtTasks(now, reports)
    return reports
  }

  private lookAtCpu(cpu: number, now: number, reports: WatchdogReport[]): void {
    const { i32 } = this.s
    const queue = this.s.queueOf(cpu)
    const seen = this.heartbeats[cpu]
    const count = Atomics.load(i32, queue + RunQueue.heartbeat)
    const running = isOnline(this.s, cpu) ? this.runningOn(queue) : 0
    const record = cpuRecord(this.s.machine, cpu)
    const turning = Atomics.load(i32, record + CpuRecord.turning) !== 0
    // An idle CPU must answer only after a kick: until then its event loop may keep the thread.
    const owes = running !== 0 || (turning && Atomics.load(i32, record + CpuRecord.park) === KICKED)
    if (count !== seen.count || !owes) {
      seen.count = count
      seen.since = now
      seen.asked = false
      return
    }
    if (!seen.asked) {
      // The time counts from here on: the CPU has something to answer.
      seen.asked = true
      seen.since = now
      Atomics.store(i32, record + CpuRecord.needResched, 1)
      return
    }
    const ms = now - seen.since
    if (ms < this.limit) return
    const name = running === 0 ? '' : taskName(this.s, running)
    reports.push({ kind: 'stuck', cpu, task: running, name, ms, turning })
  }

  /** The task that a CPU runs, or 0. */
  private runningOn(queue: number): number {
    const { i32, thread } = this.s
    acquire(thread, queue + RunQueue.lock)
    const current = i32[queue + RunQueue.current]
    const task = current === i32[queue + RunQueue.idle] ? 0 : i32[current + Entity.task]
    release(thread, queue + RunQueue.lock)
    return task
  }

  private lookAtTasks(now: number, reports: WatchdogReport[]): void {
    const { i32, tasks } = this.s
    let passed = 0
    for (let left = LOOK_MOST; left > 0 && passed < tasks.capacity; left--) {
      const slot = this.slot
      const step = tasks.isUsed(i32, slot) ? 1 : 32 - (slot & 31)
      if (step === 1) this.lookAtTask(tasks.pointerAt(slot), now, reports)
      passed += step
      this.slot = slot + step >= tasks.capacity ? 0 : slot + step
    }
  }

  private lookAtTask(task: number, now: number, reports: WatchdogReport[]): void {
    const { i32, f64, tasks, thread } = this.s
    const se = task + ENTITY_AT
    if (!tasks.isAllocated(i32, task) || Atomics.load(i32, se + Entity.onRq) === 0) return
    const cpu = Atomics.load(i32, se + Entity.cpu)
    const queue = this.s.queueOf(cpu)
    acquire(thread, queue + RunQueue.lock)
    // Read again under the lock that guards it: it may have moved, run or ended.
    const waits = Atomics.load(i32, se + Entity.onRq) === 1 && Atomics.load(i32, se + Entity.cpu) === cpu
    const ms = waits ? now - f64[(se + Entity.execStart) >> 1] : 0
    const blamed = ms >= this.limit ? blamesPolicy(this.s, queue, se) : 0
    release(thread, queue + RunQueue.lock)
    if (ms < this.limit) return
    if (blamed !== 0) ejectFor(this.s, blamed, task, cpu, ms)
    reports.push({ kind: 'starved', task, name: taskName(this.s, task), cpu, ms })
  }
}

/**
 * Whether a policy is the cause that a task waits: HELD, QUEUED or LOCAL says what it has done with the task;
 * 0: the policy does not know of the task, or the CPU runs a task that outranks the policy's. The run queue
 * is locked.
 */
function blamesPolicy(s: Scheduler, queue: number, se: number): number {
  const { i32 } = s
  if (i32[se + Entity.priority] >> 2 !== EXT_MAJOR_PRIORITY || !s.ext.isActive()) return 0
  if (i32[i32[queue + RunQueue.current] + Entity.priority] >> 2 < EXT_MAJOR_PRIORITY) return 0
  const state = stateOf(s, se)
  return state === PENDING ? 0 : state
}

function ejectFor(s: Scheduler, state: number, task: number, cpu: number, ms: number): void {
  const lost = state === HELD
  const what = lost ? 'was given to the policy and put on no queue' : 'has waited for a CPU'
  eject(
    s,
    lost ? 'lost a task' : 'starved a task',
    `policy: task ${named(s, task)} ${what} for ${ms.toFixed(1)} ms`,
    task,
    cpu,
  )
  drainEjected(s)
}
