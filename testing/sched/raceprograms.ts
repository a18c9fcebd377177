/**
 * The scheduler's races as programs for the checker (races.check.ts). Each takes the critical step as a
 * parameter, so that races.test.ts can pass a broken one and see that it is found. Two CPUs, one or two FIFO
 * tasks; every virtual thread is a CPU or a plain thread that calls the kernel, and runs the kernel's own
 * functions.
 *
 * At every step the checker checks where the tasks are (everystep.ts): never on two queues, never both on a
 * queue and on a CPU, never runnable and nowhere. At the end checkInvariants also checks counts, masks and
 * published words.
 */
import { assert } from '../../src/arena/assert.ts'
import { acquire, release } from '../../src/arena/sync/spinlock.ts'
import type { Setup } from '../../src/checker/check.ts'
import { CpuRecord, cpuRecord } from '../../src/machine/core/cpurecord.ts'
import { isBefore, momentOf } from '../../src/machine/timekeeper/timekeeper.ts'
import { setAffinity } from '../../src/sched/balance/affinity.ts'
import { startByArrival, takeArrivals } from '../../src/sched/core/arrivals.ts'
import { rqPickNextTask } from '../../src/sched/classes/classrq.ts'
import { Entity } from '../../src/sched/core/entity.ts'
import { createTask } from '../../src/sched/core/fork.ts'
import { cpuOffline } from '../../src/sched/balance/hotplug.ts'
import { FAIR_PRIORITY, makePriority } from '../../src/sched/core/priority.ts'
import { RunQueue } from '../../src/sched/core/runqueue.ts'
import { Scheduler } from '../../src/sched/core/scheduler.ts'
import { setPriority } from '../../src/sched/core/setpriority.ts'
import { beginSleep, endSleep } from '../../src/sched/core/sleep.ts'
import { schedulerContinue, schedulerStop } from '../../src/sched/core/stop.ts'
import {
  contextSwitchFinish,
  contextSwitchPrepare,
  SWITCH_PREEMPTED,
  schedule,
  SWITCH_SLEEPS,
  SWITCH_YIELDS,
} from '../../src/sched/core/switch.ts'
import {
  INTERRUPTIBLE,
  isSleeping,
  RUNNING,
  TaskRecord,
  WAKE_ANY,
  SLEEP_WOKEN,
} from '../../src/sched/core/taskrecord.ts'
import { interruptBy } from '../../src/sched/core/tick.ts'
import { adoptTimers, expireTimers } from '../../src/sched/core/timer.ts'
import { wakeupAll } from '../../src/sched/core/wakebatch.ts'
import { wakeSelf, wakeupTask } from '../../src/sched/core/wakeup.ts'
import { Kernel } from './kernel.ts'

export type Wake = (s: Scheduler, task: number) => boolean
export type Yield = (s: Scheduler, why: number) => number

/** Two CPUs wake one task: it is enqueued once, by one of them. */
export function doubleWakeup(wake: Wake = wakeupTask): Setup {
  return () => {
    const kernel = new Kernel(2, 1)
    const task = kernel.asleep()
    return {
      always: kernel.always(task),
      threads: {
        'waker 1': () => wake(kernel.others[0], task),
        'waker 2': () => wake(kernel.others[1], task),
      },
      final: ({ results }) => {
        kernel.check()
        assert(results.filter(Boolean).length === 1, 'not exactly one waker woke the task')
        assert(kernel.onRq(task), 'the task is not queued')
      },
    }
  }
}

export type WakeAll = (s: Scheduler, tasks: readonly number[]) => void

/** A thread wakes two tasks together, while another one changes the priority of the second. */
export function batchAgainstChange(wake: WakeAll = wakeupAll): Setup {
  return () => {
    const kernel = new Kernel(1, 2)
    const tasks = [kernel.asleep([0]), kernel.asleep([0])]
    return {
      threads: {
        waker: () => wake(kernel.others[0], tasks),
        changer: () => setPriority(kernel.others[1], tasks[1], makePriority(7, 0)),
      },
      final: () => {
        kernel.check()
        for (const task of tasks) assert(kernel.onRq(task), 'a task of the batch is not queued')
      },
    }
  }
}

