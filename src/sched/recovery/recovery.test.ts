/**
 * Recovery: each of its steps is missed where it is taken out; and CPUs killed at random moments, by seed.
 */
import { describe, expect, test } from 'vitest'
import { RcuNode } from '../../arena/sync/rcu.ts'
import { acquire, breakLock, release } from '../../arena/sync/spinlock.ts'
import { found, type Setup } from '../../checker/check.ts'
import { SeededRandom } from '../../machine/simulated/random.ts'
import { bindTask } from '../balance/affinity.ts'
import { deeds, takingArrivals } from '../../../testing/sched/deathprograms.ts'
import { death, type Deed, MORTAL_CPU, type Recover } from '../../../testing/sched/death.ts'
import { Entity, POLICY_ARRIVED } from '../core/entity.ts'
import { createTask } from '../core/fork.ts'
import { drainQueue } from '../balance/hotplug.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { claimLost, endLost } from './lost.ts'
import { FAIR_PRIORITY, makePriority } from '../core/priority.ts'
import { enqueueSelected } from '../core/enqueue.ts'
import { Kernel } from '../../../testing/sched/kernel.ts'
import { recoverScheduler, rescueLock } from './recovery.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { type SimulatedContext, Simulation } from '../../../testing/sched/simulation.ts'
import { sleepOnChannel, wakeupOnChannel } from '../core/sleep.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from '../core/switch.ts'
import { INTERRUPTIBLE, RUNNING, TaskRecord, UNINTERRUPTIBLE, UNUSED, ZOMBIE } from '../core/taskrecord.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

const OPTIONS = { crashes: MORTAL_CPU, steps: 50_000, races: false, shrink: 20 }

const broken = (deed: Deed, recover: Recover): string => {
  const setup: Setup = death(deed, recover)
  return found(setup, OPTIONS)
}

/** Unlocks a lock that the dead CPU held, and mends nothing. */
function letGo(s: Scheduler, lock: number, dead: number): void {
  if (breakLock(s.thread, lock, dead)) release(s.thread, lock)
}

function letGoOfAll(s: Scheduler, dead: number): void {
  for (let cpu = 0; cpu < s.cpus; cpu++) {
    letGo(s, s.queueOf(cpu) + RunQueue.lock, dead)
    letGo(s, s.queueOf(cpu) + RunQueue.timerLock, dead)
  }
  letGo(s, s.sleepLock, dead)
  for (let task = s.tasks.after(s.i32, 0); task !== 0; task = s.tasks.after(s.i32, task)) {
    letGo(s, s.i32[task + TaskRecord.entity] + Entity.piLock, dead)
  }
}

/** The dead CPU runs nothing any more. */
function close(s: Scheduler, dead: number): void {
  const { i32, thread, entities } = s
  const queue = s.queueOf(dead)
  acquire(thread, queue + RunQueue.lock)
  i32[queue + RunQueue.online] = 0
  s.setActive(dead, false)
  i32[queue + RunQueue.current] = i32[queue + RunQueue.idle]
  i32[queue + RunQueue.contender] = 0
  release(thread, queue + RunQueue.lock)
  for (let se = entities.after(i32, 0); se !== 0; se = entities.after(i32, se)) {
    if (i32[se + Entity.cpu] === dead) Atomics.store(i32, se + Entity.onCpu, 0)
  }
}

