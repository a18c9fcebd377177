import { expect, test } from 'vitest'
import { taskAccount } from '../core/account.ts'
import { makePriority } from '../core/priority.ts'
import { setPriority } from '../core/setpriority.ts'
import { Simulation, type TaskBody } from '../../../testing/sched/simulation.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from '../core/switch.ts'
import { TaskRecord, UNINTERRUPTIBLE } from '../core/taskrecord.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

const work = (log: string[], name: string, turns: number, why = SWITCH_PREEMPTED): TaskBody =>
  function* (context) {
    for (let turn = 0; turn < turns; turn++) {
      log.push(name)
      context.cpu.charge(1)
      yield why
    }
  }

test('a FIFO task runs until it ends, however long its equals wait', () => {
  const sim = new Simulation({ cpus: 1, seed: 1, slice: 2 })
  const log: string[] = []
  for (const name of ['a', 'b', 'c']) sim.fork(work(log, name, 8), { priority: makePriority(7, 1) })
  sim.run()
  expect(log.join('')).toBe('a'.repeat(8) + 'b'.repeat(8) + 'c'.repeat(8))
})

test('round robin, on request, gives each of its equals a slice in turn', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const log: string[] = []
  for (const name of ['a', 'b', 'c']) {
    sim.fork(work(log, name, 8), { priority: makePriority(7, 1), roundRobin: true, slice: 1.5 })
  }
  sim.run()
  expect(log.join('')).toBe('aabbccaabbccaabbccaabbcc')
})

test('a task that yields goes behind its equals, and only those', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const log: string[] = []
  sim.fork(work(log, 'low', 3, SWITCH_YIELDS), { priority: makePriority(8, 0) })
  for (const name of ['a', 'b']) sim.fork(work(log, name, 3, SWITCH_YIELDS), { priority: makePriority(7, 2) })
  sim.run()
  expect(log).toEqual(['a', 'b', 'a', 'b', 'a', 'b', 'low', 'low', 'low'])
})

test('within a major level the lower minor goes first', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const log: string[] = []
  for (const minor of [3, 1, 2, 0]) sim.fork(work(log, `${minor}`, 2), { priority: makePriority(7, minor) })
  sim.run()
  expect(log.join('')).toBe('00112233')
})

test('a preempted task goes on before its equals, as it has not had its turn', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const log: string[] = []
  sim.fork(
    function* (context) {
      yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 2.5)
      log.push('high')
    },
    { priority: makePriority(3, 0) },
  )
  for (const name of ['a', 'b']) sim.fork(work(log, name, 5), { priority: makePriority(7, 1) })
  sim.run()
  expect(log.join(' ')).toBe('a a a high a a b b b b b')
})

test('round robin: preemption does not renew a slice, so a task that is preempted again and again still yields', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const log: string[] = []
  sim.fork(
    function* (context) {
      for (let turn = 0; turn < 8; turn++) yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 1.5)
    },
    { priority: makePriority(3, 0) },
  )
  for (const name of ['a', 'b']) {
    sim.fork(work(log, name, 8), { priority: makePriority(7, 1), roundRobin: true, slice: 3.5 })
  }
  sim.run()
  expect(log.join('')).toBe('aaaabbbbaaaabbbb')
})

test('a raised priority takes effect at once, while queued and while running', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const log: string[] = []
  const queued = sim.fork(work(log, 'q', 2), { priority: makePriority(20, 0) })
  sim.fork(
    function* (context) {
      log.push('1')
      yield SWITCH_PREEMPTED
      setPriority(context.s, queued, makePriority(5, 0))
      yield SWITCH_PREEMPTED
      log.push('2')
    },
    { priority: makePriority(10, 0) },
  )
  sim.fork(
    function* (context) {
      log.push('x')
      setPriority(context.s, context.task, makePriority(30, 0))
      yield SWITCH_PREEMPTED
      log.push('y')
    },
    { priority: makePriority(2, 0) },
  )
  sim.fork(work(log, 'm', 1), { priority: makePriority(25, 0) })
  sim.run()
  expect(log.join(' ')).toBe('x 1 q q 2 m y')
})

test('a task changes class while it runs, queues and sleeps, and the sums stay right', () => {
  const sim = new Simulation({ cpus: 2, seed: 3, slice: 0.5 })
  const tasks: number[] = []
  let done = 0
  for (let i = 0; i < 12; i++) {
    tasks.push(
      sim.fork(function* (context) {
        for (let k = 0; k < 60; k++) {
          context.cpu.charge(0.1)
          yield SWITCH_PREEMPTED
          const other = tasks[(i * 5 + k) % 12]
          if (sim.s.tasks.isAllocated(sim.s.i32, other) && k < 50 && done === 0) {
            setPriority(
              context.s,
              other,
              k % 2 === 0 ? makePriority(32, 0) : makePriority(1 + (k % 62), k & 3),
            )
          }
          if (k % 7 === 0) yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 0.3)
        }
        done++
      }),
    )
  }
  expect(sim.runChecked(100_000, 3)).toBe('idle')
  expect(done).toBe(12)
})

test('accounting adds up: what tasks ran is what their CPU was busy', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const accounts: { run: number; turns: number }[] = []
  for (let i = 0; i < 4; i++) {
    sim.fork(
      function* (context) {
        for (let k = 0; k < 10; k++) {
          context.cpu.charge(1)
          yield SWITCH_YIELDS
        }
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 5)
        const { runTime, switches, wakeups } = taskAccount(
          context.s.i32,
          context.s.i32[context.task + TaskRecord.entity],
        )
        accounts.push({ run: runTime, turns: switches })
        expect(wakeups).toBeGreaterThanOrEqual(1)
      },
      { priority: makePriority(9, 0) },
    )
  }
  sim.run()
  expect(accounts).toHaveLength(4)
  for (const { run, turns } of accounts) {
    expect(run).toBeGreaterThan(10)
    expect(run).toBeLessThan(10.2)
    expect(turns).toBeGreaterThanOrEqual(10)
  }
})
