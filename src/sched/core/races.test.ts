/**
 * Each race of the scheduler: found where its remedy is taken out, and gone with it. Explored in full, but
 * for the three largest.
 */
import { describe, expect, test } from 'vitest'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import { check, type CheckOptions, found as findIn, type Setup, unwatched } from '../../checker/check.ts'
import {
  publishCount,
  publishQueue,
  rqDequeueTask,
  rqDropCurrent,
  rqPickNextTask,
} from '../classes/classrq.ts'
import { Entity, POLICY_ARRIVED } from './entity.ts'
import { enqueueSelected, placeOn } from './enqueue.ts'
import {
  adoptionAgainstSleep,
  affinityAgainstWakeup,
  batchAgainstChange,
  batchDuringSwitch,
  checkpointAgainstWakeup,
  continueOnCpu,
  arrivalAgainstOffline,
  arrivalAgainstTake,
  doubleWakeup,
  interruptInsideSwitch,
  interruptThenYield,
  lateTimer,
  offlineAgainstEnqueue,
  rotationAgainstWakeup,
  selfWakeup,
  sleepThenUnlock,
  stopAgainstSwitch,
  stopAgainstWakeup,
  turnsAgainstEachOther,
  turnThenSwitch,
  twoBatches,
  wakeupAcrossTurns,
  wakeupAfterPick,
  wakeupAgainstSleep,
  wakeupDuringSwitch,
} from '../../../testing/sched/raceprograms.ts'
import { Kernel } from '../../../testing/sched/kernel.ts'
import { recoverScheduler } from '../recovery/recovery.ts'
import { rotateFair } from './rotatefair.ts'
import { RunQueue } from './runqueue.ts'
import type { Scheduler } from './scheduler.ts'
import { selectTaskRq } from './selectcpu.ts'
import { beginSleep } from './sleep.ts'
import { schedulerStop } from './stop.ts'
import { contextSwitchFinish, contextSwitchPrepare } from './switch.ts'
import { armTick } from './tick.ts'
import {
  INTERRUPTIBLE,
  isSleeping,
  RUNNING,
  TaskRecord,
  SLEEP_TIMED_OUT,
  WAKE_ANY,
  WAKENING,
} from './taskrecord.ts'
import { schedulerWakeup, waitOffCpu, wakeupTask } from './wakeup.ts'

/** The broken variants read words plainly guarded: what they must be caught at is the protocol, not that. */
const PROTOCOL: CheckOptions = { races: false, shrink: 50 }
/** Its state says RUNNING while its CPU has not finished with it: no hands that it could be in. */
const RUNNING_ON_ITS_WAY_OUT = 'a task is runnable and nowhere'

/** What is found in a broken variant by how it ends, or by what the kernel itself asserts. */
function found(setup: Setup): string {
  return findIn(unwatched(setup), PROTOCOL)
}

/** What is found in it at the first step at which an invariant does not hold. */
function foundAtAStep(setup: Setup): string {
  return findIn(setup, PROTOCOL)
}

function passes(setup: Setup, options: CheckOptions = {}): void {
  const result = check('sound', options, setup)
  expect(result.complete).toBe(true)
  expect(result.executions).toBeGreaterThan(1)
}

/**
 * The programs with the most orders: the first thousand of them here, all with HEDDLE_LONG=1 and in
 * races.check.ts.
 */
function passesBounded(setup: Setup): void {
  if (process.env.HEDDLE_LONG === '1') return passes(setup)
  const result = check('sound', { executions: 1000, allowIncomplete: true }, setup)
  expect(result.ok).toBe(true)
  expect(result.executions).toBeGreaterThan(500)
}

function locked<T>(s: Scheduler, task: number, body: (se: number) => T): T {
  const se = s.i32[task + TaskRecord.entity]
  acquire(s.thread, se + Entity.piLock)
  const result = body(se)
  release(s.thread, se + Entity.piLock)
  return result
}