/** A thread wakes two tasks together; the second is still on its way out of the CPU that queues them. */
export function batchDuringSwitch(wake: WakeAll = wakeupAll): Setup {
  return () => {
    const kernel = new Kernel(1, 2)
    const second = kernel.running([0])
    const first = kernel.asleep([0])
    const [s0] = kernel.cpus
    return {
      threads: {
        'CPU 0': () => {
          if (beginSleep(s0, second, INTERRUPTIBLE)) schedule(s0, SWITCH_SLEEPS)
        },
        waker: () => wake(kernel.others[0], [first, second]),
      },
      final: () => {
        kernel.check()
        assert(kernel.state(first) === RUNNING, 'the first task of the batch sleeps')
      },
    }
  }
}

/** Two threads wake the same two tasks, in opposite orders: each task is enqueued once. */
export function twoBatches(): Setup {
  return () => {
    const kernel = new Kernel(1, 2, false)
    const [first, second] = [kernel.asleep([0]), kernel.asleep([0])]
    return {
      threads: {
        'waker 1': () => wakeupAll(kernel.others[0], [first, second]),
        'waker 2': () => wakeupAll(kernel.others[1], [second, first]),
      },
      final: () => {
        kernel.check()
        for (const task of [first, second]) assert(kernel.onRq(task), 'a task of the batch is not queued')
      },
    }
  }
}

/**
 * CPU 0 picks the queued task, which goes to sleep and switches away, while another thread wakes it; CPU 1
 * runs any task that it gets. A lock guards the condition, so that no wakeup is needless.
 */
export function wakeupDuringSwitch(wake: Wake = wakeupTask, yields: Yield = schedule): Setup {
  return () => {
    const kernel = new Kernel(2, 1, false)
    const task = kernel.running([0, 1])
    const [s0, s1] = kernel.cpus
    return {
      always: kernel.always(task),
      threads: {
        'CPU 0': () => {
          if (beginSleep(s0, task, INTERRUPTIBLE)) yields(s0, SWITCH_SLEEPS)
        },
        waker: () => wake(kernel.others[0], task),
        'CPU 1': () => schedule(s1, SWITCH_PREEMPTED),
      },
      final: ({ results }) => {
        kernel.check()
        if (results[1] === true) assert(kernel.state(task) === RUNNING, 'it was woken and does not run')
      },
    }
  }
}

/** As above from one step earlier: the task is still queued when the waker starts. */
export function wakeupAfterPick(wake: Wake = wakeupTask): Setup {
  return () => {
    const kernel = new Kernel(1, 1)
    const task = kernel.queued()
    const [s0] = kernel.cpus
    return {
      always: kernel.always(task),
      threads: {
        'CPU 0': () => {
          schedule(s0, SWITCH_PREEMPTED)
          if (beginSleep(s0, task, INTERRUPTIBLE)) schedule(s0, SWITCH_SLEEPS)
        },
        waker: () => wake(kernel.others[0], task),
      },
      final: () => kernel.check(),
    }
  }
}

/** What a CPU does between the sleep of its task and the task that it runs next. */
export type BetweenTasks = (s: Scheduler, why: number, callback: () => void) => void

/** The switch first, then the turn of the event loop, as in cpuLoop. */
export const switchThenTurn: BetweenTasks = (s, why, callback) => {
  schedule(s, why)
  callback()
}

export const turnThenSwitch: BetweenTasks = (s, why, callback) => {
  callback()
  schedule(s, why)
}

