import { expect, test } from 'vitest'
import { type MutexKind, PI, PLAIN, ROBUST_PI } from '../../../src/futex/robust/mutex.ts'
import { makePriority } from '../../../src/sched/core/priority.ts'
import { SWITCH_PREEMPTED } from '../../../src/sched/core/switch.ts'
import { UNINTERRUPTIBLE } from '../../../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../../../src/sched/core/wakeup.ts'
import { LockSimulation, type LockingTask } from '../../futex/pi-sim.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

/**
 * The shape of pi_stress: groups of three tasks, low, middle and high, with a lock for each group. In each
 * round low locks and starts the other two. Middle spins until high has locked, so low gets a CPU only if it
 * inherits from high. With fewer CPUs than groups, a round without inheritance hangs.
 */
const GROUPS = 10
const HIGH: number = makePriority(10, 0)
const MIDDLE: number = makePriority(20, 0)
const LOW: number = makePriority(30, 0)

interface Group {
  round: number
  rounds: number
  highDone: number
  middleDone: number
  tasks: number[]
}

function play(kind: MutexKind, cpus: number, rounds: number, seed: number, steps: number): Group[] {
  const world = new LockSimulation(kind, GROUPS, { cpus, seed, debug: false, tasks: 64 })
  const { sim } = world
  const groups = Array.from({ length: GROUPS }, (_, lock) => makeGroup(world, lock, rounds))
  sim.machine.run({ steps })
  if (groups.every(group => group.round === rounds)) sim.run()
  return groups
}

function* until(task: LockingTask, ready: () => boolean): Generator<number, void, unknown> {
  while (!ready()) yield* schedulerSleep(task.context, 0, UNINTERRUPTIBLE)
}

function makeGroup(world: LockSimulation, lock: number, rounds: number): Group {
  const group: Group = { round: 0, rounds, highDone: 0, middleDone: 0, tasks: [] }
  let inside = 0
  const wake = (task: LockingTask, at: number): void => void wakeupTask(task.context.s, group.tasks[at])
  const critical = (): void => {
    inside++
    if (inside !== 1) throw new Error('two tasks hold one lock')
  }
  group.tasks.push(
    world.fork(
      function* (low) {
        for (let round = 1; round <= rounds; round++) {
          if ((yield* low.lock(lock)) !== 0) throw new Error('low did not get the lock')
          critical()
          group.round = round
          wake(low, 1)
          wake(low, 2)
          yield SWITCH_PREEMPTED
          yield SWITCH_PREEMPTED
          inside--
          low.unlock(lock)
          yield* until(low, () => group.highDone === round && group.middleDone === round)
        }
      },
      { priority: LOW },
    ),
    world.fork(
      function* (middle) {
        for (let round = 1; round <= rounds; round++) {
          yield* until(middle, () => group.round >= round)
          while (group.highDone < round) yield SWITCH_PREEMPTED
          group.middleDone = round
          wake(middle, 0)
        }
      },
      { priority: MIDDLE },
    ),
    world.fork(
      function* (high) {
        for (let round = 1; round <= rounds; round++) {
          yield* until(high, () => group.round >= round)
          if ((yield* high.lock(lock)) !== 0) throw new Error('high did not get the lock')
          critical()
          inside--
          high.unlock(lock)
          group.highDone = round
          wake(high, 0)
        }
      },
      { priority: HIGH },
    ),
  )
  return group
}

/** A hundred thousand rounds together, and a million with HEDDLE_LONG=1. */
const TIMES = process.env['HEDDLE_LONG'] === undefined ? 1 : 10

for (const [cpus, kind, rounds] of [
  [1, PI, TIMES * 70_000],
  [4, ROBUST_PI, TIMES * 30_000],
] as const) {
  test(`ten groups on ${cpus} simulated CPUs, ${rounds} rounds: no task hangs`, () => {
    const each = rounds / GROUPS
    for (const { round, highDone, middleDone } of play(kind, cpus, each, cpus, 100 * rounds))
      expect([round, highDone, middleDone]).toEqual([each, each, each])
  })
}

test('without inheritance they hang in the first rounds', () => {
  const groups = play(PLAIN, 2, 1000, 1, 200_000)
  expect(Math.max(...groups.map(({ highDone }) => highDone))).toBeLessThan(1000)
})
