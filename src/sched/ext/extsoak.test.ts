import { expect, test } from 'vitest'
import { SeededRandom } from '../../machine/simulated/random.ts'
import { setAffinity } from '../balance/affinity.ts'
import { type EjectReason, ejectReport } from './eject.ts'
import { NONE } from './extlayout.ts'
import { allowTask, disallowTask, takeAllTasks, unloadPolicy } from './extload.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { ENQUEUE_YIELDED, type Policy } from './policy.ts'
import type { PolicyContext } from './policycontext.ts'
import fifo from './policies/fifo.ts'
import latency from './policies/latency.ts'
import vtime from './policies/vtime.ts'
import { FAIR_PRIORITY, makePriority } from '../core/priority.ts'
import { recoverScheduler } from '../recovery/recovery.ts'
import { setNice, setPriority } from '../core/setpriority.ts'
import { Simulation, type SimulatedContext } from '../../../testing/sched/simulation.ts'
import { killTask, takePending } from '../core/sleep.ts'
import { schedulerContinue, schedulerStop } from '../core/stop.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from '../core/switch.ts'
import { INTERRUPTIBLE, TaskRecord, UNINTERRUPTIBLE, UNUSED, ZOMBIE } from '../core/taskrecord.ts'
import { wakeupTask } from '../core/wakeup.ts'
import { Watchdog } from '../core/watchdog.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

/**
 * Policies are loaded, unloaded and ejected while tasks do everything that tasks do and CPUs come, go and
 * die. Every task that was started either lives and is where it should be, or has ended: none is lost.
 */
const OPERATIONS = Number(process.env.HEDDLE_SOAK ?? 1_000_000)
const SEEDS = 8
const CPUS = 4
const POPULATION = 24

/** Puts tasks anywhere that is allowed, keeps some for later, kicks at random. */
function wild(random: SeededRandom): Policy {
  const kept = new Set<number>()
  const put = (context: PolicyContext, task: number): void => {
    const cpu = random.below(CPUS)
    switch (random.below(5)) {
      case 0:
        context.dispatch(
          task,
          context.mayRun(task, cpu) ? context.localOf(cpu) : context.local,
          random.unit(),
        )
        break
      case 1:
        context.dispatch(task, context.global, random.unit(), random.below(2) === 0)
        break
      case 2:
        context.dispatchVtime(task, context.queue(5, 'vtime'), random.unit())
        break
      default:
        context.dispatch(task, context.queue(random.below(3)))
    }
    if (random.below(8) === 0) context.kick(cpu, random.below(2) === 0)
  }
  return {
    name: 'wild',
    slice: 0.3,
    selectCpu(context, task) {
      if (random.below(4) === 0) context.dispatch(task, context.local, random.unit())
      return random.below(CPUS + 2) - 1
    },
    enqueue(context, task, flags) {
      if ((flags & ENQUEUE_YIELDED) !== 0 && random.below(3) === 0) kept.add(task)
      else put(context, task)
    },
    dequeue: (_context, task) => void kept.delete(task),
    dispatch(context) {
      for (const task of kept) {
        kept.delete(task)
        put(context, task)
      }
      const queues = [
        context.global,
        context.queue(0),
        context.queue(1),
        context.queue(2),
        context.queue(5, 'vtime'),
      ]
      for (const at of queues.keys()) if (context.consume(queues[(at + random.below(5)) % 5])) return
      for (const queue of queues) if (context.consume(queue)) return
    },
    tick(context, task) {
      if (random.below(3) === 0) context.setSlice(task, random.unit())
    },
    exit: () => kept.clear(),
  }
}

/** Each does its mistake after a while. */
function bad(random: SeededRandom): Policy {
  let left = 20 + random.below(200)
  const fails = (): boolean => --left <= 0
  const kinds: Policy[] = [
    {
      ...fifo,
      enqueue(context, task, flags) {
        if (fails()) throw new Error('on purpose')
        fifo.enqueue(context, task, flags)
      },
    },
    {
      ...fifo,
      enqueue(context, task) {
        context.dispatch(task, context.global)
        if (fails()) context.dispatch(task, context.global)
      },
    },
    {
      ...fifo,
      enqueue(context, task) {
        const forbidden = [0, 1, 2, 3].find(cpu => !context.mayRun(task, cpu))
        if (fails() && forbidden !== undefined) context.dispatch(task, context.localOf(forbidden))
        else context.dispatch(task, context.global)
      },
    },
    {
      ...fifo,
      enqueue(context, task) {
        if (!fails()) context.dispatch(task, context.global)
      },
    },
    {
      ...fifo,
      enqueue: (context, task) => void context.dispatch(task, fails() ? context.queue(4) : context.global),
    },
  ]
  return { ...kinds[random.below(kinds.length)], name: 'bad' }
}

