import { ArenaFullError } from '../../arena/memory/arena.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { Lock, rescueBehind } from '../../arena/sync/spinlock.ts'
import { exitTaskOwner } from '../../futex/recovery/exit.ts'
import { wakeAll } from '../../futex/core/queue.ts'
import { recoverFutexes, rescueFutexLock, wakeOrphans } from '../../futex/recovery/recover.ts'
import { cpuRecord } from '../../machine/core/cpurecord.ts'
import { requestDeaths, beginRescue, endRescue, isKnownDead } from '../../machine/core/deaths.ts'
import type { CpuDeath, Machine } from '../../machine/core/machine.ts'
import { isPacked } from '../../sched/balance/move.ts'
import { wakeupTask } from '../../sched/core/wakeup.ts'
import { cpusOf } from '../../sched/core/cpumask.ts'
import { Entity, POLICY_ROUND_ROBIN } from '../../sched/core/entity.ts'
import type { TaskOptions } from '../../sched/core/fork.ts'
import { taskName } from '../../sched/core/taskname.ts'
import { claimTask, endLost, type LostTask } from '../../sched/recovery/lost.ts'
import { recoverScheduler, rescueLock } from '../../sched/recovery/recovery.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { deadlockWord, uncountEnded, uncountSpawned } from '../boot/counters.ts'
import { type CpuLoss, describe } from '../join/errors.ts'
import {
  JOB_ASYNC,
  JOB_BOOTER,
  JOB_BY_ENDER,
  JOB_BY_OWNER,
  JOB_DISOWNED,
  JOB_ENDED,
  OUTCOME_EVICTED,
  JOB_EVICTING,
  Job,
  OUTCOME_KILLED,
  JOB_LOCAL,
  OUTCOME_LOST,
  NOT_KILLED,
  OUTCOME_PENDING,
  JOB_RESTARTABLE,
  imagePayloads,
  JobImages,
} from '../spawn/job.ts'
import { disownJob, publishOutcome } from '../join/outcome.ts'
import { respawnJob } from '../spawn/spawn.ts'
import { lastCheckpoint } from '../cpu/checkpoint.ts'
import type { KernelView } from '../boot/view.ts'

/**
 * Recovery of a dead CPU, and of nothing else. Runs on the booting thread after the death was reported; steps
 * 1 and 2 earlier, if that thread blocks and so cannot receive the report: it may wait for a lock of the dead
 * CPU.
 *
 *   1  the scheduler          its locks, queues, timers (src/sched/recovery/recovery.ts); its started tasks
 *                             are lost
 *   2  futexes and locks      its waits end; waiters for the locks of lost tasks get them
 *   3  payloads               those that it had encoded or taken, and not passed on, are freed; also those
 *                             that its tasks sent through channels
 *   4  jobs                   each by its record:
 *
 *      unpublished, of the dead CPU              it was being spawned. Started: it goes on
 *                                               unjoined. Else: it is dropped
 *      OUTCOME_PENDING, its task is lost         not begun, or JOB_RESTARTABLE, or with a checkpoint: a new
 *                                               task. Else OUTCOME_LOST, or OUTCOME_EVICTED
 *      OUTCOME_PENDING, separated from its task  it was about to get its outcome: the same
 *      OUTCOME_PENDING, its task is elsewhere    the CPU had stored its number and not begun
 *                                               the task: the number is removed
 *      ended, and not handed over                it is handed over now; and its joiners are woken once more
 *      the dead CPU held its handle              no task will join it
 *
 *   5  the lost tasks end     their records are freed
 *
 * Each job is handled once: an outcome is stored once, by the CPU that ran the job, and only a dead CPU's job
 * gets its outcome here.
 */
export interface Recovery {
  /** Jobs that ended with their CPU. */
  readonly lost: number
  /** Begun jobs whose CPU died by itself: they count towards CRASHES_MAX. */
  readonly crashed: number
  /** Jobs that get a new task. */
  readonly restarted: number
}

/**
 * A restartable job that was this often on a CPU that died by itself (an error, out of memory) is lost: it
 * may be the cause. Terminated CPUs do not count.
 */
export const CRASHES_MAX = 3

/** Delivers the outcomes of ended jobs, or of one job: the booting thread's collector. */
export interface JobCollector {
  collect(): number
  deliver(job: number): void
  /** A begun job starts again. */
  restarted?(job: number): void
}