/** Claims a sleeping task, as the design does. */
function claim(s: Scheduler, task: number): boolean {
  const state = Atomics.load(s.i32, task + TaskRecord.state)
  if (!isSleeping(state)) return false
  if (Atomics.compareExchange(s.i32, task + TaskRecord.state, state, WAKENING) !== state) return false
  Atomics.store(s.i32, task + TaskRecord.state, RUNNING)
  return true
}

/** The last two lines of a switch away from a task that leaves. */
function endSwitch({ i32 }: Scheduler, prev: number): void {
  Atomics.store(i32, prev + Entity.onCpu, 0)
  if (Atomics.load(i32, prev + Entity.awaited) !== 0) Atomics.notify(i32, prev + Entity.onCpu)
}

describe('double wakeup', () => {
  test('passes with the claim', () => passes(doubleWakeup()))

  test('two wakers that only read the state enqueue the task twice', () => {
    const wake = (s: Scheduler, task: number): boolean => {
      const se = s.i32[task + TaskRecord.entity]
      if (!isSleeping(Atomics.load(s.i32, task + TaskRecord.state))) return false
      Atomics.store(s.i32, task + TaskRecord.state, RUNNING)
      const queue = s.queueOf(selectTaskRq(s, se))
      acquire(s.thread, queue + RunQueue.lock)
      Atomics.store(s.i32, se + Entity.onRq, 1)
      placeOn(s, queue, se)
      release(s.thread, queue + RunQueue.lock)
      return true
    }
    expect(found(doubleWakeup(wake))).toMatch(/double insert|not exactly one waker/)
    expect(foundAtAStep(doubleWakeup(wake))).toMatch('an invariant does not hold')
  })
})

describe('callbacks of two event loops', () => {
  test('pass after the switch', () => passes(turnsAgainstEachOther()))

  test('before the switch, each waits for the other CPU', () => {
    expect(found(turnsAgainstEachOther(turnThenSwitch))).toMatch(/deadlock|blocked/i)
  })
})

describe('a batch of wakeups', () => {
  test('passes against a change of priority', () => passes(batchAgainstChange()))
  test('passes during the switch', () => passes(batchDuringSwitch()))
  test('passes beside another batch', () => passes(twoBatches()))

  /** Keeps the run queue's lock for the whole batch, and waits for what it needs. */
  const keepsLock = (s: Scheduler, tasks: readonly number[]): void => {
    const queue = s.queueOf(0)
    acquire(s.thread, queue + RunQueue.lock)
    for (const task of tasks) {
      const se = s.i32[task + TaskRecord.entity]
      acquire(s.thread, se + Entity.piLock)
      if (claim(s, task)) {
        waitOffCpu(s, se)
        Atomics.store(s.i32, se + Entity.onRq, 1)
        placeOn(s, queue, se)
      }
      release(s.thread, se + Entity.piLock)
    }
    release(s.thread, queue + RunQueue.lock)
  }

  test('a waker that waits for a pi lock, and keeps the queue, deadlocks with a change', () => {
    expect(findIn(batchAgainstChange(keepsLock), PROTOCOL)).toMatch(/deadlock|for ever|lock order/i)
  })

  test('a waker that waits for the end of a switch, and keeps the queue, deadlocks with the switch', () => {
    expect(findIn(batchDuringSwitch(keepsLock), PROTOCOL)).toMatch(/deadlock|for ever|lock order/i)
  })
})