/** The tasks of two CPUs go to sleep, and each CPU's event loop has a callback that wakes the other task. */
export function turnsAgainstEachOther(between: BetweenTasks = switchThenTurn): Setup {
  return () => {
    const kernel = new Kernel(2, 2)
    const [s0, s1] = kernel.cpus
    const first = kernel.running([0])
    const second = kernel.asleep([1])
    wakeupTask(kernel.others[0], second)
    schedule(s1, SWITCH_PREEMPTED)
    const run = (s: Scheduler, own: number, other: number): void => {
      if (beginSleep(s, own, INTERRUPTIBLE)) between(s, SWITCH_SLEEPS, () => wakeupTask(s, other))
    }
    return {
      threads: { 'CPU 0': () => run(s0, first, second), 'CPU 1': () => run(s1, second, first) },
      final: () => kernel.check(),
    }
  }
}

/**
 * The task runs, is preempted by an equal task that yields immediately, runs again, and sleeps; a waker runs
 * at any time.
 */
export function wakeupAcrossTurns(wake: Wake = wakeupTask): Setup {
  return () => {
    const kernel = new Kernel(1, 2)
    const task = kernel.running()
    const other = kernel.queued()
    const [s0] = kernel.cpus
    return {
      always: kernel.always(task, other),
      threads: {
        'CPU 0': () => {
          schedule(s0, SWITCH_YIELDS)
          schedule(s0, SWITCH_YIELDS)
          if (beginSleep(s0, task, INTERRUPTIBLE)) schedule(s0, SWITCH_SLEEPS)
        },
        waker: () => wake(kernel.others[0], task),
      },
      final: () => kernel.check(),
    }
  }
}

/**
 * Two fair tasks yield to each other by a rotation of their list (rotatefair.ts), while another thread wakes
 * a third one onto the same queue.
 */
export function rotationAgainstWakeup(yields: Yield = schedule): Setup {
  return () => {
    const kernel = new Kernel(1, 3)
    const [s0] = kernel.cpus
    const task = kernel.asleep([0])
    for (const other of [kernel.running(), kernel.queued(), task]) {
      setPriority(kernel.others[0], other, FAIR_PRIORITY)
    }
    for (let turn = 0; turn < 3; turn++) schedule(s0, SWITCH_YIELDS)
    return {
      threads: {
        'CPU 0': () => {
          yields(s0, SWITCH_YIELDS)
          yields(s0, SWITCH_YIELDS)
        },
        waker: () => wakeupTask(kernel.others[0], task),
      },
      final: () => kernel.check(),
    }
  }
}

export type InterruptBy = (s: Scheduler, at: number) => void

/**
 * A CPU asks to be interrupted soon, for a checkpoint of the fair task that runs, while another thread wakes
 * a second one onto the same queue: that arms the tick for the end of the slice.
 */
export function checkpointAgainstWakeup(by: InterruptBy = interruptBy): Setup {
  return () => {
    const kernel = new Kernel(1, 2)
    const [s0] = kernel.cpus
    // It is nice: it does not displace the one that runs.
    const task = createTask(kernel.others[0], { priority: FAIR_PRIORITY, nice: 19, affinity: [0] })
    setPriority(kernel.others[0], kernel.running(), FAIR_PRIORITY)
    schedule(s0, SWITCH_PREEMPTED)
    Atomics.store(kernel.i32, cpuRecord(s0.machine, 0) + CpuRecord.needResched, 0)
    const soon = s0.clock + s0.slice / 2
    return {
      threads: {
        'CPU 0': () => by(s0, soon),
        waker: () => wakeupTask(kernel.others[0], task),
      },
      final: () => {
        kernel.check()
        const { i32 } = kernel
        const record = cpuRecord(s0.machine, 0)
        const end = Atomics.load(i32, record + CpuRecord.sliceEnd)
        const comes = end !== 0 && !isBefore(momentOf(soon), end)
        assert(comes || i32[record + CpuRecord.needResched] !== 0, 'the interrupt comes too late, or never')
      },
    }
  }
}

