/**
 * The fair class against a plain model of EEVDF (testing/sched/fairmodel.ts): after every step of a random
 * program the scheduler's choice must be one that the model allows, and its vruntimes those of the model.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { reserveMachine } from '../../machine/core/cpurecord.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { FairModel, type ModelTask } from '../../../testing/sched/fairmodel.ts'
import { setAffinity } from '../balance/affinity.ts'
import { Entity } from '../core/entity.ts'
import { exitTask, reapTask } from '../core/exit.ts'
import { createTask, startTask } from '../core/fork.ts'
import { RunQueue } from '../core/runqueue.ts'
import { planScheduler, Scheduler } from '../core/scheduler.ts'
import { setNice } from '../core/setpriority.ts'
import { beginSleep } from '../core/sleep.ts'
import { SWITCH_EXITS, SWITCH_PREEMPTED, SWITCH_SLEEPS, SWITCH_YIELDS, schedule } from '../core/switch.ts'
import { INTERRUPTIBLE, TaskRecord } from '../core/taskrecord.ts'
import { wakeupTask } from '../core/wakeup.ts'
import { publishQueue } from './classrq.ts'
import type { FairTree } from './fairtree.ts'
import { listSlack } from './fairlist.ts'

const SLICE = 10
const CPUS = 2

/** One step of a program. Numbers choose a task or a CPU, modulo how many there are. */
type Step =
  | { do: 'spawn'; cpu: number; nice: number; slice: number }
  | { do: 'turn'; cpu: number; ms: number; why: 'yield' | 'preempt' | 'tick' | 'sleep' | 'exit' }
  | { do: 'wake'; task: number; cpu: number | undefined }
  | { do: 'nice'; task: number; nice: number }
  | { do: 'time'; ms: number }

const turnLengths = fc.oneof(
  fc.constantFrom(0, 0.0001, 0.0004, 0.001, 9.7, 25.3),
  fc.double({ min: 0, max: 0.001, noNaN: true }),
  fc.double({ min: 0, max: 0.3, noNaN: true }),
  fc.double({ min: 0, max: 30, noNaN: true }),
)
const nices = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -20, max: 19 }))
const cpu = fc.nat({ max: CPUS - 1 })

const spawns = fc.record({
  do: fc.constant('spawn' as const),
  cpu,
  nice: nices,
  slice: fc.constantFrom(SLICE, SLICE, SLICE, 1),
})

const turns = (...why: ('yield' | 'preempt' | 'tick' | 'sleep' | 'exit')[]): fc.Arbitrary<Step> =>
  fc.record({ do: fc.constant('turn' as const), cpu, ms: turnLengths, why: fc.constantFrom(...why) })

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: spawns },
  { weight: 16, arbitrary: turns('yield', 'yield', 'preempt', 'tick') },
  { weight: 3, arbitrary: turns('sleep') },
  { weight: 1, arbitrary: turns('exit') },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('wake' as const),
      task: fc.nat(),
      cpu: fc.option(cpu, { nil: undefined }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('nice' as const), task: fc.nat(), nice: nices }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('time' as const), ms: turnLengths }) },
)

/** Tasks to begin with, then steps; turns are repeated, so that the list is in use most of the time. */
const programs: fc.Arbitrary<Step[]> = fc
  .tuple(
    fc.array(spawns, { minLength: 3, maxLength: 12 }),
    fc.array(fc.tuple(steps, fc.constantFrom(1, 1, 5, 40)), { minLength: 10, maxLength: 60 }),
  )
  .map(([first, parts]) => [
    ...first,
    ...parts.flatMap(([step, times]) => {
      const repeats = step.do === 'turn' && (step.why === 'yield' || step.why === 'tick')
      return Array.from({ length: repeats ? times : 1 }, () => step)
    }),
  ])

interface Living {
  readonly task: number
  readonly se: number
  readonly model: ModelTask
  cpu: number
  asleep: boolean
}

