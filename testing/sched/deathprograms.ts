/** The kernel operations in which CPU 0 dies at any step (death.ts). */
import { assert } from '../../src/arena/assert.ts'
import { bindTask, setAffinity } from '../../src/sched/balance/affinity.ts'
import { startByArrival, takeArrivals } from '../../src/sched/core/arrivals.ts'
import { Entity, POLICY_BOUND } from '../../src/sched/core/entity.ts'
import { exitTask, reapTask } from '../../src/sched/core/exit.ts'
import { createTask } from '../../src/sched/core/fork.ts'
import { fairList } from '../../src/sched/classes/fairlist.ts'
import { listCount } from '../../src/arena/trees/list.ts'
import { classRq } from '../../src/sched/core/runqueue.ts'
import {
  FAIR_MAJOR_PRIORITY,
  FAIR_PRIORITY,
  makePriority,
  weightOfNice,
} from '../../src/sched/core/priority.ts'
import { Kernel } from './kernel.ts'
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
} from '../../src/sched/core/taskrecord.ts'
import { armTimer, cancelTimer, expireTimers } from '../../src/sched/core/timer.ts'
import { wakeupAll } from '../../src/sched/core/wakebatch.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'
import { type MoveSteps, TaskState } from './moveprograms.ts'
import { forkTask } from './tasks.ts'
import { BOTH, type Deed, living, MORTAL, SURVIVOR } from './death.ts'

/** A task that runs on CPU 0, which has started it. */
function started(kernel: Kernel): number {
  const task = kernel.running(BOTH)
  bindTask(kernel.cpus[MORTAL], task)
  return task
}

/** A task that waits on the queue of CPU 1, or runs there. */
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

/** The waker of several tasks dies: each task is woken, or sleeps on for the caller's own repair. */
export const wakeupOfSeveral: Deed = {
  tasks: 3,
  scene: kernel => {
    const tasks = [kernel.asleep([SURVIVOR]), kernel.asleep([SURVIVOR]), kernel.asleep([MORTAL])]
    return { mortal: () => wakeupAll(kernel.cpus[MORTAL], tasks) }
  },
}

/** Two threads wake it; one of them dies. */
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

/** A yield to the next task of the same sub-queue: a rotation. */
export const yieldToEqual: Deed = {
  tasks: 3,
  scene: kernel => {
    started(kernel)
    kernel.queued()
    kernel.queued()
    return { mortal: () => schedule(kernel.cpus[MORTAL], SWITCH_YIELDS) }
  },
}

/** The task that ran is not bound: it continues on another CPU. */
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

/** A yield between fair tasks that are all on the list: one rotation (rotatefair.ts). */
export const rotationOfFair: Deed = {
  tasks: 3,
  scene: kernel => {
    const s = kernel.cpus[MORTAL]
    const first = started(kernel)
    for (const task of [first, kernel.queued(), kernel.queued()]) {
      setPriority(kernel.others[0], task, FAIR_PRIORITY)
    }
    // The first request of each is short. Afterwards they are alike.
    for (let turn = 0; turn < 3; turn++) schedule(s, SWITCH_YIELDS)
    const rq = classRq(s.queue, FAIR_MAJOR_PRIORITY)
    assert(listCount(s.i32, fairList(rq)) === 2, 'the other two are on the list')
    return { mortal: () => schedule(s, SWITCH_YIELDS) }
  },
}

/** A task goes to sleep while a waker wakes it: the waker waits for a switch that never ends. */
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

/** The same for a started task: it is lost, and its waker continues. */
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
          'the weight of a task does not follow from its nice',
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

/** CPU 0 expires a timer, and wakes the sleeper. No other CPU would. */
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

/** A sleep whose kill is pending before it begins: the timer is armed, and cancelled. */
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

/** A task on CPU 1 sleeps with a timeout for the first time, while the timers of CPU 0 are rebuilt. */
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

/** The end of a task: its last switch, its reaping, and the freeing of its slots. */
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
          assert(woken || kernel.state(task) !== RUNNING, 'a task runs, and its `woken` is 0')
        }
      },
    }
  },
}