/** An interrupt on the sleeper's own CPU wakes it before it has switched away; another CPU wakes it too. */
export function selfWakeup(yields: (s: Scheduler, why: number, interrupt: () => void) => number): Setup {
  return () => {
    const kernel = new Kernel(1, 1)
    const task = kernel.running()
    const [s0] = kernel.cpus
    return {
      always: kernel.always(task),
      threads: {
        'CPU 0': () => {
          if (!beginSleep(s0, task, INTERRUPTIBLE)) return
          yields(s0, SWITCH_SLEEPS, () => void wakeSelf(s0, task, WAKE_ANY, SLEEP_WOKEN))
        },
        waker: () => wakeupTask(kernel.others[0], task),
      },
      final: () => {
        kernel.check()
        assert(kernel.state(task) === RUNNING, 'the interrupt woke it')
      },
    }
  }
}

/** With the interrupt before the pick, which is where a CPU's own timers expire. */
export function interruptThenYield(s: Scheduler, why: number, interrupt: () => void): number {
  interrupt()
  return schedule(s, why)
}

/** With the interrupt in the middle of the switch: the state was asleep when the next task was picked. */
export function interruptInsideSwitch(
  s: Scheduler,
  why: number,
  interrupt: () => void,
  finish: typeof contextSwitchFinish = contextSwitchFinish,
): number {
  const { i32, queue, thread } = s
  acquire(thread, queue + RunQueue.lock)
  const prev = i32[queue + RunQueue.current]
  i32[queue + RunQueue.contender] = 0
  const next = rqPickNextTask(s, queue)
  contextSwitchPrepare(s, prev, next, why)
  interrupt()
  i32[queue + RunQueue.current] = next
  finish(s, prev, next, why)
  return next
}

export type SleepOnLock = (s: Scheduler, task: number, lock: number) => boolean

export function sleepThenUnlock(s: Scheduler, task: number, lock: number): boolean {
  const sleeps = beginSleep(s, task, INTERRUPTIBLE)
  release(s.thread, lock)
  return sleeps
}

/** A sleeper that waits for an event under a lock never misses it. */
export function wakeupAgainstSleep(
  sleep: SleepOnLock = sleepThenUnlock,
  wake: Wake = wakeupTask,
  yields: Yield = schedule,
): Setup {
  return () => {
    const kernel = new Kernel(1, 1)
    const task = kernel.running()
    const [s0] = kernel.cpus
    const { i32, lock } = kernel
    const event = lock + 2
    return {
      always: kernel.always(task),
      threads: {
        sleeper: () => {
          acquire(s0.thread, lock)
          if (i32[event] !== 0) {
            release(s0.thread, lock)
            return
          }
          if (sleep(s0, task, lock)) yields(s0, SWITCH_SLEEPS)
        },
        waker: () => {
          const { thread } = kernel.others[0]
          acquire(thread, lock)
          i32[event] = 1
          release(thread, lock)
          wake(kernel.others[0], task)
        },
      },
      final: () => {
        kernel.check()
        assert(!isSleeping(kernel.state(task)), 'it sleeps, and the event has come')
      },
    }
  }
}

export type Stop = (s: Scheduler, task: number) => boolean

/** A task is stopped while it is woken: it ends up RUNNING, stopped, and on no queue. */
export function stopAgainstWakeup(stop: Stop = schedulerStop): Setup {
  return () => {
    const kernel = new Kernel(1, 1)
    const task = kernel.asleep([0])
    return {
      always: kernel.always(task),
      threads: {
        stopper: () => stop(kernel.others[0], task),
        waker: () => wakeupTask(kernel.others[1], task),
      },
      final: () => {
        kernel.check()
        assert(kernel.state(task) === RUNNING && !kernel.onRq(task), 'a stopped task waits on a queue')
      },
    }
  }
}

