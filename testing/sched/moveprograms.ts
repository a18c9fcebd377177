/**
 * A started task moves from CPU 0 to CPU 1, for the checker (move.check.ts). The state of the task is in the
 * heap of a CPU (`heaps`) or in the arena (the word `state`). Each step is a parameter, so that move.test.ts
 * can pass a broken one.
 */
import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { bindTask, setAffinity } from '../../src/sched/balance/affinity.ts'
import { isPacked, pushAway, releasePacked, sendAway, takePacked } from '../../src/sched/balance/move.ts'
import { Entity, POLICY_BOUND } from '../../src/sched/core/entity.ts'
import { makePriority } from '../../src/sched/core/priority.ts'
import { RunQueue } from '../../src/sched/core/runqueue.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { setPriority } from '../../src/sched/core/setpriority.ts'
import { beginSleep, killTask } from '../../src/sched/core/sleep.ts'
import { schedulerContinue, schedulerStop } from '../../src/sched/core/stop.ts'
import { SWITCH_PREEMPTED, SWITCH_SLEEPS, schedule } from '../../src/sched/core/switch.ts'
import { INTERRUPTIBLE, isSleeping, TaskRecord } from '../../src/sched/core/taskrecord.ts'
import type { Kernel } from './kernel.ts'
import { Kernel as SmallKernel } from './kernel.ts'

/** The steps of move.ts that a broken variant replaces. */
export interface MoveSteps {
  readonly release: (s: Scheduler, task: number) => boolean
  readonly take: (s: Scheduler, task: number) => void
  readonly send: (s: Scheduler, target: number) => void
}

export const steps: MoveSteps = { release: releasePacked, take: takePacked, send: sendAway }

/** The state of one task: in a heap, in the arena, or, if a step is wrong, in both or in none. */
export class TaskState {
  readonly kernel: Kernel
  readonly task: number
  readonly heaps: boolean[] = [true, false]
  readonly state: number
  private readonly steps: MoveSteps

  constructor(kernel: Kernel, task: number, moves: MoveSteps = steps) {
    this.kernel = kernel
    this.task = task
    this.steps = moves
    this.state = kernel.lock + 2
  }

  /** (A) to (C), on CPU 0. */
  pack(): boolean {
    const { kernel, task, heaps } = this
    Atomics.store(kernel.i32, this.state, 1) // (A)
    heaps[0] = false
    return this.steps.release(kernel.cpus[0], task)
  }

  /** (A) to (E), for a task that runs. */
  move(target = 1): void {
    this.pack()
    this.steps.send(this.kernel.cpus[0], target)
  }

  /** A CPU gets a task to run: this one is where that CPU can run it. */
  run(cpu: number): void {
    const { kernel, task, heaps } = this
    if (kernel.current(cpu) !== task) return
    if (heaps[cpu]) {
      assert(!isPacked(kernel.i32, task), 'a packed task runs from a heap')
      return
    }
    assert(isPacked(kernel.i32, task), 'a CPU gets a task whose state is in another heap')
    assert(Atomics.load(kernel.i32, this.state) === 1, 'a CPU gets a task without a state') // (F)
    this.steps.take(kernel.cpus[cpu], task)
    heaps[cpu] = true
    Atomics.store(kernel.i32, this.state, 0) // (I)
  }

  /** In the end the state is in one place, and the task is bound if that place is a heap. */
  check(): void {
    const { kernel, task, heaps } = this
    const { i32 } = kernel
    const se = i32[task + TaskRecord.entity]
    const isBound = (i32[se + Entity.policy] & POLICY_BOUND) !== 0
    const inArena = i32[this.state] === 1
    const count = heaps.filter(Boolean).length + (inArena ? 1 : 0)
    assert(count === 1, `the state of the task is in ${count} places`)
    assert(isPacked(i32, task) === inArena, '`packed` does not say that the state is in the arena')
    if (inArena) assert(!isBound, 'a packed task stays bound')
    else assert(isBound && heaps[i32[se + Entity.cpu]], 'a task is not bound to the heap that has it')
  }
}

function stateOf(kernel: Kernel, moves?: MoveSteps): TaskState {
  const task = kernel.running([0, 1])
  bindTask(kernel.cpus[0], task)
  return new TaskState(kernel, task, moves)
}

/** What another thread does to the task meanwhile. */
export const deeds: Readonly<Record<string, (s: Scheduler, task: number) => void>> = {
  kill: (s, task) => void killTask(s, task),
  'stop and continue': (s, task) => {
    schedulerStop(s, task)
    schedulerContinue(s, task)
  },
  affinity: (s, task) => setAffinity(s, task, 2, 0),
  priority: (s, task) => void setPriority(s, task, makePriority(8, 0)),
}

/**
 * CPU 0 packs its running task and sends it to CPU 1, which runs what it finds: at the same time (`beside`),
 * or afterwards.
 */
export function moveAgainst(
  deed: ((s: Scheduler, task: number) => void) | undefined,
  beside: boolean,
  moves?: MoveSteps,
): Setup {
  return () => {
    const kernel = new SmallKernel(2, 1, false)
    const state = stateOf(kernel, moves)
    const { task } = state
    const isPriority = deed === deeds.priority
    return {
      ...(!isPriority && { always: kernel.always(task) }),
      threads: {
        'CPU 0': () => state.move(),
        ...(beside && {
          'CPU 1': () => {
            schedule(kernel.cpus[1], SWITCH_PREEMPTED)
            state.run(1)
          },
        }),
        ...(deed && { other: () => deed(kernel.others[0], task) }),
      },
      final: () => {
        kernel.check()
        state.check()
        for (const [cpu, s] of kernel.cpus.entries()) {
          if (kernel.current(cpu) === task) continue
          schedule(s, SWITCH_PREEMPTED)
          state.run(cpu)
        }
        state.check()
        assert(kernel.current(0) === task || kernel.current(1) === task, 'the task runs nowhere')
      },
    }
  }
}

/** CPU 0 packs a task that sleeps, while another thread wakes or kills it; CPU 1 as above. */
export function packAsleepAgainst(
  wake: (s: Scheduler, task: number) => unknown,
  beside: boolean,
  moves?: MoveSteps,
): Setup {
  return () => {
    const kernel = new SmallKernel(2, 1, false)
    const state = stateOf(kernel, moves)
    const { task } = state
    const [s0, s1] = kernel.cpus
    // From the moment that it is not bound, a wakeup queues it on CPU 1.
    setAffinity(kernel.others[0], task, 2, 0)
    assert(beginSleep(s0, task, INTERRUPTIBLE), 'it sleeps')
    schedule(s0, SWITCH_SLEEPS)
    return {
      always: kernel.always(task),
      threads: {
        'CPU 0': () => {
          if (state.pack()) pushAway(s0, kernel.i32[task + TaskRecord.entity], -1)
        },
        ...(beside && {
          'CPU 1': () => {
            schedule(s1, SWITCH_PREEMPTED)
            state.run(1)
          },
        }),
        waker: () => wake(kernel.others[0], task),
      },
      final: () => {
        kernel.check()
        assert(!isSleeping(kernel.state(task)), 'it sleeps, and was woken')
        state.check()
        for (const [cpu, s] of kernel.cpus.entries()) {
          if (kernel.i32[s.queue + RunQueue.current] !== kernel.i32[s.queue + RunQueue.idle]) continue
          schedule(s, SWITCH_PREEMPTED)
          state.run(cpu)
        }
        state.check()
      },
    }
  }
}
