/** Broken variants of the move of a started task: each is found (move.check.ts explores the right one). */
import { describe, expect, test } from 'vitest'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { found } from '../../checker/check.ts'
import { death, MORTAL_CPU, type Recover } from '../../../testing/sched/death.ts'
import { type MoveSteps, moveAgainst, packAsleepAgainst, steps } from '../../../testing/sched/moveprograms.ts'
import { takingPacked, takingPackedBy } from '../../../testing/sched/deathprograms.ts'
import { Entity, POLICY_BOUND } from '../core/entity.ts'
import { RunQueue } from '../core/runqueue.ts'
import type { Scheduler } from '../core/scheduler.ts'
import { recoverScheduler } from '../recovery/recovery.ts'
import { TaskRecord } from '../core/taskrecord.ts'
import { wakeupTask } from '../core/wakeup.ts'
import { bindTask, unbindTask } from './affinity.ts'
import { moveQueued } from './steal.ts'
import { switchToIdle, SWITCH_PREEMPTED } from '../core/switch.ts'

const OPTIONS = { races: false, shrink: 20 }
const DEATH = { crashes: MORTAL_CPU, steps: 50_000, races: false, shrink: 20 }

function unbind(s: Scheduler, task: number): boolean {
  const se = s.i32[task + TaskRecord.entity]
  acquire(s.thread, se + Entity.piLock)
  const isQueued = unbindTask(s, task)
  release(s.thread, se + Entity.piLock)
  return isQueued
}

describe('each step of a move is needed', () => {
  test('unbound before it is packed, another CPU gets a task whose state is in this heap', () => {
    const moves: MoveSteps = {
      ...steps,
      release(s, task) {
        const isQueued = unbind(s, task) // (C) before (B)
        Atomics.store(s.i32, task + TaskRecord.packed, 1)
        return isQueued
      },
    }
    const bounded = { ...OPTIONS, explorer: 'preemption-bounded', preemptions: 1 } as const
    expect(found(packAsleepAgainst(wakeupTask, true, moves), bounded)).toMatch('state is in another heap')
  })

  test('a task that is sent away without its pi and queue locks is in two places', () => {
    const moves: MoveSteps = {
      ...steps,
      send(s, target) {
        const se = s.i32[s.queue + RunQueue.current]
        switchToIdle(s, SWITCH_PREEMPTED)
        const to = s.queueOf(target)
        // Only the lock of the queue that it goes to: the CPU there may have taken it already.
        acquire(s.thread, to + RunQueue.lock)
        moveQueued(s, se, s.queue, to)
        release(s.thread, to + RunQueue.lock)
      },
    }
    expect(found(moveAgainst(undefined, true, moves), OPTIONS)).not.toBe('')
  })

  test('taken before it is bound, a task has no state when that CPU dies', () => {
    const take = (s: Scheduler, task: number): void => {
      Atomics.store(s.i32, task + TaskRecord.packed, 0) // (H) before (G)
      bindTask(s, task)
    }
    expect(found(death(takingPackedBy({ ...steps, take })), DEATH)).toMatch('neither packed nor in a heap')
  })

  test('recovery that does not unbind packed tasks loses one whose state is in the arena', () => {
    const recover: Recover = (s, dead) => {
      const { i32, tasks } = s
      for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
        const isBound = (i32[i32[task + TaskRecord.entity] + Entity.policy] & POLICY_BOUND) !== 0
        if (isBound) i32[task + TaskRecord.packed] = 0
      }
      return recoverScheduler(s, dead)
    }
    expect(found(death(takingPacked, recover), DEATH)).toMatch('a packed task is lost')
  })
})