describe('what recovery does is needed', () => {
  test('without a search for arrived tasks, those that the CPU had taken never start', () => {
    const recover: Recover = (s, dead) => {
      for (let se = s.entities.after(s.i32, 0); se !== 0; se = s.entities.after(s.i32, se)) {
        s.i32[se + Entity.policy] &= ~POLICY_ARRIVED
      }
      return recoverScheduler(s, dead)
    }
    expect(broken(takingArrivals, recover)).toMatch('a task that has arrived was never started')
  })

  const unmended: Recover = (s, dead) => {
    letGoOfAll(s, dead)
    close(s, dead)
    drainQueue(s, dead)
    return claimLost(s, dead, 0)
  }

  /** All but one step: what comes after it is done. */
  const withoutPi: Recover = (s, dead) => {
    for (let se = s.entities.after(s.i32, 0); se !== 0; se = s.entities.after(s.i32, se))
      letGo(s, se + Entity.piLock, dead)
    return recoverScheduler(s, dead)
  }

  test('an enqueue that is not rebuilt: counts and lists disagree', () => {
    expect(broken(deeds['wakeup of a task on another CPU'], unmended)).toMatch(/InvariantError/)
  })

  test('a dequeue that is not rebuilt', () => {
    expect(broken(deeds['priority of a queued task'], unmended)).toMatch(/InvariantError/)
  })

  test('a switch that is not rebuilt', () => {
    expect(broken(deeds['switch to an equal'], unmended)).toMatch(/InvariantError/)
    expect(broken(deeds['switch between fair tasks'], unmended)).toMatch(/InvariantError/)
    expect(broken(deeds['switch between fair tasks on the list'], unmended)).toMatch(/InvariantError/)
  })

  test('a wakeup that is not finished leaves the task WAKENING, or runnable and nowhere', () => {
    expect(broken(deeds['wakeup of a task on another CPU'], withoutPi)).toMatch(
      /WAKENING only inside a wakeup|runnable and nowhere/,
    )
  })

  test('a timer that was taken off, and whose sleeper was not woken', () => {
    const without: Recover = (s, dead) => {
      // Armed no more, as far as recovery can see.
      for (let task = s.tasks.after(s.i32, 0); task !== 0; task = s.tasks.after(s.i32, task))
        if (!s.timers[dead].isQueued(task + TaskRecord.timer)) s.i32[task + TaskRecord.timerArmed] = 0
      return recoverScheduler(s, dead)
    }
    expect(broken(deeds['expiry of a timer'], without)).toMatch('it sleeps, and its timer is gone')
  })

  test('an unarmed timer that is cleared after recovery, when another CPU may have armed it', () => {
    const late: Recover = (s, dead) => {
      const { i32, tasks } = s
      const none: number[] = []
      for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task))
        if (i32[task + TaskRecord.timerCpu] === dead && i32[task + TaskRecord.timerArmed] === 0)
          none.push(task)
      const lost = recoverScheduler(s, dead)
      for (const task of none) s.timers[dead].forget(task + TaskRecord.timer)
      return lost
    }
    const deed = deeds['no operation, while another CPU arms its first timer']
    expect(broken(deed, late)).toMatch('it sleeps, and its timer is on no queue')
  })

  test('a task that has ended, and that its CPU has not reaped', () => {
    const elsewhere: Recover = (s, dead) => {
      for (let task = s.tasks.after(s.i32, 0); task !== 0; task = s.tasks.after(s.i32, task))
        if (s.i32[task + TaskRecord.state] === ZOMBIE) {
          const se = s.i32[task + TaskRecord.entity]
          if (s.i32[se + Entity.onCpu] === 0) s.i32[se + Entity.cpu] = 1 - dead
        }
      return recoverScheduler(s, dead)
    }
    expect(broken(deeds['end of a task'], elsewhere)).toMatch('a task that has ended was not reaped')
  })

  test('a task that its CPU has reaped, and not passed to RCU, without the name of that CPU', () => {
    const nameless: Recover = (s, dead) => {
      for (let task = s.tasks.after(s.i32, 0); task !== 0; task = s.tasks.after(s.i32, task))
        if (s.i32[task + TaskRecord.state] === UNUSED) s.i32[task + TaskRecord.rcu + RcuNode.callback] = 0
      return recoverScheduler(s, dead)
    }
    expect(broken(deeds['end of a task'], nameless)).toMatch('slot is not freed')
  })

  test('a wakeup that is counted after the task is RUNNING', () => {
    const deed = deeds['making a task']
    const late: Deed = {
      ...deed,
      scene: kernel => {
        const [s] = kernel.cpus
        const { i32 } = kernel
        return {
          ...deed.scene(kernel),
          mortal: () => {
            const task = createTask(s, { affinity: [1], priority: makePriority(9, 0) })
            const se = i32[task + TaskRecord.entity]
            acquire(s.thread, se + Entity.piLock)
            Atomics.store(i32, task + TaskRecord.state, RUNNING)
            i32[se + Entity.woken]++
            enqueueSelected(s, se)
            release(s.thread, se + Entity.piLock)
          },
        }
      },
    }
    expect(broken(late, recoverScheduler)).toMatch('its `woken` is 0')
  })
})