/** The scheduler and the model, side by side. Time stands still between the steps. */
class Pair {
  readonly cpus: Scheduler[] = []
  readonly other: Scheduler
  readonly models: FairModel[] = []
  readonly living: Living[] = []
  private time = 1
  private readonly switchedAt: number[] = []

  constructor(slack: number | undefined) {
    const plan = new ArenaPlan()
    const machine = reserveMachine(plan, CPUS)
    const sizes = planScheduler(plan, { cpus: CPUS, tasks: 64 })
    const arena = Arena.create(plan)
    const scheduler = (id: number): Scheduler =>
      new Scheduler({
        plan: sizes,
        machine,
        thread: new KernelThread(arena, id, false),
        now: () => this.time,
        kick: () => undefined,
        slice: SLICE,
      })
    this.other = scheduler(64)
    this.other.initialize()
    for (let id = 0; id < CPUS; id++) {
      const s = scheduler(id)
      this.cpus.push(s)
      s.i32[s.queue + RunQueue.online] = 1
      s.setActive(id, true)
      publishQueue(s, s.queue)
      this.models.push(new FairModel(slack ?? listSlack(s)))
      this.switchedAt.push(this.time)
    }
  }

  do(step: Step): void {
    if (step.do === 'time') this.time += step.ms
    else if (step.do === 'spawn') this.spawn(step.cpu, step.nice, step.slice)
    else if (step.do === 'turn') this.turn(step.cpu, step.ms, step.why)
    else if (this.living.length > 0) {
      const one = this.living[step.task % this.living.length]
      if (step.do === 'wake') this.wake(one, step.cpu)
      else this.nice(one, step.nice)
    }
    this.compare()
  }

  private spawn(cpu: number, nice: number, slice: number): void {
    if (this.living.length >= 40) return
    const task = createTask(this.other, { nice, slice, affinity: [cpu] })
    const model: ModelTask = { vruntime: 0, deadline: 0, lag: 0, nice, slice, turns: 0 }
    const one = { task, se: this.other.i32[task + TaskRecord.entity], model, cpu, asleep: false }
    this.living.push(one)
    this.charge(cpu)
    startTask(this.other, task)
    this.models[cpu].enter(model)
  }

  /** The running task of a CPU runs for so long and stops; the CPU switches. */
  private turn(cpu: number, ms: number, how: string): void {
    const s = this.cpus[cpu]
    const { i32 } = s
    const model = this.models[cpu]
    const before = this.livingOf(i32[s.queue + RunQueue.current])
    this.time += ms
    s.readClock()
    // A task that is alone, and goes on, is charged later.
    if (before === undefined || model.tasks.size > 1 || how !== 'preempt') this.charge(cpu)
    let why = SWITCH_PREEMPTED
    if (how === 'tick') s.ticks = true
    if (before !== undefined) {
      if (how === 'yield') why = SWITCH_YIELDS
      if (how === 'sleep' && beginSleep(s, before.task, INTERRUPTIBLE)) why = SWITCH_SLEEPS
      if (how === 'exit') {
        exitTask(s, before.task, 0)
        why = SWITCH_EXITS
      }
    }
    const stays = why === SWITCH_PREEMPTED || why === SWITCH_YIELDS
    const next = this.livingOf(schedule(s, why))
    if (before !== undefined && next === before) {
      model.chosen(before.model, why === SWITCH_YIELDS)
      return
    }
    if (next === undefined) {
      expect(model.tasks.size, 'an idle CPU has no tasks').toBe(before === undefined || stays ? 0 : 1)
    } else if (before === undefined || stays) {
      model.chosen(next.model, why === SWITCH_YIELDS)
    } else {
      this.chosenWithout(model, next.model, before.model)
    }
    if (before !== undefined) {
      if (why === SWITCH_YIELDS) model.yielded(before.model)
      if (!stays) model.leave(before.model)
      before.asleep = why === SWITCH_SLEEPS
      if (why === SWITCH_EXITS) {
        reapTask(s, before.task)
        this.living.splice(this.living.indexOf(before), 1)
      }
    }
    if (next !== undefined) model.switchTo(next.model)
    else model.running = undefined
  }

