import { expect, test } from 'vitest'
import { SeededRandom } from '../../machine/simulated/random.ts'
import { cpuAccount } from './account.ts'
import { setAffinity } from '../balance/affinity.ts'
import { recoverScheduler } from '../recovery/recovery.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { FAIR_PRIORITY, makePriority } from './priority.ts'
import { setNice, setPriority } from './setpriority.ts'
import { Simulation, type SimulatedContext } from '../../../testing/sched/simulation.ts'
import { killTask, sleepOnChannel, takePending, wakeupOnChannel } from './sleep.ts'
import { schedulerContinue, schedulerStop } from './stop.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from './switch.ts'
import { INTERRUPTIBLE, UNINTERRUPTIBLE, UNUSED, TaskRecord, ZOMBIE } from './taskrecord.ts'
import { wakeupTask } from './wakeup.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

/**
 * Everything at once, by seed: tasks of all classes sleep, wake, stop, continue, change priority and
 * affinity, signal, kill and end each other, while CPUs are stopped, killed and started. After every batch of
 * steps the invariants must hold.
 */
const OPERATIONS = Number(process.env.HEDDLE_SOAK ?? 2_000_000)
const SEEDS = 10

/** Never ends by itself. */
function* restless(soak: Soak, context: SimulatedContext): Generator<number, number, unknown> {
  const { random } = soak
  for (;;) {
    soak.operations++
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2:
        yield SWITCH_YIELDS
        break
      case 3:
      case 4:
        context.cpu.charge(random.unit() * 0.2)
        yield SWITCH_PREEMPTED
        break
      case 5:
        yield* schedulerSleep(
          context,
          0,
          random.below(2) === 0 ? UNINTERRUPTIBLE : INTERRUPTIBLE,
          random.unit() * 0.1,
        )
        break
      case 6:
        yield* schedulerSleep(context, 0, INTERRUPTIBLE, random.below(2) === 0 ? 1 : Infinity)
        break
      case 7:
        yield* sleepOnChannel(
          context,
          1 + random.below(4),
          UNINTERRUPTIBLE,
          random.below(3) === 0 ? 0.5 : Infinity,
        )
        break
      default:
        soak.meddle(context)
        if (random.below(3) === 0) yield SWITCH_PREEMPTED
    }
    takePending(context.s.i32, context.task)
    if (random.below(400) === 0) return random.below(256)
  }
}

class Soak {
  readonly sim: Simulation
  readonly random: SeededRandom
  operations = 0
  started = 0
  killed = 0
  private readonly cpus = 4
  private readonly population = 24

  constructor(seed: number) {
    this.random = new SeededRandom(seed * 7919)
    this.sim = new Simulation({ cpus: this.cpus, seed, tasks: 64, debug: seed === SEEDS })
    this.sim.machine.onDeath(({ cpu }) => this.bury(cpu))
    for (let i = 0; i < this.population; i++) this.spawn()
  }

  private spawn(context?: SimulatedContext): void {
    const { random } = this
    const priorities = [
      FAIR_PRIORITY,
      FAIR_PRIORITY,
      FAIR_PRIORITY,
      makePriority(5 + random.below(8), random.below(4)),
    ]
    const affinity = random.below(3) === 0 ? [random.below(this.cpus), random.below(this.cpus)] : undefined
    this.sim.fork(
      own => restless(this, own),
      {
        priority: priorities[random.below(priorities.length)],
        nice: random.below(40) - 20,
        roundRobin: random.below(2) === 0,
        slice: 0.1 + random.unit(),
        ...(affinity && { affinity }),
      },
      context?.s ?? this.sim.s,
    )
  }

  /** Does something to a task that may be in any state. */
  meddle(context: SimulatedContext): void {
    const { random } = this
    const { s } = context
    const victim = this.victim()
    this.operations++
    switch (random.below(14)) {
      case 0:
        wakeupOnChannel(s, 1 + random.below(4), random.below(3) === 0 ? 1 : Infinity)
        break
      case 1:
        if (victim !== context.task) schedulerStop(s, victim)
        break
      case 2:
      case 3:
        schedulerContinue(s, victim)
        break
      case 4:
        setPriority(
          s,
          victim,
          random.below(2) === 0 ? FAIR_PRIORITY : makePriority(1 + random.below(62), random.below(4)),
        )
        break
      case 5:
        setNice(s, victim, random.below(40) - 20)
        break
      case 6:
        setAffinity(s, victim, 1 + random.below(15), 0)
        break
      case 7:
        killTask(s, victim)
        break
      case 8:
        killTask(s, victim)
        break
      default:
        wakeupTask(s, victim)
    }
  }

  /** A task that lives. */
  private victim(): number {
    const { s } = this.sim
    for (;;) {
      const task = s.tasks.pointerAt(this.cpus + this.random.below(64))
      if (!s.tasks.isAllocated(s.i32, task)) continue
      const state = s.i32[task + TaskRecord.state]
      if (state !== ZOMBIE && state !== UNUSED) return task
    }
  }

  private bury(cpu: number): void {
    const { s, machine } = this.sim
    expect(recoverScheduler(s, cpu)).toEqual([])
    machine.recovered(cpu)
  }

  /** CPUs go offline and online; ended tasks are replaced; the events that tasks wait for happen. */
  stir(): void {
    const { random, sim } = this
    const { s, machine } = sim
    const cpu = random.below(this.cpus)
    const others = Array.from({ length: this.cpus }, (_, id) => id).filter(
      id => id !== cpu && machine.isActive(id),
    )
    const choice = random.below(6)
    if (!machine.isActive(cpu)) {
      if (choice > 1) {
        void machine.start(cpu)
        this.started++
      }
    } else if (others.length > 0 && choice === 0) {
      void machine.stop(cpu)
    } else if (others.length > 0 && choice === 1) {
      machine.kill(cpu)
      this.killed++
    }
    while (s.tasks.count(s.i32) < this.population + this.cpus) this.spawn()
    for (let i = 0; i < 4; i++) schedulerContinue(s, this.victim())
    for (let channel = 1; channel <= 4; channel++) wakeupOnChannel(s, channel)
    wakeupTask(s, this.victim())
  }
}

test(`a random soak of ${OPERATIONS} scheduler operations keeps every invariant`, () => {
  let operations = 0
  let switches = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const soak = new Soak(seed)
    try {
      while (soak.operations < OPERATIONS / SEEDS) {
        soak.sim.machine.run({ steps: 50 + soak.random.below(400) })
        checkInvariants(soak.sim.s)
        soak.stir()
      }
    } catch (error) {
      throw new Error(`soak, seed ${seed}, step ${soak.sim.machine.steps}`, { cause: error })
    }
    operations += soak.operations
    expect(soak.killed).toBeGreaterThan(0)
    expect(soak.started).toBeGreaterThan(soak.killed)
    for (let cpu = 0; cpu < 4; cpu++) {
      const account = cpuAccount(soak.sim.s.i32, soak.sim.s.queueOf(cpu))
      expect(account.steals).toBeGreaterThan(0)
      expect(account.preemptions).toBeGreaterThan(0)
      expect(account.migrations).toBeGreaterThan(account.steals)
    }
    switches += soak.sim.machine.steps
  }
  expect(operations).toBeGreaterThanOrEqual(OPERATIONS)
  expect(switches).toBeGreaterThan(OPERATIONS / 4)
}, 900_000)
