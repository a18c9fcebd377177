import { ArenaPlan, type Region } from '../../src/arena/memory/arena.ts'
import { assert } from '../../src/arena/assert.ts'
import { reserveMachine } from '../../src/machine/core/cpurecord.ts'
import type { Cpu, CpuRequest } from '../../src/machine/core/machine.ts'
import { setAffinity } from '../../src/sched/balance/affinity.ts'
import { cpuLoop } from '../../src/sched/core/cpuloop.ts'
import { exitTask } from '../../src/sched/core/exit.ts'
import { FAIR_PRIORITY, makePriority } from '../../src/sched/core/priority.ts'
import { planScheduler, Scheduler, type SchedulerPlan } from '../../src/sched/core/scheduler.ts'
import { setPriority } from '../../src/sched/core/setpriority.ts'
import { beginSleep, endSleep, killTask, takePending } from '../../src/sched/core/sleep.ts'
import { schedulerContinue, schedulerStop } from '../../src/sched/core/stop.ts'
import { SWITCH_EXITS, SWITCH_PREEMPTED, SWITCH_SLEEPS, SWITCH_YIELDS } from '../../src/sched/core/switch.ts'
import { INTERRUPTIBLE, TaskRecord, UNINTERRUPTIBLE } from '../../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'

/**
 * Tasks for worker threads that every CPU can run at any time: the state of a task is in shared words, not in
 * a heap. Each turn adds to a plain counter; if two CPUs ran a task at the same time, the counters would not
 * add up, and the word `inside` would be found set.
 */
export interface StressSizes {
  readonly cpus: number
  readonly tasks: number
  /** Turns of each task. */
  readonly turns: number
  readonly seed: number
}

/** What a task keeps, by its slot. */
export const Body = { inside: 0, turns: 1, random: 2, timeout: 3, checksum: 4, words: 16 } as const

/** The words before the first body: the pointer of each task by number, and how many have ended. */
export interface StressPlan {
  readonly scheduler: SchedulerPlan
  readonly machine: Region
  readonly table: Region
  readonly bodies: Region
  readonly words: number
}

export function planStress(plan: ArenaPlan, sizes: StressSizes): StressPlan {
  const machine = reserveMachine(plan, sizes.cpus)
  const scheduler = planScheduler(plan, sizes)
  const table = plan.reserve('stress table', sizes.tasks + 1)
  const bodies = plan.reserve('stress bodies', (sizes.tasks + sizes.cpus) * Body.words)
  return { scheduler, machine, table, bodies, words: plan.words }
}

export default function* stress(cpu: Cpu, data: unknown): Generator<CpuRequest, void, void> {
  const sizes = data as StressSizes
  const plan = planStress(new ArenaPlan(), sizes)
  const s = Scheduler.forCpu(plan.scheduler, cpu, 1)
  s.tasks.spread(cpu.id, sizes.cpus)
  yield* cpuLoop(cpu, s, task => turn(s, plan, sizes, task))
}

/** One turn of a task. */
function turn(s: Scheduler, plan: StressPlan, sizes: StressSizes, task: number): number {
  const { i32 } = s
  const body = plan.bodies.start + i32[task + TaskRecord.slot] * Body.words
  assert(Atomics.exchange(i32, body + Body.inside, 1) === 0, 'two CPUs run one task')
  const why = act(s, plan, sizes, task, body)
  // From here on another CPU may run it.
  if (why === SWITCH_SLEEPS || why === SWITCH_EXITS) return why
  Atomics.store(i32, body + Body.inside, 0)
  return why
}

function act(s: Scheduler, plan: StressPlan, sizes: StressSizes, task: number, body: number): number {
  const { i32 } = s
  if (i32[body + Body.timeout] !== 0) {
    endSleep(s, task, i32[body + Body.timeout])
    i32[body + Body.timeout] = 0
  }
  i32[body + Body.turns]++
  const random = (Math.imul(i32[body + Body.random], 1_664_525) + 1_013_904_223) | 0
  i32[body + Body.random] = random
  i32[body + Body.checksum] = (Math.imul(i32[body + Body.checksum], 31) + random) | 0
  takePending(i32, task)
  if (i32[body + Body.turns] >= sizes.turns) {
    Atomics.add(i32, plan.table.start + sizes.tasks, 1)
    exitTask(s, task, i32[body + Body.turns] & 0x7f)
    Atomics.store(i32, body + Body.inside, 0)
    return SWITCH_EXITS
  }
  const dice = random >>> 16
  if (dice % 5 === 0) {
    // The coroutine is off its stack: it may be resumed from the moment its state says asleep.
    const timeout = 1 + (dice % 3)
    i32[body + Body.timeout] = timeout
    Atomics.store(i32, body + Body.inside, 0)
    return beginSleep(s, task, (dice & 1) === 0 ? INTERRUPTIBLE : UNINTERRUPTIBLE, timeout / 4)
      ? SWITCH_SLEEPS
      : SWITCH_PREEMPTED
  }
  if (dice % 3 === 0) meddle(s, plan, sizes, task, dice)
  return dice % 2 === 0 ? SWITCH_YIELDS : SWITCH_PREEMPTED
}

/** Does something to another task that has not ended. */
function meddle(s: Scheduler, plan: StressPlan, sizes: StressSizes, own: number, dice: number): void {
  const { i32 } = s
  // Records are freed through RCU, and this CPU is inside one turn: no record of the table is freed during
  // it.
  const task = Atomics.load(i32, plan.table.start + (dice % sizes.tasks))
  if (task === 0 || task === own || !s.tasks.isAllocated(i32, task)) return
  switch ((dice >>> 4) % 9) {
    case 0:
      schedulerStop(s, task)
      break
    case 1:
    case 2:
      schedulerContinue(s, task)
      break
    case 3:
      setPriority(s, task, dice % 2 === 0 ? FAIR_PRIORITY : makePriority(20 + (dice % 20), dice & 3))
      break
    case 4:
      setAffinity(s, task, 1 + (dice % ((1 << sizes.cpus) - 1)), 0)
      break
    case 5:
      killTask(s, task)
      break
    case 6:
      killTask(s, task)
      break
    default:
      wakeupTask(s, task)
  }
}

/** What the body's checksum must be after all turns. */
export function expectedChecksum(seed: number, turns: number): number {
  let random = seed
  let checksum = 0
  for (let at = 0; at < turns; at++) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) | 0
    checksum = (Math.imul(checksum, 31) + random) | 0
  }
  return checksum
}
