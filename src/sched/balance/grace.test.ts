import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { Rcu, RcuNode } from '../../arena/sync/rcu.ts'
import { KernelThread, THREAD_MAX } from '../../arena/sync/thread.ts'
import { reserveMachine } from '../../machine/core/cpurecord.ts'
import { HALT } from '../../machine/core/machine.ts'
import { WorkerCpu } from '../../machine/core/workercpu.ts'
import { cpuLoop } from '../core/cpuloop.ts'
import { exitTask } from '../core/exit.ts'
import { createTask, startTask } from '../core/fork.ts'
import { planScheduler, Scheduler } from '../core/scheduler.ts'
import { SWITCH_EXITS, SWITCH_PREEMPTED } from '../core/switch.ts'

test('a CPU with a single task does not delay a grace period once it is asked to check in', () => {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 1)
  const schedulerPlan = planScheduler(plan, { cpus: 1, tasks: 4 })
  const node = plan.reserve('what is freed', RcuNode.words).start
  const arena = Arena.create(plan, { debug: true })
  const cpu = new WorkerCpu(arena, region, 0, () => performance.now())
  const s = Scheduler.forCpu(schedulerPlan, cpu)
  s.initialize()
  // Another thread, which frees something.
  const other = new KernelThread(arena, 64)
  const rcu = new Rcu(schedulerPlan.rcu, THREAD_MAX)
  const freed: number[] = []
  const free = rcu.register((_thread, what) => freed.push(what))
  rcu.online(other)
  rcu.idleEnter(other)
  let turns = 0
  const loop = cpuLoop(cpu, s, task => {
    turns++
    if (turns === 10) rcu.callRcu(other, node, free)
    if (turns === 20) {
      rcu.runCallbacks(other)
      expect(freed).toEqual([])
      s.resched(0)
    }
    if (turns < 30) return SWITCH_PREEMPTED
    rcu.runCallbacks(other)
    exitTask(s, task, 0)
    return SWITCH_EXITS
  })
  startTask(s, createTask(s, { affinity: [0] }))
  for (let halts = 0; halts < 3; ) if (loop.next().value === HALT) halts++
  expect(turns).toBe(30)
  expect(freed).toEqual([node])
})