describe('wakeup during the switch', () => {
  test('passes', () => passesBounded(wakeupDuringSwitch()))
  test('passes from a step earlier, when the task is still queued', () => passes(wakeupAfterPick()))
  test('passes when the task runs, yields and runs again before it sleeps', () => passes(wakeupAcrossTurns()))

  test('a waker that does not wait for onCpu enqueues a task that is on its CPU', () => {
    const wake = (s: Scheduler, task: number): boolean =>
      locked(s, task, se => {
        if (!claim(s, task)) return false
        enqueueSelected(s, se)
        return true
      })
    expect(found(wakeupDuringSwitch(wake))).toMatch('enqueued an entity that is on a CPU')
  })

  /**
   * The design's order of steps: onRq, onCpu, and only then the state; or the first two the other way round.
   */
  const designed =
    (first: 'onRq' | 'onCpu') =>
    (s: Scheduler, task: number): boolean =>
      locked(s, task, se => {
        if (first === 'onRq' && Atomics.load(s.i32, se + Entity.onRq) === 1) return false
        waitOffCpu(s, se)
        if (first === 'onCpu' && Atomics.load(s.i32, se + Entity.onRq) === 1) return false
        if (!claim(s, task)) return false
        enqueueSelected(s, se)
        return true
      })

  test('read onRq after onCpu, and a task that was picked in between looks as if it were nowhere', () => {
    expect(found(wakeupAfterPick(designed('onCpu')))).toMatch('enqueued an entity that is on a CPU')
    expect(foundAtAStep(wakeupAfterPick(designed('onCpu')))).toMatch(RUNNING_ON_ITS_WAY_OUT)
    passes(unwatched(wakeupAfterPick(designed('onRq'))), PROTOCOL)
  })

  test('claim the state after the wait, as the design does, and a task that already runs again is enqueued on its CPU', () => {
    expect(found(wakeupAcrossTurns(designed('onRq')))).toMatch('enqueued an entity that is on a CPU')
  })

  test('a bounded wait, and then relying on the switch, leaves a task that is runnable and nowhere', () => {
    const wake = (s: Scheduler, task: number): boolean =>
      locked(s, task, se => {
        if (!claim(s, task)) return false
        if (Atomics.load(s.i32, se + Entity.onCpu) !== 0) return true
        enqueueSelected(s, se)
        return true
      })
    expect(found(wakeupDuringSwitch(wake))).toMatch('runnable and nowhere')
    expect(found(wakeupAgainstSleep(sleepThenUnlock, wake))).toMatch('runnable and nowhere')
    expect(foundAtAStep(wakeupDuringSwitch(wake))).toMatch('runnable and nowhere')
  })

  test('a switch that publishes the sleeper only when it has ended leaves the waker asleep', () => {
    const finish = (s: Scheduler, prev: number): void => {
      rqDropCurrent(s, s.i32[prev + Entity.rq], prev)
      publishQueue(s, s.queue)
      release(s.thread, s.queue + RunQueue.lock)
      Atomics.store(s.i32, prev + Entity.onCpu, 0)
    }
    const yields = (s: Scheduler, why: number): number =>
      interruptInsideSwitch(s, why, () => undefined, finish)
    expect(found(wakeupAgainstSleep(sleepThenUnlock, undefined, yields))).toMatch(/lost wakeup: waker/)
  })

  test('a CPU that dies in the last steps of a switch leaves no waker asleep, unless it is not recovered', () => {
    const dies =
      (recover: (s: Scheduler) => void): Setup =>
      () => {
        const kernel = new Kernel(2, 1)
        const task = kernel.running([0, 1])
        const [{ i32, queue }] = kernel.cpus
        const se = i32[task + TaskRecord.entity]
        i32[task + TaskRecord.state] = WAKENING
        i32[queue + RunQueue.current] = i32[queue + RunQueue.idle]
        return {
          threads: {
            'CPU 0': () => endSwitch(kernel.cpus[0], se),
            waker: () => waitOffCpu(kernel.others[0], se),
          },
          recover: () => recover(kernel.others[1]),
        }
      }
    const options: CheckOptions = { crashes: { max: 1, threads: [0] }, races: false, steps: 20_000 }
    passes(
      dies(s => void recoverScheduler(s, 0)),
      options,
    )
    expect(
      findIn(
        dies(() => undefined),
        options,
      ),
    ).toMatch(/waker is (asleep|blocked)/)
  })

  test('the pi lock in finish deadlocks with a waker that holds it while it waits for onCpu', () => {
    const finish = (s: Scheduler, prev: number): void => {
      const { i32, thread, queue } = s
      rqDropCurrent(s, i32[prev + Entity.rq], prev)
      publishQueue(s, queue)
      release(thread, queue + RunQueue.lock)
      acquire(thread, prev + Entity.piLock)
      if (Atomics.load(i32, i32[prev + Entity.task] + TaskRecord.state) === RUNNING) enqueueSelected(s, prev)
      release(thread, prev + Entity.piLock)
      endSwitch(s, prev)
    }
    const yields = (s: Scheduler, why: number): number =>
      interruptInsideSwitch(s, why, () => undefined, finish)
    expect(found(wakeupAgainstSleep(sleepThenUnlock, undefined, yields))).toMatch(/deadlock|livelock/)
  })
})

