import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { unloadPolicy } from '../extload.ts'
import { Simulation, type TaskBody } from '../../../../testing/sched/simulation.ts'
import { SWITCH_PREEMPTED } from '../../core/switch.ts'
import { UNINTERRUPTIBLE } from '../../core/taskrecord.ts'
import { Watchdog } from '../../core/watchdog.ts'
import fifo from './fifo.ts'
import latency from './latency.ts'
import vtime from './vtime.ts'
import { schedulerSleep } from '../../../../testing/sched/tasks.ts'

function hog(stop: () => boolean, ran: (ms: number) => void): TaskBody {
  return function* (context) {
    while (!stop()) {
      context.cpu.charge(0.2)
      ran(0.2)
      yield SWITCH_PREEMPTED
    }
  }
}

test('each example is shorter than a hundred lines', () => {
  for (const name of ['fifo', 'vtime', 'latency']) {
    const source = readFileSync(resolve(import.meta.dirname, `${name}.ts`), 'utf8')
    expect(source.split('\n').length).toBeLessThan(100)
  }
})

test('fifo: the first task in the queue runs first, on the first CPU that is free', () => {
  const sim = new Simulation({ cpus: 2, seed: 5 })
  sim.load(fifo)
  sim.run()
  const started: number[] = []
  for (let n = 0; n < 8; n++) {
    sim.fork(function* (context) {
      started.push(n)
      context.cpu.charge(1)
      yield SWITCH_PREEMPTED
    })
  }
  expect(sim.run()).toBe('idle')
  // Two CPUs start side by side: neighbours may change places.
  started.forEach((n, at) => expect(Math.abs(n - at)).toBeLessThanOrEqual(1))
})

for (const cpus of [1, 2]) {
  test(`vtime: tasks share ${cpus} CPUs by weight`, () => {
    const sim = new Simulation({ cpus, seed: 2 })
    sim.load(vtime)
    sim.run()
    const times = [0, 0, 0, 0]
    let stop = false
    // Two of each weight, so that on two CPUs no task could get more than one CPU's worth.
    const nices = [0, 0, -5, -5]
    nices.forEach((nice, at) =>
      sim.fork(
        hog(
          () => stop,
          ms => void (times[at] += ms),
        ),
        { nice },
      ),
    )
    sim.run({ until: sim.machine.now() + 2000 })
    stop = true
    expect(sim.run()).toBe('idle')
    const light = times[0] + times[1]
    const heavy = times[2] + times[3]
    expect(heavy / light).toBeGreaterThan(2.8)
    expect(heavy / light).toBeLessThan(3.3)
    expect(times[2] / times[3]).toBeCloseTo(1, 1)
  })
}

test('vtime: a task that slept has saved nothing up', () => {
  const sim = new Simulation({ cpus: 1, seed: 2 })
  sim.load(vtime)
  sim.run()
  let stop = false
  let hogged = 0
  let woken = 0
  sim.fork(
    hog(
      () => stop,
      ms => void (hogged += ms),
    ),
  )
  sim.fork(function* (context) {
    yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 500)
    hogged = 0
    for (let turn = 0; turn < 500; turn++) {
      context.cpu.charge(0.2)
      woken += 0.2
      yield SWITCH_PREEMPTED
      if (woken > 50) break
    }
    stop = true
  })
  expect(sim.run()).toBe('idle')
  // From when it woke they share: it does not get back the 500 ms.
  expect(hogged / woken).toBeGreaterThan(0.7)
})

test('latency: critical tasks start immediately although all CPUs have others to run, and the rest continue', () => {
  const sim = new Simulation({ cpus: 3, seed: 4 })
  const watchdog = new Watchdog(sim.s, 200)
  const onCpu0 = new Set<string>()
  sim.load({
    ...latency,
    running(context, task) {
      latency.running?.(context, task)
      if (context.cpu === 0) onCpu0.add(context.name(task))
    },
  })
  sim.run()
  let stop = false
  let rest = 0
  for (let n = 0; n < 8; n++)
    sim.fork(
      hog(
        () => stop,
        ms => void (rest += ms),
      ),
      { name: 'rest' },
    )
  const late: number[] = []
  for (let n = 0; n < 3; n++) {
    sim.fork(
      function* (context) {
        for (let turn = 0; turn < 40; turn++) {
          const due = context.cpu.now() + 3
          yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 3)
          late.push(context.cpu.now() - due)
          context.cpu.charge(0.3)
          yield SWITCH_PREEMPTED
        }
        stop = true
      },
      { name: 'critical', nice: -10 },
    )
  }
  expect(sim.run()).toBe('idle')
  late.sort((a, b) => a - b)
  expect(late[Math.floor(late.length * 0.95)]).toBeLessThan(1)
  expect([...onCpu0]).toEqual(['critical'])
  expect(rest).toBeGreaterThan(100)
  expect(watchdog.look()).toEqual([])
  unloadPolicy(sim.s)
})
