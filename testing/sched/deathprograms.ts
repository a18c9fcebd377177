/**
 * A CPU dies at every step of every kernel operation, as programs for the checker (recovery.check.ts). CPU 0
 * is mortal: it does one thing. When it has died, another thread recovers it, and the tasks that live are run
 * to their end on CPU 1: each that wants to run is picked, once, and none is there that should not be.
 *
 * A task that CPU 0 has started is bound to it, and must be among the lost; any other must be where its state
 * says.
 */
import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { bindTask, setAffinity } from '../../src/sched/balance/affinity.ts'
import { startByArrival, takeArrivals } from '../../src/sched/core/arrivals.ts'
import { Entity, POLICY_BOUND } from '../../src/sched/core/entity.ts'
import { exitTask, reapTask } from '../../src/sched/core/exit.ts'
import { createTask } from '../../src/sched/core/fork.ts'
import { endLost, type LostTask } from '../../src/sched/recovery/lost.ts'
import {
  FAIR_PRIORITY,
  IDLE_MAJOR_PRIORITY,
  majorPriority,
  makePriority,
  weightOfNice,
} from '../../src/sched/core/priority.ts'
import { Kernel } from './raceprograms.ts'
import { recoverScheduler } from '../../src/sched/recovery/recovery.ts'
import { RunQueue } from '../../src/sched/core/runqueue.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { setNice, setPriority } from '../../src/sched/core/setpriority.ts'
import { beginSleep, wakeupOnChannel } from '../../src/sched/core/sleep.ts'
import { stealTask } from '../../src/sched/balance/steal.ts'
import { schedulerContinue, schedulerStop } from '../../src/sched/core/stop.ts'
import {
  SWITCH_EXITS,
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
  UNINTERRUPTIBLE,
  UNUSED,
  ZOMBIE,
} from '../../src/sched/core/taskrecord.ts'
import { armTimer, cancelTimer, expireTimers } from '../../src/sched/core/timer.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'
import { forkTask } from './tasks.ts'

export type Recover = (s: Scheduler, dead: number) => LostTask[]

const MORTAL = 0
const SURVIVOR = 1
const BOTH = [MORTAL, SURVIVOR]

/** What CPU 0 does, what another thread does meanwhile, and what must be so in the end. */
export interface Deed {
  /** Sets the scene; all of this is done before anyone can die. */
  readonly scene: (kernel: Kernel) => { mortal: () => unknown; other?: () => unknown; final?: () => void }
  readonly tasks: number
  /** Another thread goes on beside the recovery. */
  readonly beside?: boolean
}

export function death(deed: Deed, recover: Recover = recoverScheduler): Setup {
  return () => {
    const kernel = new Kernel(2, deed.tasks, false)
    const { mortal, other, final } = deed.scene(kernel)
    const [, rescuer] = kernel.others
    return {
      threads: { 'CPU 0': mortal, ...(other && { other }) },
      recover: (dead: number) => {
        const lost = recover(rescuer, dead).map(({ task }) => task)
        for (const task of lost) assert(isBound(kernel, task), 'a task that was never started is lost')
        endLost(rescuer, lost)
      },
      final: ({ crashed }: { crashed: readonly number[] }) => {
        kernel.check()
        final?.()
        if (crashed.length > 0) goOn(kernel)
      },
    }
  }
}

function isBound({ i32 }: Kernel, task: number): boolean {
  return (i32[i32[task + TaskRecord.entity] + Entity.policy] & POLICY_BOUND) !== 0
}

/**
 * CPU 1 runs whatever wants to run, until nothing does. Whatever sleeps can be woken; then all memory can be
 * given back.
 */
function goOn(kernel: Kernel): void {
  const { i32, cpus, others } = kernel
  const s = cpus[SURVIVOR]
  const idle = i32[s.queue + RunQueue.idle]
  for (const task of living(kernel)) {
    assert(kernel.state(task) !== ZOMBIE, 'a task that has ended was not reaped')
    assert(
      !isBound(kernel, task) || i32[i32[task + TaskRecord.entity] + Entity.cpu] !== MORTAL,
      'a lost task lives',
    )
    schedulerContinue(others[0], task)
    wakeupTask(others[0], task)
  }
  let why = SWITCH_PREEMPTED
  const ran = new Set<number>()
  for (let turns = 0; ; turns++) {
    assert(turns < 8, 'the tasks come to no end')
    const prev = i32[s.queue + RunQueue.current]
    const current = schedule(s, why)
    if (why === SWITCH_EXITS) reapTask(others[0], i32[prev + Entity.task])
    if (current === idle) break
    const task = i32[current + Entity.task]
    assert(!ran.has(task), 'a task runs on after its end')
    ran.add(task)
    exitTask(s, task, 0)
    why = SWITCH_EXITS
  }
  kernel.check()
  assert(living(kernel).length === 0, 'a task was never run')
  for (const { cpu, rcu } of cpus) rcu.offline(i32, cpu)
  for (const { rcu, thread } of [...cpus, ...others]) rcu.runCallbacks(thread)
  assert(s.tasks.count(i32) === s.cpus, 'a task’s slot is not given back')
  assert(s.entities.count(i32) === s.cpus, 'an entity’s slot is not given back')
}