class Soak {
  readonly random: SeededRandom
  readonly sim: Simulation
  readonly watchdog: Watchdog
  readonly reasons = new Map<EjectReason, number>()
  operations = 0
  loads = 0
  ended = 0
  killed = 0
  private started = 0

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    this.sim = new Simulation({ cpus: CPUS, seed, tasks: 48, debug: seed === 1 })
    this.watchdog = new Watchdog(this.sim.s, 20)
    this.sim.machine.onDeath(({ cpu }) => {
      recoverScheduler(this.sim.s, cpu)
      this.sim.machine.recovered(cpu)
    })
    while (this.started < POPULATION) this.spawn()
  }

  private spawn(): void {
    const { random } = this
    this.started++
    const affinity = random.below(3) === 0 ? [random.below(CPUS), random.below(CPUS)] : undefined
    this.sim.fork(own => this.body(own), {
      priority: random.below(5) === 0 ? makePriority(5 + random.below(8), 0) : FAIR_PRIORITY,
      nice: random.below(40) - 20,
      slice: 0.1 + random.unit(),
      ...(affinity && { affinity }),
    })
  }

  private *body(context: SimulatedContext): Generator<number, number, unknown> {
    const { random } = this
    for (let turns = 200 + random.below(2000); turns > 0; turns--) {
      this.operations++
      takePending(context.s.i32, context.task)
      switch (random.below(8)) {
        case 0:
        case 1:
          yield SWITCH_YIELDS
          break
        case 2:
        case 3:
          context.cpu.charge(random.unit() * 0.2)
          yield SWITCH_PREEMPTED
          break
        case 4:
          yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, random.unit() * 0.1)
          break
        case 5:
          yield* schedulerSleep(context, 0, INTERRUPTIBLE, random.below(2) === 0 ? 1 : Infinity)
          break
        default:
          this.meddle(context)
      }
    }
    this.ended++
    return 0
  }

  private meddle({ s, task: own }: SimulatedContext): void {
    const { random } = this
    const task = this.victim()
    this.operations++
    switch (random.below(12)) {
      case 0:
        if (task !== own) schedulerStop(s, task)
        break
      case 1:
      case 2:
        schedulerContinue(s, task)
        break
      case 3:
        setPriority(s, task, random.below(2) === 0 ? FAIR_PRIORITY : makePriority(1 + random.below(62), 0))
        break
      case 4:
        setNice(s, task, random.below(40) - 20)
        break
      case 5:
        setAffinity(s, task, 1 + random.below(15), 0)
        break
      case 6:
        killTask(s, task)
        break
      case 7:
        killTask(s, task)
        break
      case 8:
        allowTask(s, task)
        break
      case 9:
        disallowTask(s, task)
        break
      default:
        wakeupTask(s, task)
    }
  }

  private victim(): number {
    const { s } = this.sim
    for (;;) {
      const task = s.tasks.pointerAt(CPUS + this.random.below(48))
      if (!s.tasks.isAllocated(s.i32, task)) continue
      const state = s.i32[task + TaskRecord.state]
      if (state !== ZOMBIE && state !== UNUSED) return task
    }
  }

  stir(): void {
    const { random, sim } = this
    const { s, machine } = sim
    const cpu = random.below(CPUS)
    const others = [0, 1, 2, 3].some(id => id !== cpu && machine.isActive(id))
    const choice = random.below(12)
    if (!machine.isActive(cpu)) {
      if (choice > 3) void machine.start(cpu)
    } else if (others && choice === 0) void machine.stop(cpu)
    else if (others && choice === 1) {
      machine.kill(cpu)
      this.killed++
    }
    this.changePolicy()
    this.watchdog.look()
    while (this.started - this.ended < POPULATION) this.spawn()
    for (let n = 0; n < 4; n++) schedulerContinue(s, this.victim())
    wakeupTask(s, this.victim())
  }

  private changePolicy(): void {
    const { random, sim } = this
    const { s } = sim
    if (s.ext.state() === NONE) {
      if (this.loads > 0) {
        const { reason } = ejectReport(s)
        this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1)
      }
      const policies = [fifo, vtime, latency, wild(random), wild(random), bad(random), bad(random)]
      sim.load(policies[random.below(policies.length)], random.below(3) > 0)
      this.loads++
    } else if (random.below(25) === 0) unloadPolicy(s)
    else if (random.below(10) === 0 && s.ext.isActive()) takeAllTasks(s)
  }

  /** Releases every task, and runs the remaining ones to their end. */
  settle(): void {
    const { s, machine } = this.sim
    for (let cpu = 0; cpu < CPUS; cpu++) if (!machine.isActive(cpu)) void machine.start(cpu)
    for (let round = 0; round < 200_000 && this.ended < this.started; round++) {
      // The clock of a machine without work stands still, so that the watchdog would never find that a policy
      // keeps the last task.
      if (machine.run({ steps: 200 }) === 'idle' && s.ext.isActive()) unloadPolicy(s)
      this.watchdog.look()
      for (let index = 0; index < s.tasks.capacity; index++) {
        const task = s.tasks.pointerAt(index)
        if (!s.tasks.isAllocated(s.i32, task) || index < CPUS) continue
        const state = s.i32[task + TaskRecord.state]
        if (state === ZOMBIE || state === UNUSED) continue
        schedulerContinue(s, task)
        wakeupTask(s, task)
      }
    }
  }

  get missing(): number {
    return this.started - this.ended
  }
}

test(`loading and unloading policies under load loses no task, in ${OPERATIONS} operations`, () => {
  const reasons = new Map<EjectReason, number>()
  let operations = 0
  let loads = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const soak = new Soak(seed)
    try {
      while (soak.operations < OPERATIONS / SEEDS) {
        soak.sim.machine.run({ steps: 20 + soak.random.below(200) })
        checkInvariants(soak.sim.s)
        soak.stir()
      }
      soak.settle()
      expect(soak.missing).toBe(0)
      checkInvariants(soak.sim.s)
    } catch (error) {
      throw new Error(`policies, seed ${seed}, step ${soak.sim.machine.steps}`, { cause: error })
    }
    expect(soak.killed).toBeGreaterThan(0)
    operations += soak.operations
    loads += soak.loads
    for (const [reason, count] of soak.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + count)
  }
  expect(operations).toBeGreaterThanOrEqual(OPERATIONS)
  expect(loads).toBeGreaterThan(100)
  for (const reason of [
    'unloaded',
    'threw',
    'dispatched twice',
    'forbidden CPU',
    'lost a task',
    'starved a task',
  ] as const)
    expect([reason, reasons.get(reason) ?? 0]).not.toEqual([reason, 0])
}, 600_000)
