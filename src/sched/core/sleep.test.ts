import { describe, expect, test } from 'vitest'
import { acquire, holds, initLock, lockOwner, release } from '../../arena/sync/spinlock.ts'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { killTask, sleepOnChannel, wakeupOnChannel } from './sleep.ts'
import { SWITCH_PREEMPTED } from './switch.ts'
import { INTERRUPTIBLE, SLEEP_KILLED, SLEEP_TIMED_OUT, UNINTERRUPTIBLE, SLEEP_WOKEN } from './taskrecord.ts'
import { wakeupTask } from './wakeup.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

function sleeper(
  sim: Simulation,
  state: number,
  timeout?: number,
): { task: number; reason: number | undefined } {
  const result: { task: number; reason: number | undefined } = { task: 0, reason: undefined }
  result.task = sim.fork(function* (context) {
    result.reason = yield* schedulerSleep(context, 0, state, timeout)
  })
  sim.run({ until: sim.machine.now() + 1 })
  return result
}

describe.each([1, 2, 3, 4])('with seed %i', seed => {
  test('a kill ends an interruptible sleep and no other', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const all = [INTERRUPTIBLE, UNINTERRUPTIBLE].map(state => sleeper(sim, state, 1000))
    expect(all.map(({ task }) => killTask(sim.s, task))).toEqual([true, false])
    sim.run({ until: 100 })
    expect(all.map(({ reason }) => reason)).toEqual([SLEEP_KILLED, undefined])
    for (const { task } of all) wakeupTask(sim.s, task)
    sim.run()
    expect(all.map(({ reason }) => reason)).toEqual([SLEEP_KILLED, SLEEP_WOKEN])
  })

  test('a kill that is pending already keeps a task from sleeping interruptibly', () => {
    const sim = new Simulation({ cpus: 1, seed })
    const reasons: number[] = []
    const task = sim.fork(function* (context) {
      for (let i = 0; i < 20; i++) yield SWITCH_PREEMPTED
      reasons.push(yield* schedulerSleep(context, 0, INTERRUPTIBLE))
      reasons.push(yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 1))
    })
    sim.run({ steps: 5 })
    expect(killTask(sim.s, task)).toBe(false)
    sim.run()
    expect(reasons).toEqual([SLEEP_KILLED, SLEEP_TIMED_OUT])
  })

  test('timeouts end sleeps in order, and not before their time', () => {
    const sim = new Simulation({ cpus: 3, seed })
    const woken: number[] = []
    for (const ms of [7, 3, 9, 1, 5]) {
      sim.fork(function* (context) {
        const start = context.cpu.now()
        expect(yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, ms)).toBe(SLEEP_TIMED_OUT)
        expect(context.cpu.now() - start).toBeGreaterThanOrEqual(ms)
        expect(context.cpu.now() - start).toBeLessThan(ms + 0.5)
        woken.push(ms)
      })
    }
    expect(sim.run()).toBe('idle')
    expect(woken).toEqual([1, 3, 5, 7, 9])
  })

  test('a sleep that is woken in time leaves no timer behind to end the next one', () => {
    const sim = new Simulation({ cpus: 1, seed })
    const reasons: number[] = []
    const task = sim.fork(function* (context) {
      reasons.push(yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 5))
      reasons.push(yield* schedulerSleep(context, 0, INTERRUPTIBLE))
    })
    sim.run({ until: 1 })
    wakeupTask(sim.s, task)
    expect(sim.run()).toBe('idle')
    expect(sim.machine.now()).toBeLessThan(5)
    expect(reasons).toEqual([SLEEP_WOKEN])
    wakeupTask(sim.s, task)
    sim.run()
    expect(reasons).toEqual([SLEEP_WOKEN, SLEEP_WOKEN])
  })

  test('a timer that is due before the switch wakes the sleeper on its own CPU', () => {
    const sim = new Simulation({ cpus: 1, seed })
    let reason: number | undefined
    sim.fork(function* (context) {
      reason = yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 0)
    })
    expect(sim.run()).toBe('idle')
    expect(reason).toBe(SLEEP_TIMED_OUT)
  })

  test('a task that sleeps on a lock unlocks it, and holds it again when it continues', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const lock = sim.s.i32.length - 16
    initLock(sim.s.i32, lock, 0)
    const log: string[] = []
    const tasks: number[] = []
    tasks.push(
      sim.fork(function* (context) {
        acquire(context.s.thread, lock)
        yield* schedulerSleep(context, lock, UNINTERRUPTIBLE)
        log.push(holds(context.s.thread, lock) ? 'holds it' : 'lost it')
        release(context.s.thread, lock)
      }),
    )
    sim.run()
    expect(lockOwner(sim.s.i32, lock)).toBe(-1)
    sim.fork(function* (context) {
      acquire(context.s.thread, lock)
      log.push('event')
      release(context.s.thread, lock)
      wakeupTask(context.s, tasks[0])
      yield SWITCH_PREEMPTED
    })
    sim.run()
    expect(log).toEqual(['event', 'holds it'])
    expect(lockOwner(sim.s.i32, lock)).toBe(-1)
  })

  test('a channel wakes those that sleep on it, and no one else', () => {
    const sim = new Simulation({ cpus: 2, seed })
    const log: string[] = []
    for (const channel of [11, 22]) {
      for (let i = 0; i < 3; i++) {
        sim.fork(function* (context) {
          const reason = yield* sleepOnChannel(context, channel, UNINTERRUPTIBLE)
          log.push(`${channel} ${reason}`)
        })
      }
    }
    sim.run()
    expect(wakeupOnChannel(sim.s, 33)).toBe(0)
    expect(wakeupOnChannel(sim.s, 22)).toBe(3)
    sim.run()
    expect(log).toEqual(['22 0', '22 0', '22 0'])
    expect(wakeupOnChannel(sim.s, 11, 2)).toBe(2)
    sim.run()
    expect(log).toHaveLength(5)
  })

  test('a channel sleep that times out is off the wait tree', () => {
    const sim = new Simulation({ cpus: 1, seed })
    let reason: number | undefined
    const task = sim.fork(function* (context) {
      reason = yield* sleepOnChannel(context, 5, INTERRUPTIBLE, 2)
    })
    sim.run()
    expect(reason).toBe(SLEEP_TIMED_OUT)
    expect(sim.s.waitTree.isQueued(task)).toBe(false)
    expect(wakeupOnChannel(sim.s, 5)).toBe(0)
  })
})