function living({ i32, cpus }: Kernel): number[] {
  const { tasks } = cpus[0]
  const found: number[] = []
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (i32[task + TaskRecord.state] === UNUSED) continue
    if (majorPriority(i32[i32[task + TaskRecord.entity] + Entity.priority]) < IDLE_MAJOR_PRIORITY)
      found.push(task)
  }
  return found
}

/** Runs on CPU 0, where it has been started. */
function started(kernel: Kernel): number {
  const task = kernel.running(BOTH)
  bindTask(kernel.cpus[MORTAL], task)
  return task
}

/** Waits on the queue of CPU 1, or runs there. */
function onSurvivor(kernel: Kernel, runs: boolean, affinity: number[] = [SURVIVOR]): number {
  const task = kernel.asleep([SURVIVOR])
  wakeupTask(kernel.others[0], task)
  if (runs) schedule(kernel.cpus[SURVIVOR], SWITCH_PREEMPTED)
  setAffinity(
    kernel.others[0],
    task,
    affinity.reduce((mask, cpu) => mask | (1 << cpu), 0),
    0,
  )
  return task
}

export const wakeupOfOther: Deed = {
  tasks: 1,
  scene: kernel => {
    const task = kernel.asleep(BOTH)
    return { mortal: () => wakeupTask(kernel.cpus[MORTAL], task) }
  },
}

/** Two wake it at once; one of them dies. */
export const doubleWakeup: Deed = {
  beside: true,
  tasks: 1,
  scene: kernel => {
    const task = kernel.asleep([SURVIVOR])
    return {
      mortal: () => wakeupTask(kernel.cpus[MORTAL], task),
      other: () => wakeupTask(kernel.others[0], task),
      final: () => assert(!isSleeping(kernel.state(task)), 'it sleeps'),
    }
  },
}

export const wakeupOfFair: Deed = {
  tasks: 2,
  scene: kernel => {
    const first = onSurvivor(kernel, true)
    const task = kernel.asleep([SURVIVOR])
    setPriority(kernel.others[0], first, FAIR_PRIORITY)
    setPriority(kernel.others[0], task, FAIR_PRIORITY)
    return { mortal: () => wakeupTask(kernel.cpus[MORTAL], task) }
  },
}

/** To the next of the same sub-queue: a rotation. */
export const yieldToEqual: Deed = {
  tasks: 3,
  scene: kernel => {
    started(kernel)
    kernel.queued()
    kernel.queued()
    return { mortal: () => schedule(kernel.cpus[MORTAL], SWITCH_YIELDS) }
  },
}

/** The task that ran is not bound: it runs on elsewhere. */
export const yieldUnstarted: Deed = {
  tasks: 2,
  scene: kernel => {
    kernel.running(BOTH)
    kernel.queued(BOTH)
    return { mortal: () => schedule(kernel.cpus[MORTAL], SWITCH_YIELDS) }
  },
}

export const preemption: Deed = {
  tasks: 2,
  scene: kernel => {
    started(kernel)
    const better = kernel.queued(BOTH)
    setPriority(kernel.others[0], better, makePriority(5, 0))
    return { mortal: () => schedule(kernel.cpus[MORTAL], SWITCH_PREEMPTED) }
  },
}

export const switchOfFair: Deed = {
  tasks: 3,
  scene: kernel => {
    const first = kernel.running(BOTH)
    for (const task of [first, kernel.queued(BOTH), kernel.queued(BOTH)]) {
      setPriority(kernel.others[0], task, FAIR_PRIORITY)
    }
    return { mortal: () => schedule(kernel.cpus[MORTAL], SWITCH_YIELDS) }
  },
}

/** Going to sleep, while another wakes it: the waker waits for the end of a switch that never ends. */
export const sleepAgainstWakeup: Deed = {
  beside: true,
  tasks: 1,
  scene: kernel => {
    const task = kernel.running(BOTH)
    const s = kernel.cpus[MORTAL]
    return {
      mortal: () => beginSleep(s, task, INTERRUPTIBLE) && schedule(s, SWITCH_SLEEPS),
      other: () => wakeupTask(kernel.others[0], task),
    }
  },
}