test('a lost task stays claimed, also when another CPU dies with its pi lock', () => {
  const kernel = new Kernel(2, 1)
  const [s, other] = kernel.cpus
  const [, rescuer] = kernel.others
  const task = kernel.running([0, 1])
  bindTask(s, task)
  const lost = recoverScheduler(rescuer, s.cpu).map(({ task: at }) => at)
  expect(lost).toEqual([task])
  const pi = kernel.i32[task + TaskRecord.entity] + Entity.piLock
  acquire(other.thread, pi)
  expect(rescueLock(rescuer, other.cpu, pi)).toBe(true)
  endLost(rescuer, lost)
  expect(kernel.onRq(task)).toBe(false)
})

/** A task as the kernel has them: bound to its CPU from its first line on. */
function* bound(context: SimulatedContext, random: SeededRandom): Generator<number, number, unknown> {
  bindTask(context.s, context.task)
  for (let turn = 0; turn < 5; turn++) {
    context.cpu.charge(random.unit() * 0.2)
    switch (random.below(5)) {
      case 0:
        yield SWITCH_YIELDS
        break
      case 1:
        yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, random.unit() * 0.5)
        break
      case 2:
        yield* sleepOnChannel(context, 1 + random.below(2), INTERRUPTIBLE, 1)
        break
      default:
        wakeupOnChannel(context.s, 1 + random.below(2))
        yield SWITCH_PREEMPTED
    }
  }
  return 0
}

test.each(Array.from({ length: 40 }, (_, index) => index + 1))(
  'CPUs are killed at random steps: every task ends once, or is lost once, seed %i',
  seed => {
    const cpus = 3
    const population = 40
    const sim = new Simulation({ cpus, seed, tasks: 64 })
    const { s, machine } = sim
    const random = new SeededRandom(seed * 104_729)
    const outcomes = new Map<number, number>()
    let deaths = 0
    machine.onDeath(({ cpu }) => {
      deaths++
      const lost = recoverScheduler(s, cpu).map(({ task }) => task)
      for (const task of lost) note(task)
      endLost(s, lost)
      machine.recovered(cpu)
      checkInvariants(s)
      void machine.start(cpu)
    })
    const numbers = new Map<number, number>()
    const note = (task: number): void => {
      const number = numbers.get(task) ?? -1
      outcomes.set(number, (outcomes.get(number) ?? 0) + 1)
    }
    for (let number = 0; number < population; number++) {
      const task = sim.fork(
        function* (context) {
          yield* bound(context, random)
          note(context.task)
        },
        { priority: number % 3 === 0 ? makePriority(9 + (number % 4), number & 3) : FAIR_PRIORITY },
      )
      numbers.set(task, number)
    }
    for (let at = 0; at < 12; at++) machine.killAt(5 + random.below(400), random.below(cpus))
    expect(sim.run({ steps: 200_000 })).toBe('idle')
    expect(deaths).toBeGreaterThan(0)
    expect([...outcomes.keys()].toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: population }, (_, number) => number),
    )
    expect([...outcomes.values()].every(count => count === 1)).toBe(true)
    s.rcu.runCallbacks(s.thread)
    expect(s.tasks.count(s.i32)).toBe(cpus)
  },
)
