import { FutexContext } from '../../src/futex/core/context.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import {
  type FutexLayout,
  type FutexSizes,
  initializeFutexes,
  reserveFutexes,
} from '../../src/futex/core/layout.ts'
import { type MutexKind, WordMutex } from '../../src/futex/robust/mutex.ts'
import { AddressSpace } from '../../src/futex/core/space.ts'
import { SchedTaskWaiter } from '../../src/futex/core/schedtaskwaiter.ts'
import { Entity } from '../../src/sched/core/entity.ts'
import type { TaskOptions } from '../../src/sched/core/fork.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { type SimulatedContext, Simulation, type SimulationOptions } from '../../testing/sched/simulation.ts'
import { TaskRecord } from '../../src/sched/core/taskrecord.ts'

/** The interface of a task's body in these tests. */
export class LockingTask {
  readonly context: SimulatedContext
  readonly parking: SchedTaskWaiter
  private readonly sim: LockSimulation

  constructor(sim: LockSimulation, context: SimulatedContext) {
    this.sim = sim
    this.context = context
    this.parking = new SchedTaskWaiter(context, ({ s }) => sim.futexesOn(s).context)
  }

  *lock(lock: number, timeout?: number): Generator<number, number, unknown> {
    return yield* this.sim.mutexOn(this.context.s, lock).lockTask(this.parking, timeout)
  }

  unlock(lock: number): number {
    return this.sim.mutexOn(this.context.s, lock).unlock(this.parking.owner)
  }
}

export type LockingBody = (task: LockingTask) => Generator<number, number | void, unknown>

/**
 * Tasks that take locks, on simulated CPUs. Each CPU has its own objects for the locks, as its heap would.
 */
export class LockSimulation {
  readonly sim: Simulation
  readonly fx: Futexes
  readonly buffer: SharedArrayBuffer
  private layout!: FutexLayout
  private readonly kind: MutexKind
  private readonly perCpu = new Map<Scheduler, { fx: Futexes; mutexes: WordMutex[] }>()

  constructor(kind: MutexKind, locks: number, options: SimulationOptions, sizes: FutexSizes = {}) {
    this.kind = kind
    this.sim = new Simulation({
      ...options,
      reserve: (plan, scheduler) => {
        this.layout = reserveFutexes(plan, { waiters: 256, mappings: 4, ...sizes }, scheduler.rcu)
      },
    })
    const { s } = this.sim
    initializeFutexes(s.arena, this.layout)
    this.fx = new Futexes(s.thread, this.layout, { now: () => s.now(), scheduler: s })
    this.buffer = new SharedArrayBuffer(locks * 32)
    this.fx.map(this.buffer)
  }

  fork(body: LockingBody, options: TaskOptions = {}, s?: Scheduler): number {
    return this.sim.fork(context => body(new LockingTask(this, context)), options, s)
  }

  /** The effective priority of the task. */
  priorityOf(task: number): number {
    const { i32 } = this.sim.s
    return i32[i32[task + TaskRecord.entity] + Entity.priority]
  }

  futexesOn(s: Scheduler): Futexes {
    return this.on(s).fx
  }

  mutexOn(s: Scheduler, lock: number): WordMutex {
    const { fx, mutexes } = this.on(s)
    const known = mutexes[lock]
    if (known !== undefined) return known
    const mapped = fx.context.buffers.get(this.fx.space.findBuffer(this.buffer)?.mapping ?? 0)
    if (mapped === undefined) throw new Error('the locks are mapped')
    const made = new WordMutex(fx, mapped.word(fx.context, lock * 8), this.kind)
    mutexes[lock] = made
    return made
  }

  private on(s: Scheduler): { fx: Futexes; mutexes: WordMutex[] } {
    let here = this.perCpu.get(s)
    if (here === undefined) {
      const context =
        s === this.sim.s
          ? this.fx.context
          : new FutexContext(s.thread, this.layout, () => s.now(), undefined, undefined, s)
      const space = AddressSpace.join(context, this.fx.space.handle)
      const handles = this.fx.space.findBuffer(this.buffer)?.handles
      if (handles !== undefined) space.adopt(this.buffer, handles)
      const fx = Object.assign(Object.create(Futexes.prototype) as Futexes, { context, space })
      here = { fx, mutexes: [] }
      this.perCpu.set(s, here)
    }
    return here
  }
}