/** The same of a task that was started: it is lost, and its waker gets away. */
export const lostAgainstWakeup: Deed = {
  beside: true,
  tasks: 1,
  scene: kernel => {
    const task = started(kernel)
    const s = kernel.cpus[MORTAL]
    return {
      mortal: () => beginSleep(s, task, INTERRUPTIBLE) && schedule(s, SWITCH_SLEEPS),
      other: () => wakeupTask(kernel.others[0], task),
    }
  },
}

export const steal: Deed = {
  tasks: 3,
  scene: kernel => {
    onSurvivor(kernel, true)
    onSurvivor(kernel, false, BOTH)
    onSurvivor(kernel, false, BOTH)
    return { mortal: () => stealTask(kernel.cpus[MORTAL]) && schedule(kernel.cpus[MORTAL], SWITCH_PREEMPTED) }
  },
}

export const stopOfQueued: Deed = {
  tasks: 2,
  scene: kernel => {
    onSurvivor(kernel, false)
    const task = onSurvivor(kernel, false)
    const s = kernel.cpus[MORTAL]
    return { mortal: () => schedulerStop(s, task) && schedulerContinue(s, task) }
  },
}

export const priorityOfQueued: Deed = {
  tasks: 2,
  scene: kernel => {
    onSurvivor(kernel, false)
    const task = onSurvivor(kernel, false)
    return { mortal: () => setPriority(kernel.cpus[MORTAL], task, FAIR_PRIORITY) }
  },
}

export const priorityOfRunning: Deed = {
  tasks: 2,
  scene: kernel => {
    const task = onSurvivor(kernel, true)
    setPriority(kernel.others[0], onSurvivor(kernel, false), FAIR_PRIORITY)
    return { mortal: () => setPriority(kernel.cpus[MORTAL], task, FAIR_PRIORITY) }
  },
}

export const niceOfQueued: Deed = {
  tasks: 2,
  scene: kernel => {
    setPriority(kernel.others[0], onSurvivor(kernel, false), FAIR_PRIORITY)
    const task = onSurvivor(kernel, false)
    setPriority(kernel.others[0], task, FAIR_PRIORITY)
    const se = kernel.i32[task + TaskRecord.entity]
    return {
      mortal: () => setNice(kernel.cpus[MORTAL], task, 5),
      final() {
        const { i32 } = kernel
        assert(
          i32[se + Entity.weight] === weightOfNice(i32[se + Entity.nice]),
          'a task weighs what its nice says',
        )
      },
    }
  },
}

export const affinityOfQueued: Deed = {
  tasks: 1,
  scene: kernel => {
    const task = onSurvivor(kernel, false, BOTH)
    return { mortal: () => setAffinity(kernel.cpus[MORTAL], task, 1 << SURVIVOR, 0) }
  },
}

export const channelWakeup: Deed = {
  tasks: 2,
  scene: kernel => {
    const channel = kernel.lock
    const sleepers = [onSurvivor(kernel, true), onSurvivor(kernel, false)]
    const s = kernel.cpus[SURVIVOR]
    for (const task of sleepers) {
      s.waitTree.add(task, channel, 36)
      beginSleep(s, task, UNINTERRUPTIBLE)
      schedule(s, SWITCH_SLEEPS)
    }
    return {
      mortal: () => wakeupOnChannel(kernel.cpus[MORTAL], channel),
      final: () => {
        for (const task of sleepers) if (s.waitTree.isQueued(task)) s.waitTree.take(task)
      },
    }
  },
}

/** A timer that CPU 0 takes off, and whose sleeper it wakes. The sleeper is in CPU 0's hands alone. */
export const timerExpiry: Deed = {
  tasks: 1,
  scene: kernel => {
    const s = kernel.cpus[MORTAL]
    const task = kernel.running(BOTH)
    beginSleep(s, task, INTERRUPTIBLE, 0)
    schedule(s, SWITCH_SLEEPS)
    return {
      mortal: () => expireTimers(s),
      final: () => {
        const asleep = isSleeping(kernel.state(task))
        assert(
          !asleep || s.timers[MORTAL].isQueued(task + TaskRecord.timer),
          'it sleeps, and its timer is gone',
        )
      },
    }
  },
}

/** A sleep with a timeout that is over before it begins: the timer is armed, and cancelled. */
export const timerCancelled: Deed = {
  tasks: 2,
  scene: kernel => {
    const s = kernel.cpus[MORTAL]
    const other = kernel.running(BOTH)
    beginSleep(s, other, INTERRUPTIBLE, 5)
    schedule(s, SWITCH_SLEEPS)
    const task = started(kernel)
    return {
      mortal: () => {
        armTimer(s, task, 3)
        cancelTimer(s, task)
      },
    }
  },
}

/**
 * A task on CPU 1 sleeps with a timeout for the first time, while the timers of CPU 0 are put together again.
 */