/** A task is stopped while its CPU switches away from it: it is on no queue afterwards. */
export function stopAgainstSwitch(stop: Stop = schedulerStop, yields: Yield = schedule): Setup {
  return () => {
    const kernel = new Kernel(1, 2)
    const task = kernel.running()
    const other = kernel.queued()
    return {
      always: kernel.always(task, other),
      threads: {
        'CPU 0': () => yields(kernel.cpus[0], SWITCH_YIELDS),
        stopper: () => stop(kernel.others[0], task),
      },
      final: () => {
        kernel.check()
        assert(!kernel.onRq(task), 'a stopped task waits on a queue')
      },
    }
  }
}

export type Continue = (s: Scheduler, task: number) => boolean

/** A stopped task is continued while its CPU is still switching away from it, and CPU 1 checks for work. */
export function continueOnCpu(continues: Continue = schedulerContinue): Setup {
  return () => {
    const kernel = new Kernel(2, 1, false)
    const task = kernel.running([0, 1])
    schedulerStop(kernel.others[0], task)
    return {
      always: kernel.always(task),
      threads: {
        'CPU 0': () => schedule(kernel.cpus[0], SWITCH_PREEMPTED),
        continuer: () => continues(kernel.others[0], task),
        'CPU 1': () => schedule(kernel.cpus[1], SWITCH_PREEMPTED),
      },
      final: () => {
        kernel.check()
        assert(kernel.onRq(task) || kernel.current(0) === task || kernel.current(1) === task, 'it is nowhere')
      },
    }
  }
}

/** CPUs that are needed for a mask of two words. */
const MANY = 34

export type SetAffinity = (s: Scheduler, task: number, low: number, high: number) => void

/** The mask changes from CPU 0 to CPU 33 while the task is woken: it goes to one of these two CPUs. */
export function affinityAgainstWakeup(set: SetAffinity = setAffinity): Setup {
  return () => {
    const kernel = new Kernel(MANY, 1)
    const task = kernel.asleep([0])
    // It ran on CPU 5 last: it goes there if it may run on every CPU.
    kernel.i32[kernel.i32[task + TaskRecord.entity] + Entity.cpu] = 5
    return {
      always: kernel.always(task),
      threads: {
        changer: () => set(kernel.others[0], task, 0, 2),
        waker: () => wakeupTask(kernel.others[1], task),
      },
      final: () => {
        kernel.check()
        const cpu = kernel.i32[kernel.i32[task + TaskRecord.entity] + Entity.cpu]
        assert(kernel.onRq(task) && (cpu === 0 || cpu === 33), 'it is on a CPU that it was never allowed on')
      },
    }
  }
}

/** A task is woken while its CPU goes offline: it ends up on a CPU that stays. */
export function offlineAgainstEnqueue(wake: Wake = wakeupTask): Setup {
  return () => {
    const kernel = new Kernel(2, 1, false)
    const task = kernel.asleep()
    kernel.i32[kernel.i32[task + TaskRecord.entity] + Entity.cpu] = 1
    return {
      always: kernel.always(task),
      threads: {
        'CPU 1': () => cpuOffline(kernel.cpus[1], SWITCH_PREEMPTED),
        waker: () => wake(kernel.others[0], task),
      },
      final: () => {
        kernel.check()
        assert(kernel.onRq(task), 'the task is not queued')
        assert(
          kernel.i32[kernel.i32[task + TaskRecord.entity] + Entity.cpu] === 0,
          'it waits on a CPU that has gone',
        )
      },
    }
  }
}

export type Start = (s: Scheduler, task: number) => void

/** A new ordinary task, not started. */
function ordinary(kernel: Kernel): number {
  return createTask(kernel.others[0])
}

/**
 * Two tasks arrive for a CPU that takes its arrivals: both are started.
 */