/** Steps 1 and 2: no thread waits for the dead CPU any more. Returns its lost tasks, for the other steps. */
export function releaseDead(view: KernelView, dead: number): LostTask[] {
  const { context } = view.futexes
  const lostTasks = recoverScheduler(view.s, dead) // 1
  // Its waits leave the queues before its locks are passed on: a new holder must be alive.
  recoverFutexes(context, dead) // 2
  for (const { task } of lostTasks) {
    view.handoff.forgetTask(task)
    exitTaskOwner(context, task)
  }
  wakeOrphans(context)
  return lostTasks
}

export function recoverCpu(
  view: KernelView,
  collector: JobCollector,
  death: CpuDeath,
  lostTasks: readonly LostTask[] = releaseDead(view, death.cpu),
): Recovery {
  const { s, codec } = view
  const dead = death.cpu
  freeOrphanedBlocks(view)
  view.obstacles.recover(dead)
  codec.recover(dead, visit => visitPayloads(view, visit)) // 3
  // Collects all jobs that the dead CPU handed over: the others are found below.
  collector.collect()
  const recovery = new JobRecovery(view, collector, death, lostTasks)
  recovery.run() // 4
  endLost(
    s,
    lostTasks.map(({ task }) => task),
  ) // 5
  s.rcu.runCallbacks(view.thread)
  return recovery
}

/**
 * For a thread that may wait for a dead CPU before its event loop can learn of the death. `owner` is the
 * thread that it waits for, at `lock`, or for a task to leave that CPU (0). If the owner is alive, it may
 * itself wait for a dead CPU: at a lock (`rescueBehind`), or for a task to leave a dead CPU, which no thread
 * does that holds more than a pi lock.
 */
export function rescuer(
  view: KernelView,
  machine: Pick<Machine, 'cpus' | 'isGone'>,
): (owner: number, lock: number) => boolean {
  const { s, i32 } = view
  const heap = lockRank('heap')
  // A thread that waits for a task to leave a CPU holds at most one of these.
  const anyPiLock = i32[s.queueOf(0) + RunQueue.idle] + Entity.piLock
  const isDead = (cpu: number): boolean => cpu >= 0 && cpu < machine.cpus && machine.isGone?.(cpu) === true
  const rescue = (dead: number, lock: number): void => {
    if (rescueLock(s, dead, lock)) return
    if (i32[lock + Lock.rank] === heap) view.codec.recover(dead, visit => visitPayloads(view, visit))
    else rescueFutexLock(view.futexes.context, dead, lock)
  }
  return (owner, lock) => {
    if (isDead(owner)) {
      rescue(owner, lock)
      return true
    }
    rescueBehind(i32, owner, lock === 0 ? anyPiLock : lock, isDead, rescue)
    if (lock !== 0 && i32[lock + Lock.rank] > i32[anyPiLock + Lock.rank]) return false
    for (let cpu = 0; cpu < s.cpus; cpu++) {
      if (isDead(cpu) && Atomics.load(i32, s.queueOf(cpu) + RunQueue.online) !== 0) rescue(cpu, 0)
    }
    return false
  }
}

/**
 * The same on a CPU, so that a lock of a dead CPU does not depend on the booting thread. The CPU learns of
 * deaths from shared words (machine/core/deaths.ts), and requests them. Work that needs all locks released
 * comes at its next turn (`finishRescue`): waiters that restart.
 */
export function rescueOnCpu(view: KernelView): void {
  const { s, i32 } = view
  const { context } = view.futexes
  const own = cpuRecord(s.machine, s.cpu)
  const isGone = (cpu: number): boolean => isKnownDead(i32, s.machine, cpu)
  const rescue = rescuer(view, { cpus: s.cpus, isGone })
  const finish = (): void => wakeAll(context)
  s.thread.rescuer = {
    keepIds: () => beginRescue(i32, own),
    freeIds: () => endRescue(i32, own),
    repairDead(owner, lock) {
      requestDeaths(i32, s.machine)
      beginRescue(i32, own)
      const isDead = rescue(owner, lock)
      if (context.restarts.length > 0) {
        s.finishRescue = finish
        s.resched(s.cpu)
      }
      endRescue(i32, own)
      return isDead
    },
  }
}

/**
 * Frees the blocks that the waiters of dead sleepers were to send, or had received. A block that a sleeper
 * was about to take is freed with the payloads of its thread.
 */
function freeOrphanedBlocks({ codec, heap, futexes }: KernelView): void {
  for (const block of futexes.context.orphanedBlocks.splice(0)) if (heap.isAtRest(block)) codec.free(block)
}

