import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { CpuRecord, reserveMachine } from '../../machine/core/cpurecord.ts'
import { type CpuRequest, HALT, TURN } from '../../machine/core/machine.ts'
import { WorkerCpu } from '../../machine/core/workercpu.ts'
import { cpuLoop } from './cpuloop.ts'
import { Entity } from './entity.ts'
import { createTask, startTask } from './fork.ts'
import { makePriority } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import { planScheduler, Scheduler } from './scheduler.ts'
import { beginSleep } from './sleep.ts'
import { SWITCH_PREEMPTED, SWITCH_SLEEPS } from './switch.ts'
import { INTERRUPTIBLE, isSleeping, TaskRecord } from './taskrecord.ts'

/** A CPU with these tasks; `run` is the body of each turn. */
function boot(
  tasks: number,
  run: (s: Scheduler, task: number) => number,
): { s: Scheduler; cpu: WorkerCpu; loop: Generator<CpuRequest, void, void>; made: number[] } {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 1)
  const schedulerPlan = planScheduler(plan, { cpus: 1, tasks })
  const arena = Arena.create(plan, { debug: true })
  const cpu = new WorkerCpu(arena, region, 0, () => performance.now())
  const s = Scheduler.forCpu(schedulerPlan, cpu)
  s.initialize()
  const loop = cpuLoop(cpu, s, task => run(s, task))
  const made = Array.from({ length: tasks }, () => {
    const task = createTask(s, { priority: makePriority(8, 0), affinity: [0] })
    startTask(s, task)
    return task
  })
  return { s, cpu, loop, made }
}

/** What must run after the switch away from a task that sleeps, and what asks for it. */
const asks: readonly [string, (s: Scheduler, cpu: WorkerCpu, ran: () => void) => void][] = [
  ['a turn of the event loop', (s, cpu) => Atomics.add(s.i32, cpu.record + CpuRecord.mail, 1)],
  ['the end of a rescue', (s, _cpu, ran) => (s.finishRescue = ran)],
  [
    'the packing of tasks',
    (s, _cpu, ran) => {
      s.packAsked = ran
      Atomics.store(s.i32, s.queue + RunQueue.moveAsked, 1)
    },
  ],
]

test.each(asks)('%s comes after the switch away from a task that sleeps', (_, ask) => {
  let happened = 0
  const check = (s: Scheduler): void => {
    happened++
    const current = s.i32[s.queue + RunQueue.current]
    const task = s.i32[current + Entity.task]
    if (task !== 0) expect(isSleeping(s.i32[task + TaskRecord.state])).toBe(false)
  }
  const { s, cpu, loop, made } = boot(2, (own, task) => {
    if (happened === 0 && task !== made[0]) return SWITCH_PREEMPTED
    if (happened === 0) {
      ask(own, cpu, () => check(own))
      own.resched(0)
    }
    beginSleep(own, task, INTERRUPTIBLE)
    return SWITCH_SLEEPS
  })
  // The other task runs until it has happened.
  for (let value: unknown; value !== HALT; ) {
    ;({ value } = loop.next())
    if (value !== TURN) continue
    check(s)
    Atomics.store(s.i32, cpu.record + CpuRecord.mail, 0)
  }
  expect(happened).toBe(1)
})