export function arrivalAgainstTake(start: Start = startByArrival): Setup {
  return () => {
    const kernel = new Kernel(1, 2, false)
    const [s] = kernel.cpus
    const tasks = [ordinary(kernel), ordinary(kernel)]
    return {
      threads: {
        'CPU 0': () => takeArrivals(s, 0),
        spawner: () => {
          for (const task of tasks) start(kernel.others[0], task)
        },
      },
      final: () => {
        // The bit is set for a task that it has not taken.
        while (s.arrivals.has(0)) takeArrivals(s, 0)
        kernel.check()
        for (const task of tasks) assert(kernel.onRq(task), 'a task has arrived, and its CPU does not know')
      },
    }
  }
}

/** A task arrives for a CPU that goes offline: it ends up on a CPU that stays. */
export function arrivalAgainstOffline(start: Start = startByArrival): Setup {
  return () => {
    const kernel = new Kernel(2, 1, false)
    const task = ordinary(kernel)
    const [stays, goes] = [kernel.cpus[1], kernel.cpus[0]]
    return {
      threads: {
        'CPU 0': () => cpuOffline(goes, SWITCH_PREEMPTED),
        spawner: () => start(kernel.others[0], task),
      },
      final: () => {
        while (stays.arrivals.has(1)) takeArrivals(stays, 1)
        kernel.check()
        assert(kernel.onRq(task), 'a task has arrived for a CPU that has gone')
      },
    }
  }
}

/**
 * A timer fires on CPU 0 while CPU 1 wakes the sleeper, runs it, and it goes to sleep again without a
 * timeout: the timer does not end that second sleep.
 */
export function lateTimer(expire: (s: Scheduler) => void = expireTimers): Setup {
  return () => {
    const kernel = new Kernel(2, 1, false)
    const task = kernel.running([0, 1])
    const [s0, s1] = kernel.cpus
    beginSleep(s0, task, INTERRUPTIBLE, 0)
    schedule(s0, SWITCH_SLEEPS)
    // It goes to CPU 1 when it is woken.
    setAffinity(kernel.others[0], task, 2, 0)
    return {
      always: kernel.always(task),
      threads: {
        'CPU 0': () => expire(s0),
        'CPU 1': () => {
          if (!wakeupTask(s1, task)) return false
          schedule(s1, SWITCH_PREEMPTED)
          endSleep(s1, task, 0)
          if (beginSleep(s1, task, INTERRUPTIBLE)) schedule(s1, SWITCH_SLEEPS)
          return true
        },
      },
      final: ({ results }) => {
        kernel.check()
        if (results[1] === true) assert(isSleeping(kernel.state(task)), 'a late timer ended the next sleep')
      },
    }
  }
}

/**
 * CPU 1 adopts the timer of a sleeper from CPU 0, which has gone, while CPU 2 wakes the sleeper, runs it, and
 * it goes to sleep again with another timeout: its timer is on one queue, that of CPU 2.
 */
export function adoptionAgainstSleep(adopt: (s: Scheduler, gone: number) => number = adoptTimers): Setup {
  return () => {
    const kernel = new Kernel(3, 1, false)
    const task = kernel.running([0, 1, 2])
    const [gone, adopter, runner] = kernel.cpus
    beginSleep(gone, task, INTERRUPTIBLE, 5)
    schedule(gone, SWITCH_SLEEPS)
    cpuOffline(gone, SWITCH_PREEMPTED)
    setAffinity(kernel.others[0], task, 1 << runner.cpu, 0)
    return {
      always: kernel.always(task),
      threads: {
        'CPU 1': () => void adopt(adopter, gone.cpu),
        'CPU 2': () => {
          wakeupTask(runner, task)
          schedule(runner, SWITCH_PREEMPTED)
          endSleep(runner, task, 5)
          if (beginSleep(runner, task, INTERRUPTIBLE, 7)) schedule(runner, SWITCH_SLEEPS)
        },
      },
      final: () => {
        kernel.check()
        const counts = runner.timers.map(({ count }) => count)
        assert(counts.join() === '0,0,1', 'the timer is not on the queue that it was armed on, or on two')
        assert(runner.timers[runner.cpu].next() === 8, 'the timer does not have its own deadline')
      },
    }
  }
}
