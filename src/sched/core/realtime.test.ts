import { describe, expect, test } from 'vitest'
import { Entity } from './entity.ts'
import { makePriority } from './priority.ts'
import { RunQueue } from './runqueue.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { sleepOnChannel, wakeupOnChannel } from './sleep.ts'
import { SWITCH_PREEMPTED } from './switch.ts'
import { INTERRUPTIBLE, RUNNING, TaskRecord, UNINTERRUPTIBLE } from './taskrecord.ts'
import { wakeupTask } from './wakeup.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

const seeds = [1, 2, 3, 4, 5, 6, 7, 8]

describe.each(seeds)('with seed %i', seed => {
  test('football: the low tasks never move the ball while the middle ones hold every CPU', () => {
    const cpus = 4
    const sim = new Simulation({ cpus, seed })
    let ball = 0
    const game = { over: false }
    const players = (count: number, major: number, body: () => void): void => {
      for (let i = 0; i < count; i++) {
        sim.fork(
          function* (context) {
            while (!game.over) {
              body()
              context.cpu.charge(0.01)
              yield SWITCH_PREEMPTED
            }
          },
          { priority: makePriority(major, 0) },
        )
      }
    }
    // The referee starts the game once the defence stands: it outranks everyone.
    sim.fork(
      function* (context) {
        players(cpus, 20, () => undefined)
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 5)
        players(cpus, 30, () => ball++)
        for (let minute = 0; minute < 20; minute++) {
          yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 5)
          expect(ball).toBe(0)
        }
        game.over = true
      },
      { priority: makePriority(5, 0) },
    )
    // High: they come and go all the time, and must not open a gap for the low ones.
    for (let i = 0; i < cpus; i++) {
      sim.fork(
        function* (context) {
          while (!game.over) {
            context.cpu.charge(0.02)
            yield SWITCH_PREEMPTED
            yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 0.3)
          }
        },
        { priority: makePriority(10, 0) },
      )
    }
    expect(sim.run({ steps: 400_000 })).toBe('idle')
    expect(game.over).toBe(true)
  })

  test('prio-preempt: of 26 tasks each wakes the next higher, which runs before the waker goes on', () => {
    const sim = new Simulation({ cpus: 1, seed })
    const order: string[] = []
    const tasks: number[] = []
    const count = 26
    for (let i = 0; i < count; i++) {
      tasks.push(
        sim.fork(
          function* (context) {
            yield* schedulerSleep(context, 0, INTERRUPTIBLE)
            order.push(`${i} runs`)
            if (i + 1 < count) {
              wakeupTask(context.s, tasks[i + 1])
              yield SWITCH_PREEMPTED
            }
            order.push(`${i} goes on`)
          },
          { priority: makePriority(30 - i, 0) },
        ),
      )
    }
    sim.run()
    wakeupTask(sim.s, tasks[0])
    sim.run()
    const up = Array.from({ length: count }, (_, i) => `${i} runs`)
    const down = Array.from({ length: count }, (_, i) => `${count - 1 - i} goes on`)
    expect(order).toEqual([...up, ...down])
  })

  test('prio-wake: a channel wakes its sleepers in order of priority', () => {
    const sim = new Simulation({ cpus: 1, seed })
    const channel = 4242
    const order: number[] = []
    const majors = [7, 25, 3, 60, 12, 1, 31, 44, 18, 2]
    for (const major of majors) {
      sim.fork(
        function* (context) {
          yield* sleepOnChannel(context, channel, INTERRUPTIBLE)
          order.push(major)
        },
        { priority: makePriority(major, seed & 3) },
      )
    }
    sim.run()
    expect(wakeupOnChannel(sim.s, channel)).toBe(majors.length)
    sim.run()
    expect(order).toEqual(majors.toSorted((a, b) => a - b))
    // And one at a time.
    const woken: number[] = []
    for (const major of majors) {
      sim.fork(
        function* (context) {
          yield* sleepOnChannel(context, channel, INTERRUPTIBLE)
          woken.push(major)
        },
        { priority: makePriority(major, 0) },
      )
    }
    sim.run()
    for (const _ of majors) {
      expect(wakeupOnChannel(sim.s, channel, 1)).toBe(1)
      sim.run()
    }
    expect(woken).toEqual(majors.toSorted((a, b) => a - b))
    expect(wakeupOnChannel(sim.s, channel)).toBe(0)
  })

  test('rt-migrate: the N highest of N + 1 tasks hold the N CPUs', () => {
    const cpus = 3
    const sim = new Simulation({ cpus, seed })
    const { s } = sim
    const game = { over: false }
    let naps = 0
    const tasks = Array.from({ length: cpus + 1 }, (_, i) =>
      sim.fork(
        function* (context) {
          while (!game.over) {
            for (let k = 0; k < 50 && !game.over; k++) {
              context.cpu.charge(0.01)
              yield SWITCH_PREEMPTED
            }
            // The higher ones sleep now and then, so that the lowest gets its turn and has to leave again.
            if (i < cpus) {
              naps++
              yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 0.2)
            }
          }
        },
        { priority: makePriority(10 + i, 0) },
      ),
    )
    let looks = 0
    let holds = 0
    let wrong = 0
    for (let look = 0; look < 6000; look++) {
      sim.run({ steps: 1 })
      const ready = tasks.filter(task => s.i32[task + TaskRecord.state] === RUNNING)
      const running = tasks.filter(task => s.i32[s.i32[task + TaskRecord.entity] + Entity.onCpu] === 1)
      looks++
      const expected = ready.slice(0, cpus)
      const right = expected.length === running.length && expected.every((task, i) => task === running[i])
      if (right) {
        holds++
        wrong = 0
      } else {
        // A wakeup takes a few steps to reach its CPU; it never takes long.
        wrong++
        expect(wrong, `seed ${seed}: the wrong tasks hold the CPUs`).toBeLessThan(30)
      }
    }
    expect(holds / looks).toBeGreaterThan(0.8)
    expect(naps).toBeGreaterThan(20)
    game.over = true
    sim.run({ steps: 100_000 })
    for (let cpu = 0; cpu < cpus; cpu++) expect(s.i32[s.queueOf(cpu) + RunQueue.load]).toBe(0)
  })
})
