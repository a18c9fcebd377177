import { Worker } from 'node:worker_threads'
import type { Uaddr } from '../../src/futex/operations/call.ts'
import { FutexContext } from '../../src/futex/core/context.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import {
  type FutexLayout,
  type FutexSizes,
  initializeFutexes,
  reserveFutexes,
} from '../../src/futex/core/layout.ts'
import { Waiter } from '../../src/futex/core/records.ts'
import type { MappedBuffer, MappingHandles } from '../../src/futex/core/space.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { Simulation } from '../../testing/sched/simulation.ts'
import { killTask } from '../../src/sched/core/sleep.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'

/** The kind of waiter: each row of a conformance table runs for all three. */
export type Kind = 'thread' | 'promise' | 'task'
export const kinds: readonly Kind[] = ['thread', 'promise', 'task']

const WAITERS = 256
export const sizes: FutexSizes = { waiters: WAITERS, mappings: 32, spaces: 8, buckets: 16 }
const TASKS = 64
/** The id of the first thread that is hired. */
export const FIRST_THREAD = 70

/** The data that a thread needs to join the stage (stagethread.ts). */
export interface StageBoot {
  readonly arena: SharedArrayBuffer
  readonly id: number
  readonly cpus: number
  readonly tasks: number
  readonly space: number
  readonly mappings: readonly { buffer: SharedArrayBuffer; handles: MappingHandles }[]
}

/** A call that sleeps, or has returned. */
export interface Watched {
  /** The promise of its result. */
  readonly result: Promise<number>
  /** Whether it has returned or its result is decided, at this moment. */
  isDone(): Promise<boolean>
}

export interface StageOptions {
  readonly cpus?: number
  readonly bytes: number
  /** The virtual time that `settle` lets pass at most, in milliseconds: less than any timeout of a row. */
  readonly settleMs: number
  /** Tasks inherit priorities: the calls use the scheduler also for boosts, not only for wakeups. */
  readonly inherits: boolean
}

/**
 * One arena with a mapped buffer, simulated CPUs for tasks, threads on request, and this thread as a caller.
 */
export class Stage {
  readonly kind: Kind
  readonly sim: Simulation
  readonly fx: Futexes
  readonly view: Int32Array<SharedArrayBuffer>
  readonly mapped: MappedBuffer[] = []
  layout!: FutexLayout
  /** All watched calls. */
  protected watched: Promise<unknown>[] = []
  protected readonly workers: Worker[] = []
  private readonly options: StageOptions
  private readonly perCpu = new Map<Scheduler, FutexContext>()

  constructor(kind: Kind, options: StageOptions) {
    this.kind = kind
    this.options = options
    this.sim = new Simulation({
      cpus: options.cpus ?? 2,
      seed: 1,
      tasks: TASKS,
      reserve: (plan, scheduler) => {
        this.layout = reserveFutexes(plan, sizes, scheduler.rcu)
      },
    })
    const { s } = this.sim
    initializeFutexes(s.arena, this.layout)
    this.fx = new Futexes(s.thread, this.layout, {
      now: kind === 'task' ? () => s.now() : () => performance.now(),
      ...(options.inherits
        ? { scheduler: s }
        : { wakeTask: (task: number) => void wakeupTask(s, task), rcu: s.rcu }),
    })
    this.mapped.push(this.fx.map(new SharedArrayBuffer(options.bytes)))
    this.view = this.mapped[0].i32
  }

  at(index: number, map = 0): Uaddr {
    return { view: this.mapped[map].i32, index }
  }

  /** Runs the simulated CPUs, but lets no timeout pass. */
  settle(): void {
    if (this.kind === 'task') this.sim.run({ until: this.sim.machine.now() + this.options.settleMs })
  }

  /** The number of waiters. */
  queued(): number {
    return this.queuedWaiters().length
  }

  /** Sends the one signal that a task can get. */
  kill({ task }: { readonly task: number }): void {
    killTask(this.sim.s, task)
    this.settle()
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }

  /** The waiters that are on queues now, by handle. */
  protected queuedWaiters(): number[] {
    const { i32 } = this.sim.s
    const { waiters } = this.layout
    const found: number[] = []
    for (let at = 0; at < WAITERS; at++) {
      const waiter = waiters.pointerAt(at)
      if (waiters.isAllocated(i32, waiter) && Atomics.load(i32, waiter + Waiter.queue) > 0) {
        found.push(waiters.handleOf(i32, waiter))
      }
    }
    return found
  }

  /** Watches a new call until it sleeps, with so many more waiters than `before`, or has returned. */
  protected async watch(before: ReadonlySet<number>, result: Promise<number>, waiters = 1): Promise<Watched> {
    let mine: number[] = []
    let done = false
    this.watched.push(result)
    void result.then(() => {
      done = true
    })
    const hasReturned = (): boolean => done
    while ((mine.length < waiters || !this.sleeps(mine)) && !hasReturned()) {
      this.settle()
      await new Promise(resolve => setImmediate(resolve))
      mine = this.queuedWaiters().filter(waiter => !before.has(waiter))
    }
    // The result is decided when the waiter is on no queue any more. This shows before its thread notices it.
    const isDone = async (): Promise<boolean> => {
      this.settle()
      const queued = this.queuedWaiters()
      return !mine.some(waiter => queued.includes(waiter))
    }
    const drain = async (): Promise<number> => {
      // Virtual time passes only while the machine runs.
      if (this.kind === 'task') this.sim.run()
      return result
    }
    return {
      isDone,
      get result() {
        return drain()
      },
    }
  }

  /**
   * Whether the call with these waiters has nothing left to do but sleep. A thread queues its waiter first,
   * and may still walk the chain of owners then: a cycle that another thread closes meanwhile could end this
   * call with EDEADLK. So the thread gets a spurious wakeup, which only a sleeping thread receives.
   */
  private sleeps(mine: readonly number[]): boolean {
    if (this.kind !== 'thread') return true
    const { i32 } = this.sim.s
    const { waiters } = this.layout
    return mine.some(handle => {
      const waiter = waiters.resolve(i32, handle)
      return waiter !== 0 && Atomics.notify(i32, waiter + Waiter.signal) > 0
    })
  }

  /** The calls of a task run on its CPU. */
  protected futexesOn(s: Scheduler): Futexes {
    return Object.assign(Object.create(Futexes.prototype) as Futexes, {
      context: this.contextOn(s),
      space: this.fx.space,
    })
  }

  protected contextOn(s: Scheduler): FutexContext {
    let context = this.perCpu.get(s)
    if (context === undefined) {
      context = this.options.inherits
        ? new FutexContext(s.thread, this.layout, () => s.now(), undefined, undefined, s)
        : new FutexContext(
            s.thread,
            this.layout,
            () => s.now(),
            task => void wakeupTask(s, task),
            s.rcu,
          )
      for (const [key, mapped] of this.fx.context.buffers) context.buffers.set(key, mapped)
      this.perCpu.set(s, context)
    }
    return context
  }

  /** A thread that runs this script, which begins with `comeOnStage`. */
  protected hire(script: string): Worker {
    const { s } = this.sim
    const boot: StageBoot = {
      arena: s.arena.buffer,
      id: FIRST_THREAD + this.workers.length,
      cpus: s.cpus,
      tasks: TASKS,
      space: this.fx.space.handle,
      mappings: this.mapped
        .filter(mapped => mapped.isMapped(s.i32, false))
        .map(({ buffer, handles }) => ({ buffer, handles })),
    }
    const worker = new Worker(new URL(script, import.meta.url), { workerData: boot })
    worker.setMaxListeners(0)
    this.workers.push(worker)
    return worker
  }
}
