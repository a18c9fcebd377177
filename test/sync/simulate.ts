import { Futexes } from '../../src/futex/core/futexes.ts'
import { type FutexLayout, initializeFutexes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { SchedTaskWaiter } from '../../src/futex/core/schedtaskwaiter.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { here } from '../../src/kernel/cpu/here.ts'
import { switchTo } from '../../src/thread/context.ts'
import type { Runner } from '../../src/thread/runner.ts'
import { Simulation, type SimulatedContext } from '../../testing/sched/simulation.ts'
import { killTask, takePending } from '../../src/sched/core/sleep.ts'
import { SWITCH_PREEMPTED } from '../../src/sched/core/switch.ts'

/** Thrown into a cancelled task. */
export class Cancelled extends Error {}

export type Body = () => Generator<number, void, unknown>

interface Running {
  readonly context: SimulatedContext
  readonly task: SchedTaskWaiter
}

/** From here on this thread is in that domain. The TID that it had in another one does not count here. */
function enterDomain(futexes: Futexes | null): void {
  here.futexes = futexes
  here.tid = 0
}

/** A small random generator: the same seed, the same history. */
export class Dice {
  private state: number

  constructor(seed: number) {
    this.state = (seed * 2_654_435_761) >>> 0 || 1
  }

  /** A whole number below `sides`. */
  roll(sides: number): number {
    this.state ^= this.state << 13
    this.state ^= this.state >>> 17
    this.state ^= this.state << 5
    return (this.state >>> 0) % sides
  }

  pick<T>(from: readonly T[]): T {
    return from[this.roll(from.length)]
  }
}

/**
 * Tasks on simulated CPUs that use the library as tasks of a kernel do: the scheduler parks and wakes them,
 * and a throw cancels them. Time is virtual, and the seed decides every order.
 */
export class SyncSimulation {
  readonly simulation: Simulation
  private layout!: FutexLayout
  /** Of the thread that is no CPU. */
  readonly futexes: Futexes
  private readonly perCpu = new Map<Scheduler, Futexes>()
  private running: Running | null = null
  private readonly tasks: number[] = []
  private readonly cancelled = new Set<number>()
  private readonly ended = new Set<number>()
  private readonly runner: Runner = {
    park: () => {
      throw new Error('the library parks tasks through the scheduler')
    },
    unpark: () => undefined,
    progress: () => undefined,
  }

  constructor(cpus: number, seed: number) {
    this.simulation = new Simulation({
      cpus,
      seed,
      tasks: 64,
      debug: false,
      reserve: (plan, scheduler) => {
        this.layout = reserveFutexes(
          plan,
          { waiters: 128, mappings: 8, spaces: 4, buckets: 32, owners: 128 },
          scheduler.rcu,
        )
      },
    })
    const { s } = this.simulation
    initializeFutexes(s.arena, this.layout)
    this.futexes = new Futexes(s.thread, this.layout, { now: () => s.now(), scheduler: s })
    Object.assign(this.futexes, { mayBlock: false })
    enterDomain(this.futexes)
  }

  close(): void {
    enterDomain(null)
  }

  now(): number {
    return this.simulation.s.now()
  }

  /**
   * Runs the bodies, each as a task, until all have ended. Throws the error of a task, or reports stuck
   * tasks.
   */
  run(bodies: readonly Body[]): void {
    let left = bodies.length
    const errors: unknown[] = []
    this.cancelled.clear()
    this.ended.clear()
    this.tasks.length = 0
    bodies.forEach((body, index) => {
      const made = this.simulation.fork(context => {
        const task = new SchedTaskWaiter(context, ({ s }) => this.futexesOn(s).context)
        return this.drive(index, { context, task }, body, error => {
          left--
          this.ended.add(index)
          if (error !== undefined) errors.push(error)
        })
      })
      this.tasks.push(made)
    })
    this.simulation.machine.run({ steps: 200_000 })
    if (errors.length > 0) throw errors[0]
    if (left > 0) throw new Error(`${left} of ${bodies.length} tasks are stuck`)
  }

  /** Throws into a task at its wait, or at its next wait. */
  cancel(index: number): void {
    if (this.ended.has(index)) return
    this.cancelled.add(index)
    killTask(this.running?.context.s ?? this.simulation.s, this.tasks[index])
  }

  private futexesOn(s: Scheduler): Futexes {
    let found = this.perCpu.get(s)
    if (found === undefined) {
      found = new Futexes(s.thread, this.layout, {
        now: () => s.now(),
        scheduler: s,
        space: this.futexes.space.handle,
      })
      this.perCpu.set(s, found)
    }
    return found
  }

  private *drive(
    index: number,
    running: Running,
    body: Body,
    ended: (error?: unknown) => void,
  ): Generator<number, number, unknown> {
    const inner = body()
    for (;;) {
      switchTo(this.runner, null)
      enterDomain(this.futexesOn(running.context.s))
      here.task = running.task
      this.running = running
      let step: IteratorResult<number, void>
      try {
        if (this.cancelled.delete(index)) {
          takePending(running.context.s.i32, running.context.task)
          step = inner.throw(new Cancelled())
        } else {
          step = inner.next()
        }
      } catch (error) {
        ended(error instanceof Cancelled ? undefined : error)
        return 0
      } finally {
        this.running = null
        switchTo(null, null)
        enterDomain(this.futexes)
      }
      if (step.done) {
        ended()
        return 0
      }
      yield step.value
    }
  }
}

/** A safepoint: other tasks may run here. */
export function* pause(): Generator<number, void, unknown> {
  yield SWITCH_PREEMPTED
}