export const timersAgainstSleep: Deed = {
  beside: true,
  tasks: 1,
  scene: kernel => {
    const task = onSurvivor(kernel, true)
    const [mortal, home] = kernel.cpus
    return {
      mortal: () => mortal.rcu.quiescent(mortal.thread),
      other: () => beginSleep(home, task, INTERRUPTIBLE, 5) && schedule(home, SWITCH_SLEEPS),
      final: () =>
        assert(
          home.timers[SURVIVOR].isQueued(task + TaskRecord.timer),
          'it sleeps, and its timer is on no queue',
        ),
    }
  },
}

/** The end of a task, its switch and its reaping; and its slots' way back. */
export const exit: Deed = {
  tasks: 2,
  scene: kernel => {
    const task = started(kernel)
    kernel.queued(BOTH)
    const s = kernel.cpus[MORTAL]
    return {
      mortal: () => {
        exitTask(s, task, 0)
        schedule(s, SWITCH_EXITS)
        reapTask(s, task)
        s.rcu.runCallbacks(s.thread)
      },
    }
  },
}

/** A new task, for CPU 1. */
export const fork: Deed = {
  tasks: 2,
  scene: kernel => {
    onSurvivor(kernel, false)
    const s = kernel.cpus[MORTAL]
    return {
      mortal: () => forkTask(s, { affinity: [SURVIVOR], priority: makePriority(9, 0) }),
      final: () => {
        const { i32 } = kernel
        for (const task of living(kernel)) {
          const woken = i32[i32[task + TaskRecord.entity] + Entity.woken] !== 0
          assert(
            woken || kernel.state(task) !== RUNNING,
            'a task runs, and counts as one that was never woken',
          )
        }
      },
    }
  },
}

/** So many ordinary tasks that have arrived for a CPU. */
function arrived(kernel: Kernel, count: number, cpu: number): number[] {
  const tasks = Array.from({ length: count }, () => createTask(kernel.others[1]))
  const other = kernel.cpus[1 - cpu]
  other.setActive(other.cpu, false)
  for (const task of tasks) startByArrival(kernel.others[1], task)
  other.setActive(other.cpu, true)
  assert(kernel.cpus[0].arrivals.has(cpu), 'they have arrived there')
  return tasks
}

function allStarted(kernel: Kernel, tasks: readonly number[]): void {
  for (const task of tasks)
    assert(!isSleeping(kernel.state(task)), 'a task that has arrived was never started')
}

/** Two arrivals, which the CPU takes and starts. */
export const takingArrivals: Deed = {
  tasks: 2,
  scene: kernel => {
    const tasks = arrived(kernel, 2, MORTAL)
    return {
      mortal: () => takeArrivals(kernel.cpus[MORTAL], MORTAL),
      final: () => allStarted(kernel, tasks),
    }
  },
}

/** One that has arrived for CPU 1, and which both CPUs try to take. */
export const takingArrivalsOfOther: Deed = {
  beside: true,
  tasks: 1,
  scene: kernel => {
    const tasks = arrived(kernel, 1, SURVIVOR)
    return {
      mortal: () => takeArrivals(kernel.cpus[MORTAL], SURVIVOR),
      other: () => takeArrivals(kernel.cpus[SURVIVOR], SURVIVOR),
      final: () => allStarted(kernel, tasks),
    }
  },
}

export const deeds: Readonly<Record<string, Deed>> = {
  'wakeup of a task on another CPU': wakeupOfOther,
  'wakeup by two at once': doubleWakeup,
  'wakeup of a fair task': wakeupOfFair,
  'switch to an equal': yieldToEqual,
  'switch between tasks that were not started': yieldUnstarted,
  'switch to a better one': preemption,
  'switch between fair tasks': switchOfFair,
  'switch to sleep, against a wakeup': sleepAgainstWakeup,
  'switch to sleep of a started task, against a wakeup': lostAgainstWakeup,
  steal,
  'stop and continue': stopOfQueued,
  'priority of a queued task': priorityOfQueued,
  'priority of a running task': priorityOfRunning,
  'nice of a queued task': niceOfQueued,
  'affinity of a queued task': affinityOfQueued,
  'wakeup of all who wait on a channel': channelWakeup,
  'expiry of a timer': timerExpiry,
  'arming and cancelling a timer': timerCancelled,
  'nothing, while another arms its first timer': timersAgainstSleep,
  'end of a task': exit,
  'making a task': fork,
  'taking what has arrived': takingArrivals,
  'taking what has arrived for another': takingArrivalsOfOther,
}

export const MORTAL_CPU: { readonly max: number; readonly threads: readonly number[] } = {
  max: 1,
  threads: [MORTAL],
}
