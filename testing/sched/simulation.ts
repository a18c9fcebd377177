import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { reserveMachine } from '../../src/machine/core/cpurecord.ts'
import type { Cpu, CpuProgram } from '../../src/machine/core/machine.ts'
import {
  type RunEnd,
  type RunLimits,
  SimulatedMachine,
} from '../../src/machine/simulated/simulatedmachine.ts'
import { CONTINUES, cpuLoop } from '../../src/sched/core/cpuloop.ts'
import { exitTask } from '../../src/sched/core/exit.ts'
import { enablePolicy } from '../../src/sched/ext/extcpu.ts'
import { loadPolicy, takeAllTasks } from '../../src/sched/ext/extload.ts'
import { type TaskOptions } from '../../src/sched/core/fork.ts'
import { checkInvariants } from './invariants.ts'
import { checkPolicy, type PolicySource } from '../../src/sched/ext/policy.ts'
import { planScheduler, Scheduler, type SchedulerPlan } from '../../src/sched/core/scheduler.ts'
import type { TaskContext } from '../../src/sched/core/sleep.ts'
import { SWITCH_EXITS, SWITCH_PREEMPTED } from '../../src/sched/core/switch.ts'
import { TaskRecord } from '../../src/sched/core/taskrecord.ts'
import { forkTask } from './tasks.ts'

/**
 * The scheduler on simulated CPUs, with plain generators as task bodies. A body yields SWITCH_PREEMPTED at
 * each safepoint (it gives up the CPU there only if `needResched` is set), SWITCH_YIELDS to yield to its
 * equals, SWITCH_SLEEPS when it sleeps (sleep.ts), and ends when it returns its exit code. Bodies live in one
 * heap, so tasks migrate freely.
 */
export interface SimulatedContext extends TaskContext {
  cpu: Cpu
}

export type TaskBody = (context: SimulatedContext) => Generator<number, number | void, unknown>

export interface SimulationOptions {
  readonly cpus: number
  readonly seed: number
  readonly tasks?: number
  /** Events in each ring; none by default. */
  readonly events?: number
  readonly slice?: number
  readonly skew?: number
  readonly stepCost?: number
  /** Check lock order. On by default. */
  readonly debug?: boolean
  /** Start the CPUs immediately. */
  readonly start?: boolean
  /** Reserves what else a test needs, in the same arena. */
  readonly reserve?: (plan: ArenaPlan, scheduler: SchedulerPlan) => void
}

interface Running {
  readonly context: SimulatedContext
  readonly generator: Generator<number, number | void, unknown>
  atSafepoint: boolean
}

/** The id of the thread that tests call the kernel from: not a CPU. */
const TEST_THREAD = 64

export class Simulation {
  readonly machine: SimulatedMachine
  /** The kernel as a plain thread sees it. */
  readonly s: Scheduler
  readonly plan: SchedulerPlan
  private readonly running: (Running | undefined)[] = []
  private policy: PolicySource | null = null
  private readonly slice: number

  constructor(options: SimulationOptions) {
    const { cpus, seed, tasks = 256, slice = 10, start = true, debug = true } = options
    const plan = new ArenaPlan()
    const region = reserveMachine(plan, cpus)
    this.slice = slice
    this.plan = planScheduler(plan, { cpus, tasks, ...(options.events && { events: options.events }) })
    options.reserve?.(plan, this.plan)
    const arena = Arena.create(plan, { debug })
    const program: CpuProgram = cpu => this.program(cpu)
    this.machine = new SimulatedMachine({
      arena,
      region,
      program,
      seed,
      ...(options.skew && { skew: options.skew }),
      ...(options.stepCost && { stepCost: options.stepCost }),
    })
    this.s = new Scheduler({
      plan: this.plan,
      machine: region,
      thread: new KernelThread(arena, TEST_THREAD),
      now: () => this.machine.now(),
      kick: cpu => this.machine.kick(cpu),
      slice,
    })
    this.s.initialize()
    if (!start) return
    this.machine.startAll()
    // Until every CPU is online, and halted.
    this.machine.run()
  }

  /** Starts a task, from outside or (with `s`) from the task that runs on that CPU. */
  fork(body: TaskBody, options: TaskOptions = {}, s: Scheduler = this.s): number {
    const task = forkTask(s, options)
    const context = { s, task, cpu: this.machine.cpu(0) }
    this.running[this.s.i32[task + TaskRecord.slot]] = {
      context,
      generator: body(context),
      atSafepoint: false,
    }
    return task
  }

  /** Runs, and checks the invariants when it stops: no CPU is inside the kernel then. */
  run(limits: RunLimits = {}): RunEnd {
    const end = this.machine.run(limits)
    checkInvariants(this.s)
    return end
  }

  /** Runs with the invariants checked after every `every` steps. */
  runChecked(steps: number, every = 1): RunEnd {
    for (let left = steps; left > 0; left -= every) {
      if (this.run({ steps: every }) === 'idle') return 'idle'
    }
    return 'steps'
  }

  /**
   * Loads a policy. CPUs enable it in their next steps; with `takesAll`, every ordinary task is the policy's.
   */
  load(policy: PolicySource, takesAll = true): void {
    this.policy = policy
    loadPolicy(this.s, { name: checkPolicy(policy).name })
    if (takesAll) takeAllTasks(this.s)
  }

  private *program(cpu: Cpu): ReturnType<CpuProgram> {
    const s = Scheduler.forCpu(this.plan, cpu, this.slice)
    s.ext.fetch = () => {
      if (this.policy !== null) enablePolicy(s, this.policy)
    }
    yield* cpuLoop(cpu, s, task => this.resume(cpu, s, task))
  }

  private resume(cpu: Cpu, s: Scheduler, task: number): number {
    const slot = s.i32[task + TaskRecord.slot]
    const running = this.running[slot]
    if (running === undefined) throw new Error(`simulation: slot ${slot} has no body`)
    running.context.s = s
    running.context.cpu = cpu
    if (running.atSafepoint) {
      // It is at a safepoint, and its CPU's clock has advanced: it reads the word here.
      running.atSafepoint = false
      if (cpu.needResched) return SWITCH_PREEMPTED
    }
    const { done, value } = running.generator.next()
    if (done) {
      this.running[slot] = undefined
      exitTask(s, task, value ?? 0)
      return SWITCH_EXITS
    }
    if (value !== SWITCH_PREEMPTED || cpu.needResched) return value as number
    running.atSafepoint = true
    return CONTINUES
  }
}
