import { describe, expect, test } from 'vitest'
import { beginExit, waitChild } from './exit.ts'
import { makePriority } from './priority.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { schedulerSleep, signalTask } from './sleep.ts'
import { SWITCH_PREEMPTED } from './switch.ts'
import { INTERRUPTIBLE, SLEEP_SIGNALLED, TaskRecord, TIMER, ZOMBIE } from './taskrecord.ts'

describe.each([1, 2, 3, 4])('with seed %i', seed => {
  test('a parent reaps each of its children once, with its exit code', () => {
    const sim = new Simulation({ cpus: 3, seed })
    const codes: number[] = []
    let last: unknown = 'not yet'
    sim.fork(function* (context) {
      for (let i = 0; i < 8; i++) {
        sim.fork(
          function* (child) {
            if (i % 2 === 0) yield* schedulerSleep(child, 0, TIMER, i)
            else for (let k = 0; k < i * 5; k++) yield SWITCH_PREEMPTED
            return 100 + i
          },
          { parent: context.task },
          context.s,
        )
      }
      for (let i = 0; i < 8; i++) {
        const ended = yield* waitChild(context)
        if (ended !== undefined && 'exitCode' in ended) codes.push(ended.exitCode)
      }
      last = yield* waitChild(context)
    })
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    expect(codes.toSorted((a, b) => a - b)).toEqual([100, 101, 102, 103, 104, 105, 106, 107])
    expect(last).toBe(undefined)
    expect(sim.s.tasks.count(sim.s.i32)).toBe(3)
    expect(sim.s.entities.count(sim.s.i32)).toBe(3)
  })

  test('a child that has ended stays a zombie until its parent looks', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const child = { task: 0 }
    let code: unknown
    sim.fork(function* (context) {
      child.task = sim.fork(
        function* () {
          yield SWITCH_PREEMPTED
          return 9
        },
        { parent: context.task },
        context.s,
      )
      yield* schedulerSleep(context, 0, TIMER, 10)
      code = yield* waitChild(context)
    })
    sim.run({ until: 5 })
    expect(sim.s.i32[child.task + TaskRecord.state]).toBe(ZOMBIE)
    sim.run({ steps: 1000 })
    expect(code).toMatchObject({ exitCode: 9 })
    expect(sim.s.tasks.count(sim.s.i32)).toBe(2)
  })

  test('the children of a task that ends are reaped all the same', () => {
    const sim = new Simulation({ cpus: 2, seed })
    sim.fork(function* (context) {
      for (let i = 0; i < 4; i++) {
        sim.fork(
          function* (child) {
            yield* schedulerSleep(child, 0, TIMER, i * 2)
          },
          { parent: context.task },
          context.s,
        )
      }
      yield* schedulerSleep(context, 0, TIMER, 3)
    })
    expect(sim.run({ steps: 10_000 })).toBe('idle')
    expect(sim.s.tasks.count(sim.s.i32)).toBe(2)
  })

  test('a task that has begun to end goes before all others', () => {
    const sim = new Simulation({ cpus: 1, seed })
    const log: string[] = []
    const low = sim.fork(
      function* () {
        for (let i = 0; i < 3; i++) {
          log.push('ending')
          yield SWITCH_PREEMPTED
        }
      },
      { priority: makePriority(60, 3) },
    )
    sim.fork(
      function* (context) {
        log.push('high')
        beginExit(context.s, low)
        yield SWITCH_PREEMPTED
        log.push('high')
      },
      { priority: makePriority(1, 0) },
    )
    sim.run()
    expect(log).toEqual(['high', 'ending', 'ending', 'ending', 'high'])
  })

  test('a signal interrupts a parent that waits', () => {
    const sim = new Simulation({ cpus: 1, seed })
    let result: unknown
    const parent = sim.fork(function* (context) {
      sim.fork(
        function* (child) {
          yield* schedulerSleep(child, 0, INTERRUPTIBLE)
        },
        { parent: context.task },
        context.s,
      )
      result = yield* waitChild(context)
    })
    sim.run()
    signalTask(sim.s, parent)
    sim.run()
    expect(result).toEqual({ interrupted: SLEEP_SIGNALLED })
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