/** Visits every word of a record that may hold a payload. */
function visitPayloads(view: KernelView, visit: (at: number) => void): void {
  const { jobs, i32 } = view
  for (let thread = 0; thread <= view.plan.sizes.cpus; thread++) visit(deadlockWord(view, thread))
  for (let job = jobs.after(i32, 0); job !== 0; job = jobs.after(i32, job)) {
    visit(job + Job.args)
    visit(job + Job.result)
    visit(job + Job.reason)
    visit(job + Job.context)
    if (view.hasImages(job)) for (const at of imagePayloads) visit(view.imagesOf(job) + at)
  }
}

class JobRecovery implements Recovery {
  lost = 0
  crashed = 0
  restarted = 0
  private readonly view: KernelView
  private readonly collector: JobCollector
  private readonly death: CpuDeath
  private readonly dead: number
  /**
   * The task that the CPU was ending, already separated from its job; 0: none. There is at most one, and at
   * most one such job.
   */
  private parted = 0
  /** The lost tasks by their jobs. */
  private readonly tasks = new Map<number, LostTask>()

  constructor(view: KernelView, collector: JobCollector, death: CpuDeath, lostTasks: readonly LostTask[]) {
    this.view = view
    this.collector = collector
    this.death = death
    this.dead = death.cpu
    for (const lost of lostTasks) {
      const job = view.jobOf(lost.task)
      if (job !== 0) this.tasks.set(job, lost)
      else this.parted = lost.task
    }
  }

  run(): void {
    const { i32, jobs } = this.view
    for (let job = jobs.after(i32, 0); job !== 0; job = jobs.after(i32, job)) {
      if (jobs.isUnpublishedBy(i32, job, this.dead)) this.finishSpawn(job)
      if (jobs.isPublished(i32, job)) this.see(job)
    }
    jobs.reclaim(i32, this.dead)
  }

  private see(job: number): void {
    const { i32, codec } = this.view
    if (Atomics.load(i32, job + Job.killKind) === -(this.dead + 1)) {
      // The killer had not stored the reason yet: no thread has seen that kill.
      codec.drop(job + Job.reason)
      Atomics.store(i32, job + Job.killKind, NOT_KILLED)
    } else if (Atomics.load(i32, job + Job.killKind) > NOT_KILLED) {
      // The killer may have died before the monitor could see the kill; or the grace period begins again.
      this.view.killed.add(this.view.jobs.indexOf(job))
    }
    const control = Atomics.load(i32, job + Job.control)
    const here = Atomics.load(i32, job + Job.cpu) === this.dead + 1
    const owned = (control & JOB_BOOTER) === 0 && i32[job + Job.owner] === this.dead
    if (Atomics.load(i32, job + Job.outcome) === OUTCOME_PENDING) {
      const lost = this.tasks.get(job)
      const task = Atomics.load(i32, job + Job.task)
      const isParted = here && (task === 0 || task === this.parted)
      if (lost !== undefined || isParted) this.lose(job, lost)
      // The CPU had only stored its number, and the task is queued elsewhere. That number would end the next
      // CPU of that number whenever the job's grace period ends (monitor.ts). By compare-exchange: the task
      // may have begun elsewhere.
      else if (here) Atomics.compareExchange(i32, job + Job.cpu, this.dead + 1, 0)
      if (lost === undefined && (control & JOB_ASYNC) !== 0 && task !== 0 && isPacked(i32, task)) {
        // A packed task that waited on the dead CPU for its code. Any other goes back to sleep.
        wakeupTask(this.view.s, task)
      }
      if (owned && (control & JOB_DISOWNED) === 0) disownJob(this.view, job)
      return
    }
    // The CPU may have died between the outcome and the wakeup.
    if (here && (control & JOB_BOOTER) === 0) this.view.futexes.wake(this.view.joinWord(job), Infinity)
    const handedOver = (control & JOB_BOOTER) !== 0 ? here : isHeldBy(control, here, owned)
    if (handedOver) this.collector.deliver(job)
    else if (owned && (control & JOB_DISOWNED) === 0) disownJob(this.view, job)
  }

