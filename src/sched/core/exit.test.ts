import { describe, expect, test } from 'vitest'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'
import { beginSleep, killTask } from './sleep.ts'
import { SWITCH_PREEMPTED, SWITCH_SLEEPS } from './switch.ts'
import { INTERRUPTIBLE, RUNNING, TaskRecord, UNINTERRUPTIBLE } from './taskrecord.ts'

describe.each([1, 2, 3, 4])('with seed %i', seed => {
  test('a task that ends is reaped by the CPU that ran it', () => {
    const sim = new Simulation({ cpus: 3, seed })
    for (let i = 0; i < 8; i++) {
      sim.fork(function* (context) {
        if (i % 2 === 0) yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, i)
        else for (let k = 0; k < i * 5; k++) yield SWITCH_PREEMPTED
        return 100 + i
      })
    }
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    expect(sim.s.tasks.count(sim.s.i32)).toBe(3)
  })

  test('a task that ends where it slept leaves no timer', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const task = sim.fork(function* (context) {
      if (beginSleep(context.s, context.task, INTERRUPTIBLE, 1_000_000)) yield SWITCH_SLEEPS
    })
    const timers = (): number => sim.s.timers.reduce((sum, { count }) => sum + count, 0)
    while (timers() === 0) sim.run({ steps: 1 })
    killTask(sim.s, task)
    // Not further: with nothing else to do, time passes until the timer is due.
    while (
      sim.s.i32[task + TaskRecord.state] === INTERRUPTIBLE ||
      sim.s.i32[task + TaskRecord.state] === RUNNING
    )
      sim.run({ steps: 1 })
    expect(timers()).toBe(0)
  })

  test('slots are used again, and a handle to the old task is stale', () => {
    const sim = new Simulation({ cpus: 1, seed, tasks: 2 })
    const handles: number[] = []
    for (let i = 0; i < 20; i++) {
      const task = sim.fork(function* () {
        yield SWITCH_PREEMPTED
      })
      handles.push(sim.s.tasks.handleOf(sim.s.i32, task))
      sim.run({ steps: 200 })
    }
    expect(new Set(handles).size).toBe(20)
    for (const handle of handles) expect(sim.s.tasks.resolve(sim.s.i32, handle)).toBe(0)
  })
})
