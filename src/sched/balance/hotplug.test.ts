import { describe, expect, test } from 'vitest'
import { cpuAccount, taskAccount } from '../core/account.ts'
import { bindTask, setAffinity } from './affinity.ts'
import { Entity } from '../core/entity.ts'
import { recoverScheduler } from '../recovery/recovery.ts'
import { makePriority } from '../core/priority.ts'
import { RunQueue } from '../core/runqueue.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { SWITCH_PREEMPTED } from '../core/switch.ts'
import { INTERRUPTIBLE, TaskRecord, UNINTERRUPTIBLE } from '../core/taskrecord.ts'
import { wakeupTask } from '../core/wakeup.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

const cpuOf = (sim: Simulation, task: number): number =>
  sim.s.i32[sim.s.i32[task + TaskRecord.entity] + Entity.cpu]

function* busy(
  context: { cpu: { charge(ms: number): void } },
  turns: number,
): Generator<number, void, unknown> {
  for (let turn = 0; turn < turns; turn++) {
    context.cpu.charge(0.1)
    yield SWITCH_PREEMPTED
  }
}

describe.each([1, 2, 3, 4])('with seed %i', seed => {
  test('a task runs only where its mask allows; a change counts from its next wakeup on', () => {
    const sim = new Simulation({ cpus: 4, seed })
    const seen: number[][] = [[], [], []]
    const task = sim.fork(
      function* (context) {
        for (let phase = 0; phase < 3; phase++) {
          for (let turn = 0; turn < 20; turn++) {
            seen[phase].push(context.cpu.id)
            if (phase === 0 && turn === 10) setAffinity(context.s, context.task, 1 << 3, 0)
            context.cpu.charge(0.1)
            yield SWITCH_PREEMPTED
          }
          yield* schedulerSleep(context, 0, INTERRUPTIBLE)
        }
      },
      { affinity: [1, 2] },
    )
    for (let phase = 0; phase < 3; phase++) {
      sim.run()
      if (phase === 1) setAffinity(sim.s, task, 1, 0)
      wakeupTask(sim.s, task)
    }
    sim.run()
    expect(new Set(seen[0]).size).toBe(1)
    expect([1, 2]).toContain(seen[0][0])
    expect(new Set(seen[1])).toEqual(new Set([3]))
    expect(new Set(seen[2])).toEqual(new Set([0]))
  })

  test('a task whose CPUs are all gone runs on any other', () => {
    const sim = new Simulation({ cpus: 3, seed })
    const cpus = new Set<number>()
    void sim.machine.stop(1)
    sim.run()
    sim.fork(
      function* (context) {
        cpus.add(context.cpu.id)
        yield SWITCH_PREEMPTED
      },
      { affinity: [1] },
    )
    sim.run()
    expect(cpus.size).toBe(1)
    expect(cpus.has(1)).toBe(false)
  })

  test('tasks that were put on a queue while no CPU was active run when one comes', () => {
    const sim = new Simulation({ cpus: 3, seed, start: false })
    let done = 0
    for (let i = 0; i < 10; i++) {
      sim.fork(function* (context) {
        yield* busy(context, 3)
        done++
      })
    }
    sim.run()
    expect(done).toBe(0)
    void sim.machine.start(2)
    expect(sim.run()).toBe('idle')
    expect(done).toBe(10)
  })

  test('what a CPU that goes had queued, asleep with a timer, and running, goes on elsewhere', () => {
    const sim = new Simulation({ cpus: 2, seed })
    let done = 0
    for (let i = 0; i < 12; i++) {
      sim.fork(function* (context) {
        yield* busy(context, 20)
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 4)
        yield* busy(context, 20)
        done++
      })
    }
    sim.run({ until: 3 })
    void sim.machine.stop(0)
    sim.run({ until: 6 })
    expect(sim.machine.isActive(0)).toBe(false)
    expect(sim.s.i32[sim.s.queueOf(0) + RunQueue.load]).toBe(0)
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    expect(done).toBe(12)
    // What the CPU that has gone was to free, another has freed.
    expect(sim.s.tasks.count(sim.s.i32)).toBe(2)
  })

  test('what a CPU that dies was running can be put on another', () => {
    const sim = new Simulation({ cpus: 2, seed })
    sim.machine.onDeath(({ cpu }) => {
      expect(recoverScheduler(sim.s, cpu)).toEqual([])
      sim.machine.recovered(cpu)
    })
    let done = 0
    for (let i = 0; i < 6; i++) {
      sim.fork(function* (context) {
        yield* busy(context, 30)
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 2)
        done++
      })
    }
    sim.run({ until: 2 })
    sim.machine.kill(1)
    sim.run({ until: 5 })
    void sim.machine.start(1)
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    expect(done).toBe(6)
  })

  test('a bound task stays, and a CPU that is asked to go waits for it', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const cpus = new Set<number>()
    let done = false
    const task = sim.fork(function* (context) {
      bindTask(context.s, context.task)
      for (let i = 0; i < 5; i++) {
        cpus.add(context.cpu.id)
        yield* busy(context, 5)
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 1)
      }
      done = true
    })
    sim.run({ until: 1 })
    const home = cpuOf(sim, task)
    const mask = sim.s.i32[task + TaskRecord.entity] + Entity.affinityMask
    expect([sim.s.i32[mask], sim.s.i32[mask + 1]]).toEqual([1 << home, 0])
    void sim.machine.stop(home)
    sim.run({ until: 2 })
    expect(done).toBe(false)
    expect(sim.run({ steps: 10_000 })).toBe('idle')
    expect(done).toBe(true)
    expect(cpus).toEqual(new Set([home]))
    expect(sim.machine.isActive(home)).toBe(false)
  })

  test('an idle CPU takes tasks from the most loaded one, the best first', () => {
    const sim = new Simulation({ cpus: 3, seed, start: false })
    void sim.machine.start(0)
    for (let i = 0; i < 9; i++) sim.fork(context => busy(context, 100), { priority: makePriority(20, 0) })
    const best = sim.fork(context => busy(context, 100), { priority: makePriority(19, 0) })
    const pinned = sim.fork(context => busy(context, 100), { priority: makePriority(40, 0), affinity: [0] })
    sim.run({ until: 0.05 })
    void sim.machine.start(1)
    void sim.machine.start(2)
    sim.run({ until: 5 })
    const { i32 } = sim.s
    expect(i32[i32[best + TaskRecord.entity] + Entity.onCpu]).toBe(1)
    expect(cpuOf(sim, pinned)).toBe(0)
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    for (const cpu of [1, 2]) {
      const { busyTime, steals } = cpuAccount(i32, sim.s.queueOf(cpu))
      expect(steals).toBeGreaterThan(0)
      expect(busyTime).toBeGreaterThan(20)
    }
  })

  test('a CPU that is about to run something pulls what outranks it and waits elsewhere', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const order: string[] = []
    const named = (name: string, major: number, turns: number, affinity: number[]): void => {
      sim.fork(
        function* (context) {
          order.push(`${name} on ${context.cpu.id}`)
          yield* busy(context, turns)
        },
        { priority: makePriority(major, 0), affinity },
      )
    }
    named('high', 10, 100, [0])
    named('first', 12, 20, [1])
    sim.run({ until: 0.5 })
    named('low', 20, 20, [1])
    named('middle', 15, 20, [0, 1])
    sim.run()
    expect(order.toSorted().slice(0, 2)).toEqual(['first on 1', 'high on 0'])
    expect(order.slice(2)).toEqual(['middle on 1', 'low on 1'])
  })

  test('what a CPU was to free when it went, another frees', () => {
    const sim = new Simulation({ cpus: 2, seed })
    // CPU 1 runs one long turn, and is not quiescent: what ends on CPU 0 cannot be freed yet.
    sim.fork(context => busy(context, 50), { affinity: [1], priority: makePriority(5, 0) })
    sim.run({ until: 1 })
    sim.fork(context => busy(context, 1), { affinity: [0] })
    sim.run({ until: 2 })
    void sim.machine.stop(0)
    sim.run({ until: 3 })
    expect(sim.machine.isActive(0)).toBe(false)
    expect(sim.s.rcu.queued(sim.s.i32, 0)).toBe(1)
    sim.run()
    expect(sim.s.tasks.count(sim.s.i32)).toBe(2)
  })

  test('a wake goes to an idle CPU if there is one', () => {
    const sim = new Simulation({ cpus: 3, seed })
    const task = sim.fork(
      function* (context) {
        yield* schedulerSleep(context, 0, INTERRUPTIBLE)
        yield* busy(context, 5)
      },
      { affinity: [0, 1, 2] },
    )
    sim.run()
    const home = cpuOf(sim, task)
    for (let cpu = 0; cpu < 3; cpu++) {
      if (cpu !== (home + 1) % 3) sim.fork(context => busy(context, 200), { affinity: [cpu] })
    }
    sim.run({ until: sim.machine.now() + 1 })
    wakeupTask(sim.s, task)
    expect(cpuOf(sim, task)).toBe((home + 1) % 3)
    sim.run()
  })

  test('accounts count switches, preemptions, migrations and wakeups', () => {
    const sim = new Simulation({ cpus: 2, seed, slice: 1 })
    const { s } = sim
    let account: ReturnType<typeof taskAccount> | undefined
    const task = sim.fork(function* (context) {
      for (let i = 0; i < 10; i++) {
        yield* busy(context, 30)
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 2)
      }
      yield* schedulerSleep(context, 0, INTERRUPTIBLE)
    })
    for (let i = 0; i < 4; i++) sim.fork(context => busy(context, 300))
    sim.run()
    account = taskAccount(s.i32, s.i32[task + TaskRecord.entity])
    expect(account.runTime).toBeGreaterThan(29.8)
    expect(account.runTime).toBeLessThan(31)
    expect(account.waitTime).toBeGreaterThan(1)
    expect(account.wakeups).toBeGreaterThanOrEqual(10)
    expect(account.switches).toBeGreaterThan(10)
    expect(account.preemptions).toBeGreaterThan(0)
    expect(account.preemptions).toBeLessThan(account.switches)
  })
})
