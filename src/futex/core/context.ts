import { pause } from '../../arena/sync/pause.ts'
import type { Arena } from '../../arena/memory/arena.ts'
import { Rcu } from '../../arena/sync/rcu.ts'
import { CPU_MAX, type KernelThread } from '../../arena/sync/thread.ts'
import type { Scheduler } from '../../sched/core/scheduler.ts'
import { wakeupTask } from '../../sched/core/wakeup.ts'
import { RequeueDecision, WakeDecision } from './decision.ts'
import { finishExit, LockWatch } from '../recovery/exit.ts'
import type { FutexLayout } from './layout.ts'
import { FREE_FUTEX, Futex } from './records.ts'
import type { MappedBuffer } from './space.ts'

const REST_MS = 1

/** Makes a task runnable again: the scheduler's wakeup, from whatever thread this is. */
export type WakeTask = (task: number) => void

/**
 * What one thread needs to make futex calls. Not shared: each thread has its own, over the same arena and
 * layout.
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
  /** This thread's, where there is one: tasks are woken and inherit priorities through it. */
  readonly scheduler: Scheduler | undefined
  /** What this thread has mapped, by mapping and by backing. */
  readonly buffers: Map<number, MappedBuffer> = new Map()
  /**
   * A CPU of the scheduler is always online for RCU, quiescent at each switch, and runs its callbacks itself;
   * any other thread is there for the length of a call.
   */
  private readonly comesAndGoes: boolean
  private readonly nobody = new Int32Array(new SharedArrayBuffer(4))
  /** How deep in calls this thread is: the outermost enters and leaves RCU. */
  private depth = 0
  /**
   * Whether those who wait for long for a lock look for a deadlock meanwhile: on real machines, and not in a
   * check.
   */
  looksForDeadlocks = false
  /** Sleepers to be signalled when the lock is off, and the tasks behind them; reused. */
  readonly wakeQueue: number[] = []
  /** Waiters that a recovery took off their queues, and that begin anew at the next wakeAll. */
  readonly restarts: number[] = []
  /**
   * Blocks of the kernel's heap that belonged to waiters whose sleepers are gone: for this thread to free.
   */
  readonly leftBlocks: number[] = []
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
    this.comesAndGoes = domain === undefined || thread.id >= CPU_MAX
    this.rcu.register((_thread, node) => layout.futexes.free(this.i32, node - Futex.rcu), FREE_FUTEX)
    this.wakeTask =
      wakeTask ??
      (task => {
        if (scheduler !== undefined) return void wakeupTask(scheduler, task)
        throw new Error(
          'a task waits at this futex, and this thread was not given a scheduler to wake it with',
        )
      })
    if (scheduler !== undefined) scheduler.lockHooks = new LockWatch(this)
    if (this.comesAndGoes) this.rcu.online(thread)
    if (this.comesAndGoes) this.rcu.idleEnter(thread)
  }

  /** See exit.ts: for a call that waits for an owner to have ended. */
  finishExit(owner: number, dead: number): void {
    finishExit(this, owner, dead)
  }

  /** From here to `leave`, a futex that this thread has seen is not reused. */
  enter(): void {
    if (this.comesAndGoes && this.depth++ === 0) this.rcu.idleExit(this.thread)
  }

  leave(): void {
    if (!this.comesAndGoes || --this.depth > 0) return
    this.rcu.idleEnter(this.thread)
    if (this.rcu.queued(this.i32, this.thread.id) > 0) this.rcu.runCallbacks(this.thread)
  }

  /**
   * In the middle of a call that holds no lock and no look at anything: for a moment it is outside, so that
   * what waits to be freed can be; CPUs that have been busy with one task for long are asked to switch.
   * False: this thread cannot, or nothing waits.
   */
  rest(): boolean {
    const { rcu, i32, thread, layout, scheduler } = this
    if (this.comesAndGoes && this.depth !== 1) return false
    let waits = false
    for (let id = 0; id < layout.threads && !waits; id++) waits = rcu.queued(i32, id) > 0
    if (!waits) return false
    if (this.comesAndGoes) rcu.idleEnter(thread)
    else rcu.quiescent(thread)
    if (rcu.runCallbacks(thread, layout.futexes.capacity) === 0) {
      if (scheduler !== undefined) {
        for (let cpu = 0; cpu < scheduler.cpus; cpu++) if (cpu !== thread.id) scheduler.resched(cpu)
      }
      if (thread.mayBlock) Atomics.wait(this.nobody, 0, 0, REST_MS)
      else pause()
    }
    if (this.comesAndGoes) rcu.idleExit(thread)
    return true
  }
}
