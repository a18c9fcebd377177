/**
 * Shares of CPU time while the CPU reads the clock at some switches only (turnclock.ts): the real loop of a
 * CPU, and a clock that each turn moves on by its own length.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { CpuRecord, reserveMachine } from '../../machine/core/cpurecord.ts'
import { HALT } from '../../machine/core/machine.ts'
import { WorkerCpu } from '../../machine/core/workercpu.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { cpuLoop } from '../core/cpuloop.ts'
import { exitTask } from '../core/exit.ts'
import { createTask, startTask } from '../core/fork.ts'
import { weightOfNice } from '../core/priority.ts'
import { RunQueue } from '../core/runqueue.ts'
import { planScheduler, Scheduler } from '../core/scheduler.ts'
import { SWITCH_EXITS, SWITCH_PREEMPTED, SWITCH_YIELDS } from '../core/switch.ts'
import { TaskRecord } from '../core/taskrecord.ts'

interface Turns {
  readonly nice?: number
  /** Milliseconds of its next turn; Infinity: until its slice ends. */
  readonly next: (turn: number) => number
}

interface Outcome {
  /** Milliseconds that each task ran, by its own turns. */
  readonly ran: readonly number[]
  readonly turns: readonly number[]
  /** How often the CPU read the clock. */
  readonly readings: number
}

/** Runs the tasks on one CPU for so many milliseconds. All of them yield after each turn. */
function runTurns(total: number, tasks: readonly Turns[]): Outcome {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 1)
  const schedulerPlan = planScheduler(plan, { cpus: 1, tasks: 64 })
  const arena = Arena.create(plan)
  let time = 1
  let readings = 0
  const cpu = new WorkerCpu(arena, region, 0, () => {
    readings++
    return time
  })
  const s = Scheduler.forCpu(schedulerPlan, cpu)
  s.initialize()
  const { i32, f64 } = s
  const ran = tasks.map(() => 0)
  const turns = tasks.map(() => 0)
  const slots = new Map<number, number>()
  const loop = cpuLoop(cpu, s, task => {
    const index = slots.get(i32[task + TaskRecord.slot]) as number
    if (time >= total) {
      checkInvariants(s)
      exitTask(s, task, 0)
      return SWITCH_EXITS
    }
    const tick = f64[(s.queue + RunQueue.tickAt) >> 1] || time + 1
    const length = tasks[index].next(turns[index]++)
    const end = Math.max(time, length === Infinity ? tick + 0.00001 : time + length)
    ran[index] += end - time
    time = end
    if (time >= tick) Atomics.store(i32, cpu.record + CpuRecord.needResched, 1)
    return length === Infinity ? SWITCH_PREEMPTED : SWITCH_YIELDS
  })
  loop.next()
  tasks.forEach(({ nice }, index) => {
    const task = createTask(s, { affinity: [0], ...(nice !== undefined && { nice }) })
    slots.set(i32[task + TaskRecord.slot], index)
    startTask(s, task)
  })
  do {
    const { value } = loop.next()
    if (value !== HALT) continue
  } while (s.tasks.count(i32) > 1)
  return { ran, turns, readings }
}

/** A fixed length, with some jitter that has no average. */
function about(ms: number): (turn: number) => number {
  return turn => ms * (1 + 0.2 * Math.sin(turn * 1.7))
}

const MS = 40
const short = fc.double({ min: 0.0002, max: 0.0009, noNaN: true })
const RUNS = process.env.HEDDLE_LONG === '1' ? 60 : 6

test('while turns are short, the clock is read at few of the switches', () => {
  const { turns, readings } = runTurns(
    MS,
    [1, 2, 3, 4].map(() => ({ next: about(0.0005) })),
  )
  const switches = turns.reduce((sum, count) => sum + count)
  expect(switches).toBeGreaterThan(MS / 0.0006)
  expect(readings).toBeLessThan(switches / 20)
})

test('tasks with turns of equal length get equal time', () => {
  fc.assert(
    fc.property(short, fc.integer({ min: 2, max: 9 }), (length, count) => {
      const { ran } = runTurns(
        MS,
        Array.from({ length: count }, () => ({ next: about(length) })),
      )
      for (const ms of ran) expect(Math.abs(ms - MS / count)).toBeLessThan(0.05 * MS)
    }),
    { numRuns: RUNS },
  )
})

test('a task with longer turns, short or long, gets no more than its share', () => {
  const longer = fc.oneof(
    fc.double({ min: 1, max: 5, noNaN: true }),
    fc.constantFrom(20, 500, 4000),
    fc.constant(Infinity),
  )
  fc.assert(
    fc.property(
      fc.double({ min: 0.0002, max: 0.0003, noNaN: true }),
      longer,
      fc.integer({ min: 4, max: 8 }),
      (length, factor, count) => {
        const others = Array.from({ length: count - 1 }, () => ({ next: about(length) }))
        const next = factor === Infinity ? () => Infinity : about(length * factor)
        const { ran, turns } = runTurns(4 * MS, [...others, { next }])
        const longest = factor === Infinity ? 10 : 1.2 * length * factor
        // A slack of the list, the turn that goes beyond it, and estimates of turns that are not measured.
        expect(ran[count - 1]).toBeLessThan((1.1 * 4 * MS) / count + 1 + longest)
        expect(Math.min(...turns)).toBeGreaterThan(0)
      },
    ),
    { numRuns: RUNS },
  )
})

test('one long turn among thousands of short ones is charged, or its task is found soon', () => {
  const others = Array.from({ length: 5 }, () => ({ next: about(0.0003) }))
  const next = (turn: number): number => (turn % 50 === 49 ? 2 : 0.0003)
  const { ran } = runTurns(8 * MS, [...others, { next }])
  // Of six tasks it would get nearly all time if long turns were free, and a sixth if all were charged.
  expect(ran[5] / (8 * MS)).toBeLessThan(0.5)
})

test('tasks of other weights share by weight, also when their turns are short', () => {
  fc.assert(
    fc.property(
      short,
      fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 5, maxLength: 8 }),
      (length, nices) => {
        const { ran } = runTurns(
          2 * MS,
          nices.map(nice => ({ nice, next: about(length) })),
        )
        const total = nices.reduce((sum, nice) => sum + weightOfNice(nice), 0)
        nices.forEach((nice, index) => {
          const share = (2 * MS * weightOfNice(nice)) / total
          expect(Math.abs(ran[index] - share), `nice ${nice} of ${nices.join()}`).toBeLessThan(
            0.1 * share + 0.5,
          )
        })
      },
    ),
    { numRuns: RUNS },
  )
})