/** `count` ordinary tasks that have arrived for a CPU. */
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

/** A task that has arrived for CPU 1; both CPUs try to take it. */
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

/** CPU 0 packs its running task and sends it to CPU 1: the state is in the arena, or the task is lost. */
export const packing: Deed = {
  tasks: 2,
  scene: kernel => {
    const state = new TaskState(kernel, started(kernel))
    kernel.queued(BOTH)
    return { mortal: () => state.move(SURVIVOR), final: () => checkPacked(kernel, state) }
  },
}

/** A packed task that CPU 0 takes: it is never lost before CPU 0 has it. */
export const takingPacked: Deed = takingPackedBy()

export function takingPackedBy(moves?: MoveSteps): Deed {
  return {
    tasks: 1,
    scene: kernel => {
      const state = new TaskState(kernel, started(kernel), moves)
      const s = kernel.cpus[MORTAL]
      state.pack()
      return {
        mortal: () => {
          schedule(s, SWITCH_YIELDS)
          state.run(MORTAL)
        },
        final: () => {
          const isIn = kernel.i32[state.state] === 1
          // Between (H) and (I) of move.ts its heap has it too, and it is lost with that.
          const isTaken = state.heaps[MORTAL]
          assert(!isIn || isTaken || living(kernel).includes(state.task), 'a packed task is lost')
          checkPacked(kernel, state)
        },
      }
    },
  }
}

/** CPU 0 packs a task that sleeps, and dies; another thread wakes the task. */
export const packingAsleep: Deed = {
  beside: true,
  tasks: 1,
  scene: kernel => {
    const state = new TaskState(kernel, started(kernel))
    const s = kernel.cpus[MORTAL]
    beginSleep(s, state.task, INTERRUPTIBLE)
    schedule(s, SWITCH_SLEEPS)
    return {
      mortal: () => state.pack(),
      other: () => wakeupTask(kernel.others[0], state.task),
      final: () => checkPacked(kernel, state),
    }
  },
}

/**
 * A task that lives is bound to a CPU that lives, or is packed, not bound, and has its state in the arena.
 */
function checkPacked(kernel: Kernel, { task, state }: TaskState): void {
  const { i32 } = kernel
  if (!living(kernel).includes(task)) return
  const se = i32[task + TaskRecord.entity]
  const isBound = (i32[se + Entity.policy] & POLICY_BOUND) !== 0
  const packed = i32[task + TaskRecord.packed] === 1
  assert(packed !== isBound, 'a started task is neither packed nor in a heap, or both')
  if (packed) assert(i32[state] === 1, 'a packed task has no state')
}

export const deeds: Readonly<Record<string, Deed>> = {
  'wakeup of a task on another CPU': wakeupOfOther,
  'wakeup of several tasks': wakeupOfSeveral,
  'wakeup by two threads': doubleWakeup,
  'wakeup of a fair task': wakeupOfFair,
  'switch to an equal': yieldToEqual,
  'switch between tasks that were not started': yieldUnstarted,
  'switch to a better task': preemption,
  'switch between fair tasks': switchOfFair,
  'switch between fair tasks on the list': rotationOfFair,
  'switch to sleep, against a wakeup': sleepAgainstWakeup,
  'switch to sleep of a started task, against a wakeup': lostAgainstWakeup,
  steal,
  'stop and continue': stopOfQueued,
  'priority of a queued task': priorityOfQueued,
  'priority of a running task': priorityOfRunning,
  'nice of a queued task': niceOfQueued,
  'affinity of a queued task': affinityOfQueued,
  'wakeup of all sleepers on a channel': channelWakeup,
  'expiry of a timer': timerExpiry,
  'arming and cancelling a timer': timerCancelled,
  'no operation, while another CPU arms its first timer': timersAgainstSleep,
  'end of a task': exit,
  'making a task': fork,
  'taking the arrivals': takingArrivals,
  'taking the arrivals of another CPU': takingArrivalsOfOther,
  'packing a task and sending it away': packing,
  'taking a packed task': takingPacked,
  'packing a sleeping task, against a wakeup': packingAsleep,
}