describe('a rotation of fair tasks against a wakeup', () => {
  test('passes', () => passes(rotationAgainstWakeup()))

  test('without the lock of the run queue the list loses a task, or has it twice', () => {
    const unlocked = (s: Scheduler): number => {
      const prev = s.i32[s.queue + RunQueue.current]
      const next = rotateFair(s, s.queue, prev)
      if (next === 0) return prev
      s.i32[next + Entity.onCpu] = 1
      s.i32[next + Entity.onRq] = 0
      s.i32[prev + Entity.onRq] = 1
      s.i32[prev + Entity.onCpu] = 0
      return next
    }
    expect(findIn(rotationAgainstWakeup(unlocked), { shrink: 20 })).toMatch(/race|invariant|links|fair/)
  })
})

describe('a checkpoint that is due against a wakeup', () => {
  test('passes', () => passes(checkpointAgainstWakeup()))

  test('a tick that the next switch arms does not come: there may be no switch', () => {
    const atSwitch = (s: Scheduler, at: number): void => void (s.moveAt = at)
    expect(found(checkpointAgainstWakeup(atSwitch))).toMatch('too late, or never')
  })

  test('without the lock of the run queue the end of the slice replaces it', () => {
    const unlocked = (s: Scheduler, at: number): void => {
      s.moveAt = at
      armTick(s, s.queue)
    }
    expect(found(checkpointAgainstWakeup(unlocked))).toMatch('too late, or never')
  })
})

describe('self-wakeup', () => {
  test('passes with the interrupt before the pick', () => passes(selfWakeup(interruptThenYield)))
  test('passes with the interrupt inside the switch', () => passes(selfWakeup(interruptInsideSwitch)))

  test('finish without the re-read loses a task that an interrupt has woken', () => {
    const finish = (s: Scheduler, prev: number): void => {
      rqDropCurrent(s, s.i32[prev + Entity.rq], prev)
      publishQueue(s, s.queue)
      release(s.thread, s.queue + RunQueue.lock)
      endSwitch(s, prev)
    }
    const yields = (s: Scheduler, why: number, interrupt: () => void): number =>
      interruptInsideSwitch(s, why, interrupt, finish)
    expect(found(selfWakeup(yields))).toMatch('runnable and nowhere')
    expect(foundAtAStep(selfWakeup(yields))).toMatch('runnable and nowhere')
  })
})

describe('wakeup against sleep', () => {
  test('passes', () => passes(wakeupAgainstSleep()))

  test('unlock before the state says asleep, and the wakeup is lost', () => {
    const unlockThenSleep = (s: Scheduler, task: number, lock: number): boolean => {
      release(s.thread, lock)
      return beginSleep(s, task, INTERRUPTIBLE)
    }
    expect(found(wakeupAgainstSleep(unlockThenSleep))).toMatch('it sleeps, and the event has come')
  })
})

