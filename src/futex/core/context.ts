import { pause } from '../../arena/sync/pause.ts'
import type { Arena } from '../../arena/memory/arena.ts'
import { Rcu } from '../../arena/sync/rcu.ts'
import { CPU_MAX, type KernelThread } from '../../arena/sync/thread.ts'
import type { Scheduler } from '../../sched/core/scheduler.ts'
import { wakeupAll } from '../../sched/core/wakebatch.ts'
import { wakeupTask } from '../../sched/core/wakeup.ts'
import { RequeueDecision, WakeDecision } from './decision.ts'
import { finishExit, TaskLockHooks } from '../recovery/exit.ts'
import type { FutexLayout } from './layout.ts'
import { FREE_FUTEX, Futex } from './records.ts'
import type { SleepHere } from './sleephere.ts'
import type { MappedBuffer } from './space.ts'

const QUIESCE_MS = 1

/** Makes a task runnable: the scheduler's wakeup, callable on any thread. */
export type WakeTask = (task: number) => void

/**
 * The state of one thread that makes futex calls. Not shared: each thread has its own, over the same arena
 * and layout.
 */
export class FutexContext {
  readonly thread: KernelThread
  readonly arena: Arena
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly layout: FutexLayout
  readonly rcu: Rcu
  /** Milliseconds, monotonic, the same on every thread. */
  readonly now: () => number
  wakeTask: WakeTask
  private readonly wakeByScheduler: WakeTask | undefined
  /** This thread's scheduler, if it has one: it wakes tasks and lets them inherit priorities. */
  readonly scheduler: Scheduler | undefined
  /** The buffers that this thread has mapped, by mapping and by backing. */
  readonly buffers: Map<number, MappedBuffer> = new Map()
  /**
   * True: RCU sees this thread only during a call. A CPU of the scheduler is always online for RCU, quiescent
   * at each switch, and runs its callbacks itself.
   */
  private readonly joinsRcuPerCall: boolean
  private readonly neverNotified = new Int32Array(new SharedArrayBuffer(4))
  /** Nesting depth of calls: the outermost call enters and leaves RCU. */
  private depth = 0
  /** Whether a long wait for a lock checks for a deadlock: true on real machines, false in a check. */
  detectsDeadlocks = false
  /** Sleepers to signal after the lock is released, each with its task; reused. */
  readonly wakeQueue: number[] = []
  /** The list of the tasks among them; reused. Null while a wakeAll uses it. */
  wokenTasks: number[] | null = []
  /** Waiters that a recovery removed from their queues, and that restart at the next wakeAll. */
  readonly restarts: number[] = []
  /** Blocks of the kernel's heap whose waiters' sleepers are gone: this thread frees them. */
  readonly orphanedBlocks: number[] = []
  /** The promises and coroutines of this thread that sleep, by their sleeper (sleephere.ts). */
  readonly sleepsHere: Map<number, SleepHere> = new Map()
  readonly wakeDecision: WakeDecision = new WakeDecision()
  readonly requeueDecision: RequeueDecision = new RequeueDecision()

  constructor(
    thread: KernelThread,
    layout: FutexLayout,
    now: () => number,
    wakeTask?: WakeTask,
    rcu?: Rcu,
    scheduler?: Scheduler,
  ) {
    this.thread = thread
    this.arena = thread.arena
    this.i32 = thread.i32
    this.layout = layout
    this.now = now
    this.scheduler = scheduler
    const domain = rcu ?? scheduler?.rcu
    this.rcu = domain ?? new Rcu(layout.rcu, layout.threads)
    this.joinsRcuPerCall = domain === undefined || thread.id >= CPU_MAX
    this.rcu.register((_thread, node) => layout.futexes.free(this.i32, node - Futex.rcu), FREE_FUTEX)
    this.wakeByScheduler = scheduler === undefined ? undefined : task => void wakeupTask(scheduler, task)
    this.wakeTask =
      wakeTask ??
      this.wakeByScheduler ??
      (() => {
        throw new Error(
          'a task waits at this futex, but this thread has no scheduler to wake it; pass the option `scheduler`',
        )
      })
    if (scheduler !== undefined) scheduler.lockHooks = new TaskLockHooks(this)
    if (this.joinsRcuPerCall) this.rcu.online(thread)
    if (this.joinsRcuPerCall) this.rcu.idleEnter(thread)
  }

  /** Wakes the first `count` tasks of the list, together if there are several. No lock is held. */
  wakeTasks(tasks: readonly number[], count: number): void {
    const { scheduler } = this
    if (count > 1 && scheduler !== undefined && this.wakeTask === this.wakeByScheduler) {
      wakeupAll(scheduler, tasks, count)
    } else {
      for (let at = 0; at < count; at++) this.wakeTask(tasks[at])
    }
  }

  /** Finishes the exit of an owner (exit.ts), for a caller that waits for that. */
  finishExit(owner: number, dead: number): void {
    finishExit(this, owner, dead)
  }

  /** From here to `leave`, no slot of a futex that this thread has found is reused. */
  enter(): void {
    if (this.joinsRcuPerCall && this.depth++ === 0) this.rcu.idleExit(this.thread)
  }

  leave(): void {
    if (!this.joinsRcuPerCall || --this.depth > 0) return
    this.rcu.idleEnter(this.thread)
    if (this.rcu.queued(this.i32, this.thread.id) > 0) this.rcu.runCallbacks(this.thread)
  }

  /**
   * Passes a quiescent state in the middle of a call that holds no lock and no RCU reference, so that memory
   * waiting for a grace period can be freed. Asks CPUs that have run one task for long to switch. False: this
   * thread cannot, or no memory waits.
   */
  quiesce(): boolean {
    const { rcu, i32, thread, layout, scheduler } = this
    if (this.joinsRcuPerCall && this.depth !== 1) return false
    let waits = false
    for (let id = 0; id < layout.threads && !waits; id++) waits = rcu.queued(i32, id) > 0
    if (!waits) return false
    if (this.joinsRcuPerCall) rcu.idleEnter(thread)
    else rcu.quiescent(thread)
    if (rcu.runCallbacks(thread, layout.futexes.capacity) === 0) {
      if (scheduler !== undefined) {
        for (let cpu = 0; cpu < scheduler.cpus; cpu++) if (cpu !== thread.id) scheduler.resched(cpu)
      }
      if (thread.mayBlock) Atomics.wait(this.neverNotified, 0, 0, QUIESCE_MS)
      else pause()
    }
    if (this.joinsRcuPerCall) rcu.idleExit(thread)
    return true
  }
}