  /** The old task sleeps or ends: it counts in V, and does not compete. */
  private chosenWithout(model: FairModel, choice: ModelTask, without: ModelTask): void {
    expect(model.running).toBe(without)
    model.chosen(choice, true)
  }

  private wake(one: Living, cpu: number | undefined): void {
    if (!one.asleep) return
    if (cpu !== undefined) {
      setAffinity(this.other, one.task, 1 << cpu, 0)
      one.cpu = cpu
    }
    this.charge(one.cpu)
    expect(wakeupTask(this.other, one.task)).toBe(true)
    one.asleep = false
    this.models[one.cpu].enter(one.model)
  }

  private nice(one: Living, nice: number): void {
    const model = this.models[one.cpu]
    if (!one.asleep) {
      this.charge(one.cpu)
      const running = model.running === one.model
      model.leave(one.model)
      one.model.nice = nice
      model.enter(one.model)
      if (running) model.running = one.model
    } else {
      one.model.nice = nice
    }
    setNice(this.other, one.task, nice)
  }

  private charge(cpu: number): void {
    this.models[cpu].charge(this.time - this.switchedAt[cpu])
    this.switchedAt[cpu] = this.time
  }

  private livingOf(se: number): Living | undefined {
    return this.living.find(one => one.se === se)
  }

  /** Vruntimes and deadlines are those of the model; the lag of the model's tasks adds up to nothing. */
  private compare(): void {
    checkInvariants(this.other)
    const { f64 } = this.other
    for (const { se, model, asleep } of this.living) {
      const near = (field: number, value: number): boolean =>
        Math.abs(f64[(se + field) >> 1] - value) <= 1e-6 * (1 + Math.abs(value))
      if (asleep) expect(near(Entity.lag, model.lag), 'the lag of a sleeper').toBe(true)
      else {
        expect(
          near(Entity.vruntime, model.vruntime),
          `vruntime ${f64[(se + Entity.vruntime) >> 1]}, of the model ${model.vruntime}`,
        ).toBe(true)
        expect(
          near(Entity.deadline, model.deadline),
          `deadline ${f64[(se + Entity.deadline) >> 1]}, of the model ${model.deadline}`,
        ).toBe(true)
      }
    }
  }
}

function run(program: readonly Step[], slack?: number, breaks?: (tree: FairTree) => void): void {
  const pair = new Pair(slack)
  for (const s of [...pair.cpus, pair.other]) breaks?.(s.fairTree)
  for (const step of program) pair.do(step)
}

const RUNS = process.env.HEDDLE_LONG === '1' ? 5000 : 300

describe('every choice is right by a plain model of EEVDF', () => {
  test('in random programs of arrivals, turns, sleeps, wakeups, moves and changes of nice', () => {
    fc.assert(
      fc.property(programs, program => run(program)),
      { numRuns: RUNS },
    )
  })

  test('a tree that ignores who is eligible is found', () => {
    const broken = (tree: FairTree): void => {
      tree.earliestEligible = root => tree.first(root)
    }
    const result = fc.check(
      fc.property(programs, program => run(program, undefined, broken)),
      { numRuns: 300, endOnFailure: true },
    )
    expect(result.failed).toBe(true)
    expect(String(result.errorInstance)).toMatch(/more than its share|a later deadline/)
  })

  test('the order of the list is exact within the slack only: without a slack, that is found', () => {
    const result = fc.check(
      fc.property(programs, program => run(program, 0)),
      { numRuns: 300, endOnFailure: true },
    )
    expect(result.failed).toBe(true)
  })
})