describe('stop', () => {
  test('against a wakeup passes', () => passes(stopAgainstWakeup()))
  test('against the switch passes', () => passes(stopAgainstSwitch()))
  test('a flag set without the locks leaves a stopped task on a queue', () => {
    const stop = (s: Scheduler, task: number): boolean => {
      const { i32, thread } = s
      const se = i32[task + TaskRecord.entity]
      Atomics.store(i32, task + TaskRecord.stopped, 1)
      if (Atomics.load(i32, se + Entity.onRq) === 0) return true
      const queue = s.queueOf(i32[se + Entity.cpu])
      acquire(thread, queue + RunQueue.lock)
      const rq = i32[se + Entity.rq]
      rqDequeueTask(s, rq, se)
      Atomics.store(i32, se + Entity.onRq, 0)
      publishCount(s, rq, se)
      publishQueue(s, queue)
      release(thread, queue + RunQueue.lock)
      return true
    }
    expect(found(stopAgainstWakeup(stop))).toMatch('asleep, stopped or dead is on a queue')
    expect(found(stopAgainstSwitch(stop))).toMatch('asleep, stopped or dead is on a queue')
    expect(foundAtAStep(stopAgainstWakeup(stop))).toMatch('a stopped task waits on a queue')
  })

  test('a switch that names its next one before it takes it out has it in two places, for a step', () => {
    const yields = (s: Scheduler, why: number): number => {
      const { i32, queue } = s
      acquire(s.thread, queue + RunQueue.lock)
      const prev = i32[queue + RunQueue.current]
      i32[queue + RunQueue.contender] = 0
      const next = rqPickNextTask(s, queue)
      i32[queue + RunQueue.current] = next
      contextSwitchPrepare(s, prev, next, why)
      contextSwitchFinish(s, prev, next, why)
      return next
    }
    passes(unwatched(stopAgainstSwitch(schedulerStop, yields)))
    expect(foundAtAStep(stopAgainstSwitch(schedulerStop, yields))).toMatch('a task is in two places at once')
  })
})

describe('continue while still on the CPU', () => {
  test('passes', () => passesBounded(continueOnCpu()))

  test('without the wait for onCpu the task is scheduled twice', () => {
    const continues = (s: Scheduler, task: number): boolean =>
      locked(s, task, se => {
        const { i32, thread } = s
        if (Atomics.load(i32, task + TaskRecord.stopped) === 0) return false
        Atomics.store(i32, task + TaskRecord.stopped, 0)
        if (Atomics.load(i32, task + TaskRecord.state) !== RUNNING) return true
        const queue = s.queueOf(selectTaskRq(s, se))
        acquire(thread, queue + RunQueue.lock)
        Atomics.store(i32, se + Entity.onRq, 1)
        placeOn(s, queue, se)
        release(thread, queue + RunQueue.lock)
        return true
      })
    expect(found(continueOnCpu(continues))).toMatch(/both on a queue and on a CPU|double insert|is on a CPU/)
    expect(foundAtAStep(continueOnCpu(continues))).toMatch('a task is in two places at once')
  })
})

describe('affinity change against wakeup', () => {
  test('passes', () => passes(affinityAgainstWakeup()))

  test('a mask written without the pi lock sends the task where it was never allowed', () => {
    const set = (s: Scheduler, task: number, low: number, high: number): void => {
      const se = s.i32[task + TaskRecord.entity]
      Atomics.store(s.i32, se + Entity.affinityMask, low)
      Atomics.store(s.i32, se + Entity.affinityMask + 1, high)
    }
    expect(found(affinityAgainstWakeup(set))).toMatch('it is on a CPU that it was never allowed on')
  })
})

describe('a CPU going offline against enqueue', () => {
  test('passes', () => passesBounded(offlineAgainstEnqueue()))

  test('without a second read of `online` the task waits on a CPU that is offline', () => {
    const wake = (s: Scheduler, task: number): boolean =>
      locked(s, task, se => {
        if (!claim(s, task)) return false
        waitOffCpu(s, se)
        const queue = s.queueOf(selectTaskRq(s, se))
        acquire(s.thread, queue + RunQueue.lock)
        if (Atomics.compareExchange(s.i32, se + Entity.onRq, 0, 1) === 0) placeOn(s, queue, se)
        release(s.thread, queue + RunQueue.lock)
        return true
      })
    expect(found(offlineAgainstEnqueue(wake))).toMatch(/a CPU that (is|has) gone/)
  })
})

