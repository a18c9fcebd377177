import { FutexContext } from '../futex/context.ts'
import { Futexes } from '../futex/futexes.ts'
import { type FutexLayout, initializeFutexes, reserveFutexes } from '../futex/layout.ts'
import { type MutexKind, PLAIN, WordMutex } from '../futex/mutex.ts'
import { MutexRecord } from '../futex/mutexrecord.ts'
import type { LockOwner } from '../futex/owner.ts'
import { SchedulerTask } from '../futex/tasks.ts'
import type { TaskOptions } from '../sched/fork.ts'
import type { Scheduler } from '../sched/scheduler.ts'
import { type SimulatedContext, Simulation } from '../sched/simulation.ts'
import { YIELDED } from '../sched/switch.ts'
import { Handoff, type HandoffOptions, lockTag } from './handoff.ts'
import { type HandoffLayout, type HandoffSizes, reserveHandoff } from './layout.ts'
import { HandoffMutex, type RealMutex } from './mutex.ts'

export interface LockSimOptions extends Pick<HandoffOptions, 'yieldBudget' | 'fallbackUs'> {
  readonly cpus: number
  readonly seed?: number
  readonly slice?: number
  readonly locks?: number
  readonly kind?: MutexKind
  readonly sizes?: HandoffSizes
}

/** A task of a LockSim: itself, and the locks as it sees them. */
export interface LockTask {
  readonly context: SimulatedContext
  readonly parking: SchedulerTask
  readonly locks: readonly HandoffMutex[]
  readonly handoff: Handoff
}

/** Simulated CPUs with locks that hand over: for tests. Tasks migrate, so each learns where it is at every try. */
export class LockSim {
  readonly sim: Simulation
  readonly fx: Futexes
  readonly view: Int32Array<SharedArrayBuffer>
  layout!: HandoffLayout
  private readonly options: LockSimOptions
  private futexLayout!: FutexLayout
  private readonly contexts = new Map<Scheduler, FutexContext>()

  constructor(options: LockSimOptions) {
    this.options = options
    const { cpus, seed = 1, slice = 2, locks = 1, sizes } = options
    this.sim = new Simulation({
      cpus,
      seed,
      slice,
      tasks: 64,
      reserve: (plan, scheduler) => {
        this.futexLayout = reserveFutexes(
          plan,
          { waiters: 128, mappings: 4, spaces: 2, buckets: 16 },
          scheduler.rcu,
        )
        this.layout = reserveHandoff(plan, sizes)
      },
    })
    const { s } = this.sim
    initializeFutexes(s.arena, this.futexLayout)
    this.fx = new Futexes(s.thread, this.futexLayout, { now: () => s.now(), scheduler: s })
    const buffer = new SharedArrayBuffer(locks * LOCK_WORDS * 4)
    this.view = this.fx.map(buffer).i32 as Int32Array<SharedArrayBuffer>
    // So that a policy finds the tables before the first task has come.
    void new Handoff(s.arena, this.layout, { scheduler: s })
  }

  fork(
    body: (task: LockTask) => Generator<number, number | void, unknown>,
    options: TaskOptions = {},
  ): number {
    return this.sim.fork(context => this.drive(context, body(this.taskOf(context))), options)
  }

  /** Every CPU that a task comes to knows of locks: it may end there. */
  private *drive(
    context: SimulatedContext,
    body: Generator<number, number | void, unknown>,
  ): Generator<number, number | void, unknown> {
    for (;;) {
      this.contextOf(context.s)
      const { done, value } = body.next()
      if (done) return value
      yield value as number
    }
  }

  /** The futexes of the CPU that a task is on. */
  private contextOf(s: Scheduler): FutexContext {
    let context = this.contexts.get(s)
    if (s === this.sim.s) return this.fx.context
    if (context === undefined) {
      context = new FutexContext(s.thread, this.futexLayout, s.now, undefined, s.rcu, s)
      this.contexts.set(s, context)
    }
    return context
  }

  private taskOf(context: SimulatedContext): LockTask {
    const { sim, fx, layout } = this
    const { locks = 1, kind = PLAIN } = this.options
    const handoff = new Handoff(sim.s.arena, layout, {
      ...this.options,
      scheduler: sim.s,
      now: () => context.cpu.now(),
    })
    const parking = new SchedulerTask(context, ({ s }) => this.contextOf(s))
    const made = Array.from({ length: locks }, (_, lock) => {
      const word = fx.word(this.view, lock * LOCK_WORDS)
      const real = new Whereabouts(new WordMutex(fx, word, kind), handoff, context)
      return new HandoffMutex(real, handoff, lockTag(1, lock), () => YIELDED)
    })
    return { context, parking, locks: made, handoff }
  }
}

const LOCK_WORDS = Math.ceil(MutexRecord.words / 2) * 2

/** Tells the hints where the task is before each try: on a real CPU it cannot be anywhere else. */
class Whereabouts implements RealMutex {
  private readonly real: WordMutex
  private readonly handoff: Handoff
  private readonly context: SimulatedContext

  constructor(real: WordMutex, handoff: Handoff, context: SimulatedContext) {
    this.real = real
    this.handoff = handoff
    this.context = context
  }

  tryLock(owner: LockOwner): number {
    this.handoff.cpu = this.context.s.cpu
    return this.real.tryLock(owner)
  }

  lockSync(owner: LockOwner, timeout?: number): number {
    return this.real.lockSync(owner, timeout)
  }

  lockAsync(owner: LockOwner, timeout?: number, signal?: AbortSignal): Promise<number> {
    return this.real.lockAsync(owner, timeout, signal)
  }

  *lockTask(
    parking: SchedulerTask,
    timeout?: number,
    signal?: AbortSignal,
  ): Generator<number, number, unknown> {
    const result = yield* this.real.lockTask(parking, timeout, signal)
    this.handoff.cpu = this.context.s.cpu
    return result
  }

  unlock(owner: LockOwner): number {
    this.handoff.cpu = this.context.s.cpu
    return this.real.unlock(owner)
  }

  makeConsistent(owner: LockOwner): number {
    return this.real.makeConsistent(owner)
  }
}
