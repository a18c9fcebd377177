import { describe, expect, test } from 'vitest'
import { Entity } from './entity.ts'
import { makePriority } from './priority.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { schedulerContinue, schedulerStop } from './stop.ts'
import { SWITCH_PREEMPTED } from './switch.ts'
import { INTERRUPTIBLE, RUNNING, TaskRecord } from './taskrecord.ts'
import { wakeupTask } from './wakeup.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

const hog = (counter: { count: number }) =>
  function* (context: { cpu: { charge(ms: number): void } }): Generator<number, void, unknown> {
    for (;;) {
      counter.count++
      context.cpu.charge(0.1)
      yield SWITCH_PREEMPTED
    }
  }

describe.each([1, 2, 3])('with seed %i', seed => {
  test('a stopped task leaves its CPU at the next safepoint and runs no more until it is continued', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const counter = { count: 0 }
    const task = sim.fork(hog(counter))
    sim.run({ until: 5 })
    expect(schedulerStop(sim.s, task)).toBe(true)
    expect(schedulerStop(sim.s, task)).toBe(false)
    sim.run({ steps: 10 })
    const before = counter.count
    expect(sim.run({ steps: 1000 })).toBe('idle')
    expect(counter.count).toBe(before)
    expect(sim.s.i32[task + TaskRecord.state]).toBe(RUNNING)
    expect(schedulerContinue(sim.s, task)).toBe(true)
    expect(schedulerContinue(sim.s, task)).toBe(false)
    sim.run({ steps: 100 })
    expect(counter.count).toBeGreaterThan(before)
  })

  test('a stopped task that waits on a queue is removed immediately', () => {
    const sim = new Simulation({ cpus: 1, seed })
    const high = { count: 0 }
    const low = { count: 0 }
    sim.fork(hog(high), { priority: makePriority(3, 0) })
    const task = sim.fork(hog(low), { priority: makePriority(9, 0) })
    sim.run({ steps: 20 })
    const se = sim.s.i32[task + TaskRecord.entity]
    expect(sim.s.i32[se + Entity.onRq]).toBe(1)
    schedulerStop(sim.s, task)
    expect(sim.s.i32[se + Entity.onRq]).toBe(0)
    sim.run({ steps: 20 })
    schedulerContinue(sim.s, task)
    expect(sim.s.i32[se + Entity.onRq]).toBe(1)
    expect(low.count).toBe(0)
  })

  test('a stopped sleeper is woken, but runs only when it is continued; continued first, it sleeps on', () => {
    const sim = new Simulation({ cpus: 1, seed })
    const log: string[] = []
    const sleeper = (name: string): number =>
      sim.fork(function* (context) {
        yield* schedulerSleep(context, 0, INTERRUPTIBLE)
        log.push(name)
      })
    const [a, b] = [sleeper('a'), sleeper('b')]
    sim.run()
    schedulerStop(sim.s, a)
    schedulerStop(sim.s, b)
    expect(wakeupTask(sim.s, a)).toBe(true)
    schedulerContinue(sim.s, b)
    sim.run()
    expect(log).toEqual([])
    schedulerContinue(sim.s, a)
    sim.run()
    expect(log).toEqual(['a'])
    wakeupTask(sim.s, b)
    sim.run()
    expect(log).toEqual(['a', 'b'])
  })

  test('a task that stops itself goes on where it stopped', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const log: string[] = []
    const task = sim.fork(function* (context) {
      log.push('before')
      schedulerStop(context.s, context.task)
      yield SWITCH_PREEMPTED
      log.push('after')
    })
    expect(sim.run()).toBe('idle')
    expect(log).toEqual(['before'])
    schedulerContinue(sim.s, task)
    sim.run()
    expect(log).toEqual(['before', 'after'])
  })
})