describe('arrivals', () => {
  test('a task is not forgotten by the CPU that takes', () => passes(arrivalAgainstTake()))

  test('a bit that is set before the list has the task is cleared too early', () => {
    const start = (s: Scheduler, task: number): void => {
      s.arrivals.mark(0)
      s.i32[s.i32[task + TaskRecord.entity] + Entity.policy] |= POLICY_ARRIVED
      s.arrivals.push(0, task)
    }
    expect(found(arrivalAgainstTake(start))).toMatch('its CPU does not know')
  })

  test('a task does not stay behind on a CPU that goes', () => passes(arrivalAgainstOffline()))

  test('without a second read of the CPU it does', () => {
    const start = (s: Scheduler, task: number): void => {
      const cpu = s.arrivals.choose(s)
      s.i32[s.i32[task + TaskRecord.entity] + Entity.policy] |= POLICY_ARRIVED
      if (s.arrivals.push(cpu, task)) s.arrivals.mark(cpu)
    }
    expect(found(arrivalAgainstOffline(start))).toMatch('for a CPU that has gone')
  })
})

describe('a late timer against the next sleep', () => {
  test('passes', () => passes(lateTimer()))

  test('a timer that does not check which sleep it belongs to ends the next one', () => {
    const expire = (s: Scheduler): void => {
      acquire(s.thread, s.queue + RunQueue.timerLock)
      const node = s.timers[s.cpu].expire(s.clock)
      release(s.thread, s.queue + RunQueue.timerLock)
      if (node !== 0) wakeupTask(s, node - TaskRecord.timer)
    }
    expect(found(lateTimer(expire))).toMatch('a late timer ended the next sleep')
  })

  test('one that reads the sleep first and the state second does too', () => {
    const expire = (s: Scheduler): void => {
      acquire(s.thread, s.queue + RunQueue.timerLock)
      const task = s.timers[s.cpu].expire(s.clock) - TaskRecord.timer
      const sleeps = task < 0 ? 0 : Atomics.load(s.i32, task + TaskRecord.sleeps)
      release(s.thread, s.queue + RunQueue.timerLock)
      if (task < 0) return
      locked(s, task, () => {
        if (Atomics.load(s.i32, task + TaskRecord.sleeps) === sleeps)
          schedulerWakeup(s, task, WAKE_ANY, SLEEP_TIMED_OUT)
      })
    }
    expect(found(lateTimer(expire))).toMatch('a late timer ended the next sleep')
  })
})

describe('a timer that is adopted against the next sleep', () => {
  test('passes', () => passes(adoptionAgainstSleep()))

  test('one that is put on the queue wherever it is armed is on two', () => {
    const adopt = (s: Scheduler, gone: number): number => {
      const lock = s.queueOf(gone) + RunQueue.timerLock
      acquire(s.thread, lock)
      const node = s.timers[gone].first()
      const deadline = s.timers[gone].next()
      if (node !== 0) {
        s.timers[gone].remove(node)
        Atomics.store(s.i32, node - TaskRecord.timer + TaskRecord.timerCpu, s.cpu)
      }
      release(s.thread, lock)
      if (node === 0) return 0
      acquire(s.thread, s.queue + RunQueue.timerLock)
      if (s.i32[node - TaskRecord.timer + TaskRecord.timerArmed] !== 0) s.timers[s.cpu].insert(node, deadline)
      release(s.thread, s.queue + RunQueue.timerLock)
      return 1
    }
    expect(found(adoptionAgainstSleep(adopt))).toMatch(/on a deadline queue already|or on two/)
  })
})
