import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { reserveMachine } from '../../src/machine/core/cpurecord.ts'
import { HALT } from '../../src/machine/core/machine.ts'
import { WorkerCpu } from '../../src/machine/core/workercpu.ts'
import { cpuLoop } from '../../src/sched/core/cpuloop.ts'
import { exitTask } from '../../src/sched/core/exit.ts'
import { createTask, startTask } from '../../src/sched/core/fork.ts'
import { makePriority } from '../../src/sched/core/priority.ts'
import { planScheduler, Scheduler, type SchedulerPlan } from '../../src/sched/core/scheduler.ts'
import { SWITCH_EXITS } from '../../src/sched/core/switch.ts'
import { TaskRecord } from '../../src/sched/core/taskrecord.ts'

/** The yielded value is the reason for the stop (src/sched/core/switch.ts). */
export type Body = Generator<number, void, unknown>

/** FIFO, because the figures are about the switch; the fair class has its own rows. */
export const FIFO: number = makePriority(8, 0)

/** One CPU of the scheduler in this thread: generators as tasks, the real CPU loop, the real clock. */
export class Rig {
  readonly s: Scheduler
  readonly i32: Int32Array
  readonly plan: SchedulerPlan
  private readonly bodies: (Body | undefined)[] = []
  private readonly loop: Generator<number, void, void>

  /** `reserve`: reserves what else the bench needs in the arena. */
  constructor(tasks: number, events = 0, reserve?: (plan: ArenaPlan, scheduler: SchedulerPlan) => void) {
    const plan = new ArenaPlan()
    const region = reserveMachine(plan, 1)
    const schedulerPlan = planScheduler(plan, { cpus: 1, tasks, events })
    reserve?.(plan, schedulerPlan)
    const arena = Arena.create(plan)
    this.plan = schedulerPlan
    const cpu = new WorkerCpu(arena, region, 0, () => performance.now())
    this.s = Scheduler.forCpu(schedulerPlan, cpu)
    this.s.initialize()
    this.i32 = this.s.i32
    this.loop = cpuLoop(cpu, this.s, this.resume)
    this.loop.next()
  }

  /** A task, bound to this CPU as a started JavaScript task is. */
  spawn(body: Body, priority: number = FIFO): number {
    const task = createTask(this.s, { priority, affinity: [0] })
    this.bodies[this.i32[task + TaskRecord.slot]] = body
    startTask(this.s, task)
    return task
  }

  /** Runs until no task is runnable. */
  run(): void {
    do {
      const { value } = this.loop.next()
      if (value !== HALT) continue
    } while (this.s.rcu.queued(this.i32, 0) !== 0)
  }

  private readonly resume = (task: number): number => {
    const slot = this.i32[task + TaskRecord.slot]
    const body = this.bodies[slot] as Body
    const { done, value } = body.next()
    if (!done) return value
    this.bodies[slot] = undefined
    exitTask(this.s, task, 0)
    return SWITCH_EXITS
  }
}
