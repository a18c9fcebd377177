import { ArenaPlan, type Region } from '../../src/arena/memory/arena.ts'
import { reserveMachine } from '../../src/machine/core/cpurecord.ts'
import type { Cpu, CpuRequest } from '../../src/machine/core/machine.ts'
import { cpuLoop } from '../../src/sched/core/cpuloop.ts'
import { exitTask } from '../../src/sched/core/exit.ts'
import { planScheduler, Scheduler, type SchedulerPlan } from '../../src/sched/core/scheduler.ts'
import { beginSleep } from '../../src/sched/core/sleep.ts'
import { SWITCH_EXITS, SWITCH_SLEEPS } from '../../src/sched/core/switch.ts'
import { INTERRUPTIBLE } from '../../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'

/**
 * Two tasks, one on each of two CPUs, wake each other in turn. Word 0: turns left; 1 and 2: the tasks; 3:
 * done.
 */
export interface CrossPlan {
  readonly scheduler: SchedulerPlan
  readonly machine: Region
  readonly words: Region
}

export function planCross(plan: ArenaPlan): CrossPlan {
  const machine = reserveMachine(plan, 2)
  return { machine, scheduler: planScheduler(plan, { cpus: 2, tasks: 64 }), words: plan.reserve('cross', 16) }
}

export default function* cross(cpu: Cpu): Generator<CpuRequest, void, void> {
  const plan = planCross(new ArenaPlan())
  const s = Scheduler.forCpu(plan.scheduler, cpu)
  const { i32 } = s
  const at = plan.words.start
  yield* cpuLoop(cpu, s, task => {
    const other = i32[at + 1] === task ? i32[at + 2] : i32[at + 1]
    if (Atomics.sub(i32, at, 1) <= 0) {
      exitTask(s, task, 0)
      wakeupTask(s, other)
      Atomics.add(i32, at + 3, 1)
      Atomics.notify(i32, at + 3)
      return SWITCH_EXITS
    }
    // The task is asleep first and then wakes the other one, which may wake it immediately.
    beginSleep(s, task, INTERRUPTIBLE)
    wakeupTask(s, other)
    return SWITCH_SLEEPS
  })
}