  /** The job is lost with its CPU. */
  private lose(job: number, lost: LostTask | undefined): void {
    const { view } = this
    const { i32, codec } = view
    uncountEnded(view, job, this.dead)
    codec.drop(job + Job.result)
    if (view.hasImages(job)) codec.drop(view.imagesOf(job) + JobImages.image)
    const task = lost?.task ?? this.parted
    const options = task === 0 ? undefined : optionsOf(view, task, job)
    if (task !== 0) view.separateJob(task, job)
    else Atomics.store(i32, job + Job.task, 0)
    const control = Atomics.load(i32, job + Job.control)
    const isKilled = Atomics.load(i32, job + Job.killKind) !== NOT_KILLED
    const begun = i32[job + Job.starts] !== 0
    if (begun && this.death.reason !== 'terminated') {
      i32[job + Job.crashes]++
      this.crashed++
    }
    const survives = (control & JOB_RESTARTABLE) !== 0 || lastCheckpoint(view, job) !== 0
    const again = !begun || (survives && i32[job + Job.crashes] < CRASHES_MAX)
    if (options !== undefined && again && !isKilled && (control & (JOB_LOCAL | JOB_EVICTING)) === 0) {
      if (this.restart(job, control, options)) return
    }
    this.lost++
    view.f64[(job + Job.ended) >> 1] = view.s.clock
    if (!begun && isKilled) return publishOutcome(view, job, OUTCOME_KILLED)
    if ((control & JOB_EVICTING) === 0) this.storeReason(job, lost?.was ?? 'ending')
    publishOutcome(view, job, (control & JOB_EVICTING) !== 0 ? OUTCOME_EVICTED : OUTCOME_LOST)
  }

  /** Creates a new task for the job. False: there is no room. */
  private restart(job: number, control: number, options: TaskOptions): boolean {
    if ((control & JOB_DISOWNED) === 0) Atomics.and(this.view.i32, job + Job.control, ~JOB_ENDED)
    const packed = this.view.i32[job + Job.starts] !== 0 && lastCheckpoint(this.view, job) !== 0
    try {
      respawnJob(this.view, job, options, packed)
    } catch (error) {
      if (error instanceof ArenaFullError) return false
      throw error
    }
    this.restarted++
    if (this.view.i32[job + Job.starts] !== 0) this.collector.restarted?.(job)
    return true
  }

  /** Stores how the CPU died, and the state of the task, for joiners. */
  private storeReason(job: number, was: string): void {
    const { codec } = this.view
    const { reason, error, exitCode } = this.death
    const loss: CpuLoss = { reason, exitCode, was, ...(error !== undefined && { error: describe(error) }) }
    try {
      codec.put(job + Job.result, codec.encode(loss, 'loss'))
    } catch {
      // No room: the error has no details.
    }
  }

  /** Finishes a job that a task of the dead CPU was spawning. There is at most one. */
  private finishSpawn(job: number): void {
    const { view, dead } = this
    const { i32, jobs, codec, s } = view
    if (i32[job + Job.number] === 0) return
    const task = Atomics.load(i32, job + Job.task)
    const isThere = task !== 0 && s.tasks.isPublished(i32, task)
    const started = isThere
      ? i32[i32[task + TaskRecord.entity] + Entity.woken] !== 0
      : i32[job + Job.starts] !== 0
    if (started) {
      jobs.publish(i32, job)
      return
    }
    uncountSpawned(view, job, dead)
    codec.drop(job + Job.args)
    codec.drop(job + Job.context)
    if (isThere) {
      view.separateJob(task, job)
      // A task that was bound to the dead CPU is claimed already, and ends with the others.
      if (!this.tasks.has(job)) {
        claimTask(s, task)
        endLost(s, [task])
      }
    }
    i32[job + Job.number] = 0
    jobs.free(i32, job)
  }
}

/** Whether the dead CPU had to hand over an ended job without a handle. */
function isHeldBy(control: number, here: boolean, owned: boolean): boolean {
  return (here && (control & JOB_BY_ENDER) !== 0) || (owned && (control & JOB_BY_OWNER) !== 0)
}

/** The options of the job's next task: those of its last one. */
function optionsOf(view: KernelView, task: number, job: number): TaskOptions {
  const { i32, f64, s } = view
  const se = i32[task + TaskRecord.entity]
  const low = i32[job + Job.affinity]
  const high = i32[job + Job.affinity + 1]
  return {
    ...(i32[task + TaskRecord.name] !== 0 && { name: taskName(s, task) }),
    priority: i32[se + Entity.basePriority],
    nice: i32[se + Entity.nice],
    roundRobin: (i32[se + Entity.policy] & POLICY_ROUND_ROBIN) !== 0,
    slice: f64[(se + Entity.timeSlice) >> 1],
    ...((low & high) !== -1 && { affinity: cpusOf(low, high) }),
  }
}
