/**
 * A CPU dies at every step of a kernel operation, for the checker (recovery.check.ts). CPU 0 is mortal: it
 * does one operation. When it has died, another thread recovers it, and CPU 1 runs the living tasks to their
 * end: each runnable task is picked exactly once.
 *
 * A task that CPU 0 has started is bound to it, and must be among the lost tasks; any other must be where its
 * state says.
 */
import { assert } from '../../src/arena/assert.ts'
import type { Setup } from '../../src/checker/check.ts'
import { Entity, POLICY_BOUND } from '../../src/sched/core/entity.ts'
import { exitTask, reapTask } from '../../src/sched/core/exit.ts'
import { endLost, type LostTask } from '../../src/sched/recovery/lost.ts'
import { IDLE_MAJOR_PRIORITY, majorPriority } from '../../src/sched/core/priority.ts'
import { Kernel } from './kernel.ts'
import { recoverScheduler } from '../../src/sched/recovery/recovery.ts'
import { RunQueue } from '../../src/sched/core/runqueue.ts'
import type { Scheduler } from '../../src/sched/core/scheduler.ts'
import { schedulerContinue } from '../../src/sched/core/stop.ts'
import { SWITCH_EXITS, SWITCH_PREEMPTED, schedule } from '../../src/sched/core/switch.ts'
import { TaskRecord, UNUSED, ZOMBIE } from '../../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'

export type Recover = (s: Scheduler, dead: number) => LostTask[]

export const MORTAL = 0
export const SURVIVOR = 1
export const BOTH: number[] = [MORTAL, SURVIVOR]

/** What CPU 0 does, what another thread does at the same time, and what must hold in the end. */
export interface Deed {
  /** The set-up, before any thread can die. */
  readonly scene: (kernel: Kernel) => { mortal: () => unknown; other?: () => unknown; final?: () => void }
  readonly tasks: number
  /** Another thread runs during the recovery. */
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
 * Wakes all sleepers, and CPU 1 runs every runnable task to its end. Then all slots must be free.
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
    assert(turns < 8, 'the tasks do not end')
    const prev = i32[s.queue + RunQueue.current]
    const current = schedule(s, why)
    if (why === SWITCH_EXITS) reapTask(others[0], i32[prev + Entity.task])
    if (current === idle) break
    const task = i32[current + Entity.task]
    assert(!ran.has(task), 'a task runs after its end')
    ran.add(task)
    exitTask(s, task, 0)
    why = SWITCH_EXITS
  }
  kernel.check()
  assert(living(kernel).length === 0, 'a task was never run')
  for (const { cpu, rcu } of cpus) rcu.offline(i32, cpu)
  for (const { rcu, thread } of [...cpus, ...others]) rcu.runCallbacks(thread)
  assert(s.tasks.count(i32) === s.cpus, 'a task’s slot is not freed')
}

export function living({ i32, cpus }: Kernel): number[] {
  const { tasks } = cpus[0]
  const found: number[] = []
  for (let task = tasks.after(i32, 0); task !== 0; task = tasks.after(i32, task)) {
    if (i32[task + TaskRecord.state] === UNUSED) continue
    if (majorPriority(i32[i32[task + TaskRecord.entity] + Entity.priority]) < IDLE_MAJOR_PRIORITY)
      found.push(task)
  }
  return found
}

export const MORTAL_CPU: { readonly max: number; readonly threads: readonly number[] } = {
  max: 1,
  threads: [MORTAL],
}
