import { Futexes } from '../../src/futex/core/futexes.ts'
import { SchedTaskWaiter } from '../../src/futex/core/schedtaskwaiter.ts'
import type { Cpu, CpuRequest } from '../../src/machine/core/machine.ts'
import { cpuLoop } from '../../src/sched/core/cpuloop.ts'
import { exitTask } from '../../src/sched/core/exit.ts'
import { Scheduler } from '../../src/sched/core/scheduler.ts'
import { SWITCH_EXITS } from '../../src/sched/core/switch.ts'
import { TaskRecord } from '../../src/sched/core/taskrecord.ts'
import { account, mutexAt, type Place, planDeaths } from './robust-death-worker.ts'

/** A CPU whose tasks each wait for one lock: the one in the table for their slot. */
export default function* program(cpu: Cpu, data: unknown): Generator<CpuRequest, void, void> {
  const { space, buffer, handles } = data as Place
  const { scheduler: plan, layout, table } = planDeaths()
  const s = Scheduler.forCpu(plan, cpu)
  const fx = new Futexes(cpu.thread, layout, { now: s.now, space, scheduler: s })
  const mapped = fx.space.adopt(buffer, handles)
  const bodies: (Generator<number, void, unknown> | undefined)[] = []

  function* body(task: number): Generator<number, void, unknown> {
    const parking = new SchedTaskWaiter({ s, task }, () => fx.context)
    const lock = s.i32[table + s.i32[task + TaskRecord.slot]]
    const mutex = mutexAt(fx, mapped, lock)
    const result = yield* mutex.lockTask(parking)
    account(mapped.i32, mutex, lock, result, parking.owner)
  }

  yield* cpuLoop(cpu, s, task => {
    const slot = s.i32[task + TaskRecord.slot]
    bodies[slot] ??= body(task)
    const { done, value } = bodies[slot].next()
    if (!done) return value
    bodies[slot] = undefined
    exitTask(s, task, 0)
    return SWITCH_EXITS
  })
}
