import { describe, expect, test } from 'vitest'
import { taskAccount } from '../core/account.ts'
import { makePriority, weightOfNice } from '../core/priority.ts'
import { setNice } from '../core/setpriority.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { SWITCH_PREEMPTED } from '../core/switch.ts'
import { TaskRecord, UNINTERRUPTIBLE } from '../core/taskrecord.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

function* hog(context: { cpu: { charge(ms: number): void } }): Generator<number, void, unknown> {
  for (;;) {
    context.cpu.charge(0.1)
    yield SWITCH_PREEMPTED
  }
}

function runTime(sim: Simulation, task: number): number {
  return taskAccount(sim.s.i32, sim.s.i32[task + TaskRecord.entity]).runTime
}

test('each step of nice is a quarter more weight', () => {
  expect(weightOfNice(0)).toBe(1024)
  for (let nice = -20; nice < 19; nice++) {
    // Rounded to integers, the lightest are off by a little.
    expect(Math.abs(weightOfNice(nice) / weightOfNice(nice + 1) - 1.25)).toBeLessThan(0.06)
  }
})

describe.each([1, 2, 3, 4, 5])('with seed %i', seed => {
  test('weights 1 : 2 : 4 get CPU time within 5 %', () => {
    const sim = new Simulation({ cpus: 1, seed, slice: 3 })
    // 1.25^3 is 1.95 and 1.25^6 is 3.81: what they get must match their weights, whatever those are.
    const nices = [3, 0, -3]
    const tasks = nices.map(nice => sim.fork(hog, { nice }))
    sim.run({ until: 3000 })
    const total = nices.reduce((sum, nice) => sum + weightOfNice(nice), 0)
    tasks.forEach((task, i) => {
      const share = runTime(sim, task) / sim.machine.now()
      const fair = weightOfNice(nices[i]) / total
      expect(Math.abs(share - fair) / fair, `nice ${nices[i]}`).toBeLessThan(0.05)
    })
  })

  test('many equal tasks get equal time', () => {
    const sim = new Simulation({ cpus: 1, seed, slice: 3 })
    const tasks = Array.from({ length: 20 }, () => sim.fork(hog))
    sim.run({ until: 4000 })
    for (const task of tasks) expect(Math.abs(runTime(sim, task) / 200 - 1)).toBeLessThan(0.05)
  })

  test('a sleeper among hogs runs soon after each wakeup, and gets what it asks for', () => {
    const sim = new Simulation({ cpus: 1, seed, slice: 3 })
    for (let i = 0; i < 5; i++) sim.fork(hog)
    const delays: number[] = []
    sim.fork(function* (context) {
      for (let i = 0; i < 50; i++) {
        const due = context.cpu.now() + 20
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 20)
        delays.push(context.cpu.now() - due)
        context.cpu.charge(0.5)
        yield SWITCH_PREEMPTED
      }
    })
    sim.run({ until: 3000 })
    expect(delays).toHaveLength(50)
    // It sleeps most of the time, so it is owed: it never waits for a round of the others' slices.
    expect(Math.max(...delays)).toBeLessThan(5 * 3)
    expect(delays.toSorted((a, b) => a - b)[25]).toBeLessThan(3.2)
  })

  test('short tasks that come new among hogs do not wait for their slices', () => {
    const sim = new Simulation({ cpus: 1, seed, slice: 10 })
    const hogs = Array.from({ length: 8 }, () => sim.fork(hog))
    sim.run({ until: 200 })
    const delays: number[] = []
    sim.fork(function* (context) {
      for (let i = 0; i < 50; i++) {
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 37)
        const made = context.cpu.now()
        sim.fork(function* ({ cpu }) {
          delays.push(cpu.now() - made)
          cpu.charge(0.5)
          yield SWITCH_PREEMPTED
        })
      }
    })
    const before = hogs.map(task => runTime(sim, task))
    sim.run({ until: 2200 })
    expect(delays.length).toBe(50)
    expect(delays.toSorted((a, b) => a - b)[25]).toBeLessThan(1)
    expect(Math.max(...delays)).toBeLessThan(10)
    // They cost the hogs what they used, all of them alike.
    hogs.forEach((task, i) => expect(runTime(sim, task) - before[i]).toBeGreaterThan(0.9 * ((2000 - 25) / 8)))
  })

  test('a hog that slept does not make up for it at the cost of the others', () => {
    const sim = new Simulation({ cpus: 1, seed, slice: 3 })
    const others = [sim.fork(hog), sim.fork(hog)]
    const lazy = sim.fork(function* (context) {
      yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 1000)
      yield* hog(context)
    })
    sim.run({ until: 1000 })
    const before = others.map(task => runTime(sim, task))
    sim.run({ until: 2200 })
    expect(runTime(sim, lazy)).toBeLessThan(1.05 * 400)
    expect(runTime(sim, lazy)).toBeGreaterThan(0.95 * 400)
    others.forEach((task, i) => expect(runTime(sim, task) - before[i]).toBeGreaterThan(0.95 * 400))
  })

  test('a changed nice changes the share from then on', () => {
    const sim = new Simulation({ cpus: 1, seed, slice: 3 })
    const [a, b] = [sim.fork(hog), sim.fork(hog)]
    sim.run({ until: 500 })
    setNice(sim.s, a, 5)
    const before = [runTime(sim, a), runTime(sim, b)]
    sim.run({ until: 2500 })
    const ratio = (runTime(sim, b) - before[1]) / (runTime(sim, a) - before[0])
    expect(ratio).toBeGreaterThan((weightOfNice(0) / weightOfNice(5)) * 0.95)
    expect(ratio).toBeLessThan((weightOfNice(0) / weightOfNice(5)) * 1.05)
  })

  test('FIFO levels above the fair one go first, those below get what is left', () => {
    const sim = new Simulation({ cpus: 1, seed, slice: 3 })
    const low = sim.fork(hog, { priority: makePriority(40, 0) })
    const fair = sim.fork(hog)
    sim.fork(
      function* (context) {
        for (;;) {
          context.cpu.charge(1)
          yield SWITCH_PREEMPTED
          yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 1)
        }
      },
      { priority: makePriority(4, 0) },
    )
    sim.run({ until: 400 })
    expect(runTime(sim, low)).toBe(0)
    expect(runTime(sim, fair)).toBeGreaterThan(150)
    expect(runTime(sim, fair)).toBeLessThan(250)
  })
})

test('the fair tree stays right under any mix of arrivals and departures', () => {
  const sim = new Simulation({ cpus: 1, seed: 9, slice: 0.5, tasks: 300 })
  let alive = 0
  for (let i = 0; i < 200; i++) {
    alive++
    sim.fork(
      function* (context) {
        for (let k = 0; k < 30; k++) {
          context.cpu.charge(((i * 7 + k * 3) % 11) / 20)
          yield SWITCH_PREEMPTED
          if ((i + k) % 4 === 0) yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, ((i + k) % 9) / 3)
        }
        alive--
      },
      { nice: (i % 40) - 20 },
    )
  }
  expect(sim.runChecked(2_000_000, 97)).toBe('idle')
  expect(alive).toBe(0)
})
