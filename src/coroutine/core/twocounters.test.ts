/** The design's own test, in every mode: two coroutines that count and never yield; both advance. */
import { describe, expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { compile } from '../../compiler/compile.ts'
import { evaluateModule } from '../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../compiler/runtime.ts'
import { reserveMachine } from '../../machine/core/cpurecord.ts'
import { NodeMachine } from '../../machine/node/nodemachine.ts'
import { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import { needResched, PREEMPTED } from './coroutine.ts'
import twoCounters, { reserveCounters, TURNS } from '../../../testing/coroutine/fixtures/twocounters.ts'
import { Schedule } from '../schedule/schedule.ts'
import { VirtualTime } from '../schedule/virtualtime.ts'

interface Counter {
  count: number
  other: Counter
  /** Where it has seen the other stand. */
  seen: Set<number>
}

/**
 * They count until each has seen the other in so many places; without turns that never is, and they stop
 * here.
 */
const PLACES = 4
const LIMIT = 200_000_000

function counters(): [Counter, Counter] {
  const first = { count: 0, seen: new Set<number>() } as Counter
  const second = { count: 0, seen: new Set<number>(), other: first } as Counter
  first.other = second
  return [first, second]
}

function* handWritten(counter: Counter): Generator<number, void, unknown> {
  while (counter.count < LIMIT) {
    counter.count++
    if (counter.count % 64 === 0) {
      if (needResched()) yield PREEMPTED
      counter.seen.add(counter.other.count)
      if (counter.seen.size >= PLACES && counter.other.seen.size >= PLACES) return
    }
  }
}

const source = `export function count(counter) {
  'use task'
  while (counter.count < ${LIMIT}) {
    counter.count++
    if (counter.count % 64 === 0) {
      counter.seen.add(counter.other.count)
      if (counter.seen.size >= ${PLACES} && counter.other.seen.size >= ${PLACES}) return
    }
  }
}`

const { count: compiled } = evaluateModule(compile(source, 'count.js').code, 'count.js', {
  'heddle/runtime': runtime,
}) as { count: (counter: Counter) => void }

/** Each saw the other stand in several places, and neither had to count to the end for that. */
function expectBothAdvance(both: readonly Counter[]): void {
  for (const { count, seen } of both) {
    expect(count).toBeGreaterThan(0)
    expect(count).toBeLessThan(LIMIT)
    expect(seen.size).toBeGreaterThanOrEqual(PLACES)
  }
}

const bodies: [string, (counter: Counter) => unknown][] = [
  ['generators', handWritten],
  ["'use task' functions", compiled],
]

describe.each(bodies)('%s', (_name, body) => {
  test('on virtual time, the loop on the spot', () => {
    const time = new VirtualTime()
    const schedule = new Schedule({ platform: time, ticks: time.slices(0.1) })
    const both = counters()
    for (const counter of both) schedule.go(body, counter)
    schedule.runSync()
    expectBothAdvance(both)
  })

  test('on virtual time, the loop beside the event loop', async () => {
    const time = new VirtualTime()
    const schedule = new Schedule({ platform: time, ticks: time.slices(0.1) })
    const both = counters()
    for (const counter of both) schedule.go(body, counter)
    await schedule.run()
    expectBothAdvance(both)
  })

  test('with the clock read at safepoints', async () => {
    const schedule = new Schedule({ ticks: 'clock', slice: 1 })
    const both = counters()
    for (const counter of both) schedule.go(body, counter)
    await schedule.run()
    expectBothAdvance(both)
    expect(schedule.statistics.ticks).toBe('clock')
  })

  test.each(['run', 'runSync'] as const)('with a timekeeper thread, %s', async how => {
    await using schedule = new Schedule({ ticks: 'thread', slice: 1 })
    // Ticks come from the clock until the thread is up.
    while (schedule.statistics.ticks === 'clock') {
      for (const counter of counters()) schedule.go(body, counter)
      if (how === 'run') await schedule.run()
      else schedule.runSync()
    }
    const both = counters()
    for (const counter of both) schedule.go(body, counter)
    if (how === 'run') await schedule.run()
    else schedule.runSync()
    expectBothAdvance(both)
    expect(schedule.statistics.ticks).toBe('thread')
  })
})

test('on a schedule left to itself, which starts its thread once it has been busy', async () => {
  await using schedule = new Schedule({ slice: 1 })
  let rounds = 0
  while (schedule.statistics.ticks === 'clock') {
    const both = counters()
    for (const counter of both) schedule.go(compiled, counter)
    await schedule.run()
    expectBothAdvance(both)
    expect(++rounds).toBeLessThan(1000)
  }
})

test('on many schedules of one thread at once, more than can have ticks from the timekeeper', async () => {
  const schedules = Array.from({ length: 10 }, () => new Schedule({ slice: 1 }))
  const rounds = async (schedule: Schedule): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      const both = counters()
      for (const counter of both) schedule.go(compiled, counter)
      await schedule.run()
      expectBothAdvance(both)
    }
  }
  await Promise.all(schedules.map(rounds))
  for (const schedule of schedules) schedule.exit()
})

describe('on a CPU of the kernel’s machines', () => {
  test('simulated', () => {
    const plan = new ArenaPlan()
    const region = reserveMachine(plan, 1)
    const data = reserveCounters(plan)
    const arena = Arena.create(plan)
    const machine = new SimulatedMachine({ arena, region, program: twoCounters, data, seed: 1 })
    machine.startAll()
    expect(machine.run()).toBe('idle')
    expectCountersAdvanced(arena, data.start)
  })

  test('real', async () => {
    const plan = new ArenaPlan()
    const region = reserveMachine(plan, 1)
    const data = reserveCounters(plan)
    const arena = Arena.create(plan)
    const program = new URL('../../../testing/coroutine/fixtures/twocounters.ts', import.meta.url)
    const machine = new NodeMachine({ arena, region, program, data })
    await machine.start(0)
    await machine.stop(0)
    await machine.close()
    expectCountersAdvanced(arena, data.start)
  })
})

function expectCountersAdvanced(arena: Arena, start: number): void {
  const { i32 } = arena
  expect(i32[start]).toBeGreaterThan(0)
  expect(i32[start + 1]).toBeGreaterThan(0)
  // How often one found the other further than before.
  expect(i32[start + 2]).toBeGreaterThanOrEqual(TURNS)
}
