import { expect, test } from 'vitest'
import { KernelThread } from '../../arena/sync/thread.ts'
import { makePriority } from './priority.ts'
import { Scheduler } from './scheduler.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { SWITCH_PREEMPTED } from './switch.ts'
import { Watchdog } from './watchdog.ts'

test('a task that no CPU runs for the set time is reported by name', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const watchdog = new Watchdog(sim.s, 50)
  sim.fork(
    function* (context) {
      for (let i = 0; i < 1000; i++) {
        context.cpu.charge(0.1)
        yield SWITCH_PREEMPTED
      }
    },
    { name: 'the hog', priority: makePriority(2, 0) },
  )
  const starved = sim.fork(
    function* () {
      yield SWITCH_PREEMPTED
    },
    { name: 'the meek', priority: makePriority(9, 0) },
  )
  sim.run({ until: 20 })
  expect(watchdog.look()).toEqual([])
  sim.run({ until: 80 })
  expect(watchdog.look()).toMatchObject([{ kind: 'starved', name: 'the meek', task: starved, cpu: 0 }])
  sim.run()
  expect(watchdog.look()).toEqual([])
})

test('a CPU that does not answer is reported with what it runs', () => {
  const sim = new Simulation({ cpus: 2, seed: 1 })
  // The watchdog's clock is the one of the CPU that is well.
  const { plan, machine } = sim
  const s = new Scheduler({
    plan,
    machine: machine.region,
    thread: new KernelThread(machine.arena, 65),
    now: () => machine.cpu(1).now(),
  })
  const watchdog = new Watchdog(s, 100)
  // A native call: one turn that lasts, while the other CPU goes on.
  sim.fork(
    function* (context) {
      context.cpu.charge(1000)
      yield SWITCH_PREEMPTED
    },
    { name: 'endless regex', affinity: [0] },
  )
  sim.fork(
    function* (context) {
      for (let i = 0; i < 8000; i++) {
        context.cpu.charge(0.1)
        yield SWITCH_PREEMPTED
      }
    },
    { affinity: [1] },
  )
  const reports: { kind: string; name: string; cpu: number }[] = []
  for (let at = 50; at < 500; at += 50) {
    sim.run({ until: at })
    reports.push(...watchdog.look())
  }
  expect(reports.length).toBeGreaterThan(0)
  expect(new Set(reports.map(({ kind, name, cpu }) => `${kind} ${name} ${cpu}`))).toEqual(
    new Set(['stuck endless regex 0']),
  )
})

test('idle CPUs and busy ones that answer are left alone', () => {
  const sim = new Simulation({ cpus: 2, seed: 1 })
  const watchdog = new Watchdog(sim.s, 10)
  sim.fork(function* (context) {
    for (let i = 0; i < 2000; i++) {
      context.cpu.charge(0.1)
      yield SWITCH_PREEMPTED
    }
  })
  for (let at = 5; at < 200; at += 5) {
    sim.run({ until: at })
    expect(watchdog.look()).toEqual([])
  }
})

test('a call looks at some of many tasks, and several calls at all of them', () => {
  const sim = new Simulation({ cpus: 1, seed: 1, tasks: 20_000 })
  const watchdog = new Watchdog(sim.s, 50)
  sim.fork(
    function* (context) {
      for (let i = 0; i < 1000; i++) {
        context.cpu.charge(0.1)
        yield SWITCH_PREEMPTED
      }
    },
    { name: 'the hog', priority: makePriority(2, 0) },
  )
  const forked = new Set<number>()
  for (let count = 0; count < 19_000; count++) {
    const task = sim.fork(
      function* () {
        yield SWITCH_PREEMPTED
      },
      { priority: makePriority(9, 0) },
    )
    forked.add(task)
  }
  sim.run({ until: 80 })
  const calls = [watchdog.look(), watchdog.look(), watchdog.look()]
  for (const reports of calls) expect(reports.length).toBeLessThan(10_000)
  for (const reports of calls) for (const report of reports) forked.delete(report.task)
  expect(forked.size).toBe(0)
})
