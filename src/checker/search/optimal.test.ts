import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Guards } from '../machine/guards.ts'
import { HappensBefore } from './happensbefore.ts'
import { Machine } from '../machine/machine.ts'
import { FINISHED, SPINNING } from '../machine/threadstates.ts'
import type { Program, Setup } from '../machine/program.ts'
import { BeginAgain, Memory } from '../machine/memory.ts'
import { Optimal } from './optimal.ts'
import {
  ADD,
  COMPARE_EXCHANGE,
  EXCHANGE,
  LOAD,
  LOCK,
  NOTIFY,
  STORE,
  UNLOCK,
  WAIT,
} from '../machine/operations.ts'
import { CheckedMutex } from '../machine/mutex.ts'
import { loop, op, turn } from '../instrument/runtime.ts'
import { split } from './split.ts'

/** A step of a random program: the operation, its place, and a small value. */
interface Step {
  readonly kind: number
  readonly cell: number
  readonly value: number
  readonly extra: number
}

const CELLS = 2

/**
 * Threads that carry the values that they read along and branch on them, so that values flow between threads.
 */
function programOf(threads: readonly (readonly Step[])[], states?: Set<string>): Setup {
  return (): Program => {
    const memory = new Int32Array(new SharedArrayBuffer(4 * CELLS))
    const bytes = new Int8Array(memory.buffer)
    const mutex = new CheckedMutex()
    return {
      ...(states && {
        always: {
          words: { a: [memory, 0], b: [memory, 1] },
          holds: ({ a, b }) => void states.add(`${a} ${b}`),
        },
      }),
      threads: threads.map(
        steps =>
          function* body(): Generator<number, unknown, unknown> {
            let seen = 0
            for (const { kind, cell, value, extra } of steps) {
              if (kind === SPIN) {
                const entered = loop(0)
                while (turn(entered) && (yield op(COMPARE_EXCHANGE, 1, memory, cell, 0, 1)) !== 0);
                yield op(STORE, 0, memory, cell, 0)
              } else if (kind === SPIN_EXCHANGE) {
                const entered = loop(0)
                while (turn(entered) && (yield op(EXCHANGE, 2, memory, cell, 1)) !== 0);
                yield op(STORE, 0, memory, cell, 0)
              } else if (kind === SPIN_TEST) {
                const entered = loop(0)
                while (turn(entered)) {
                  if ((yield op(LOAD, 3, memory, cell)) !== 0) continue
                  if ((yield op(COMPARE_EXCHANGE, 4, memory, cell, 0, 1)) === 0) break
                }
                yield op(STORE, 0, memory, cell, 0)
              } else if (kind === SPIN_TICKET) {
                const ticket = (yield op(ADD, 0, memory, cell, 1)) as number
                const entered = loop(0)
                while (turn(entered) && (yield op(LOAD, 5, memory, 1 - cell)) !== ticket);
                yield op(STORE, 0, memory, 1 - cell, ticket + 1)
              } else if (kind === SPIN_LOAD) {
                const entered = loop(0)
                let x = 0
                while (turn(entered)) {
                  x = (yield op(LOAD, 6, memory, cell)) as number
                  if (x !== 0) break
                }
                seen += x
              } else if (kind === SPIN_TWO) {
                const entered = loop(0)
                while (turn(entered)) {
                  const x = (yield op(LOAD, 7, memory, cell)) as number
                  const y = (yield op(LOAD, 8, memory, 1 - cell)) as number
                  if (x !== y) break
                }
              } else if (kind === SPIN_WAIT) {
                const entered = loop(0)
                while (turn(entered) && (yield op(LOAD, 9, memory, cell)) === 0) {
                  yield op(WAIT, 0, memory, extra, 0, value === 0 ? 10 : undefined)
                }
              } else if (kind === BYTE) {
                seen += (yield op(extra === 0 ? LOAD : ADD, 0, bytes, cell * 4 + value, 1)) as number
              } else if (kind === MUTEX) {
                yield op(LOCK, 0, mutex)
                seen += (yield op(ADD, 0, memory, cell, value)) as number
                yield op(UNLOCK, 0, mutex)
              } else if (kind === WAIT) {
                const result = yield op(WAIT, 0, memory, cell, value, extra === 0 ? undefined : 10)
                seen += result === 'ok' ? 1 : result === 'timed-out' ? 2 : 3
              } else if (kind === NOTIFY) {
                seen += (yield op(NOTIFY, 0, memory, cell, extra === 0 ? 1 : undefined)) as number
              } else if (kind === COMPARE_EXCHANGE) {
                seen += (yield op(kind, 0, memory, cell, value, extra)) as number
              } else {
                const result = (yield op(
                  kind,
                  0,
                  memory,
                  cell,
                  kind === STORE ? value + seen : value,
                )) as number
                if (kind !== STORE) seen += result
              }
              seen %= 4
            }
            return seen
          },
      ),
    }
  }
}

const SPIN = 100
const SPIN_LOAD = 101
const BYTE = 102
const MUTEX = 103
const SPIN_TWO = 104
const SPIN_WAIT = 105
const SPIN_EXCHANGE = 106
const SPIN_TEST = 107
const SPIN_TICKET = 108

interface Found {
  /** The traces of complete executions, one entry for each run. */
  readonly traces: string[]
  readonly outcomes: Set<string>
  asleep: number
}

/** The outcome of an execution: memory, results, and the threads that are blocked. */
function outcomeOf(machine: Machine): string {
  const memory = machine.memory.buffers.map(({ bytes }) => Array.from(bytes).join()).join('|')
  const stuck = Array.from({ length: machine.threads }, (_, t) => (machine.status[t] === FINISHED ? 0 : 1))
  return `${memory} ${machine.results.join()} ${stuck.join()}`
}

/**
 * The trace of an execution, which ignores the order of events that do not conflict: each event with its
 * clock.
 */
function traceOf(machine: Machine): string {
  const { log, threads } = machine
  const happens = new HappensBefore(log, threads)
  const rows: string[] = []
  for (let at = 0; at < log.length; at++) {
    happens.add(at, machine.memory.cells)
    rows.push(
      `${log.thread[at]}.${log.ordinal[at]}:${log.kind[at]}/${log.from[at]}/${log.flags[at] & 3}<${happens.rows.subarray(at * threads, (at + 1) * threads).join()}`,
    )
  }
  return rows.sort().join(' ')
}

function explore(setup: Setup, run: (machine: Machine, setup: Setup, found: Found) => void): Found {
  let again = new BeginAgain(3)
  for (;;) {
    const memory = new Memory(again.shift, again.mixed)
    const guards = new Guards(memory)
    const machine = new Machine(memory)
    const found: Found = { traces: [], outcomes: new Set(), asleep: 0 }
    guards.install()
    try {
      const guarded: Setup = () => {
        guards.inSetup = true
        try {
          return setup()
        } finally {
          guards.inSetup = false
        }
      }
      run(machine, guarded, found)
      return found
    } catch (error) {
      if (!(error instanceof BeginAgain)) throw error
      again = error
    } finally {
      guards.remove()
    }
  }
}

function optimal(machine: Machine, setup: Setup, found: Found): void {
  const explorer = new Optimal(machine, setup, 1000)
  do {
    explorer.execute()
    expect(machine.diverged).toBe(-1)
    if (explorer.ended === 'again') {
      found.traces.length = 0
      found.asleep = 0
    }
    if (explorer.ended === 'asleep') found.asleep++
    if (explorer.ended === 'complete') add(found, machine)
  } while (explorer.hasMore)
}

/** When a thread spins for ever at the end, the time at which it began to spin makes no difference. */
function add(found: Found, machine: Machine): void {
  const spins = machine.status.subarray(0, machine.threads).includes(SPINNING)
  if (!spins) found.traces.push(traceOf(machine))
  found.outcomes.add(outcomeOf(machine))
}

/** The same search in parts: each part separately, with source sets. */
function inParts(machine: Machine, setup: Setup, found: Found): void {
  const roots = split(machine, setup, 6)
  for (const root of roots) {
    const explorer = new Optimal(machine, setup, 1000, root)
    const before = found.traces.length
    do {
      explorer.execute()
      if (explorer.ended === 'again') found.traces.length = before
      if (explorer.ended === 'complete') add(found, machine)
    } while (explorer.hasMore)
  }
}

/**
 * Every interleaving, one after the other. Executions with a useless turn of a loop count only if no thread
 * can go on.
 */
function naive(machine: Machine, setup: Setup, found: Found): void {
  machine.spin.stopsForGood = true
  everyInterleaving(machine, setup, found)
}

/** The same, but a thread that took a useless turn turns again when a value has changed. */
function naiveTurning(machine: Machine, setup: Setup, found: Found): void {
  machine.spin.stopsForGood = false
  everyInterleaving(machine, setup, found)
}

function everyInterleaving(machine: Machine, setup: Setup, found: Found): void {
  const choices: number[] = []
  const counts: number[] = []
  for (let executions = 1; ; executions++) {
    machine.begin(setup)
    let depth = 0
    while (machine.enabled !== 0) {
      const enabled = Array.from({ length: machine.threads }, (_, t) => t).filter(
        t => (machine.enabled >> t) & 1,
      )
      if (depth === choices.length) choices.push(0)
      counts[depth] = enabled.length
      machine.step(enabled[choices[depth]])
      depth++
    }
    if (!machine.spin.redundant) add(found, machine)
    choices.length = depth
    while (choices.length > 0 && choices[choices.length - 1] + 1 >= counts[choices.length - 1]) choices.pop()
    if (choices.length === 0) return
    choices[choices.length - 1]++
    // Useless turns make executions that are no traces: some random programs have millions.
    fc.pre(found.traces.length < 20_000 && executions < 60_000)
  }
}

/** Whether a program has loops that wait: until the search knows where, it abandons some executions. */
function spins(threads: readonly (readonly Step[])[]): boolean {
  return threads.some(steps =>
    steps.some(({ kind }) => kind === SPIN || kind === SPIN_LOAD || kind >= SPIN_TWO),
  )
}

function compare(threads: readonly (readonly Step[])[]): void {
  const setup = programOf(threads)
  const reduced = explore(setup, optimal)
  const all = explore(setup, naive)
  if (!spins(threads)) expect(reduced.asleep, 'no execution ends because everything is asleep').toBe(0)
  expect(new Set(reduced.traces).size, 'no trace is run twice').toBe(reduced.traces.length)
  expect([...reduced.traces].sort()).toEqual([...new Set(all.traces)].sort())
  expect([...reduced.outcomes].sort()).toEqual([...all.outcomes].sort())
}

/**
 * The same with watched words: the reduced search reaches each state of the watched words that any
 * interleaving reaches.
 */
function compareWatched(threads: readonly (readonly Step[])[]): void {
  const seen = new Set<string>()
  const all = new Set<string>()
  const reduced = explore(programOf(threads, seen), optimal)
  const naively = explore(programOf(threads, all), naive)
  expect([...seen].sort()).toEqual([...all].sort())
  if (!spins(threads)) expect(reduced.asleep, 'no execution ends because everything is asleep').toBe(0)
  expect(new Set(reduced.traces).size, 'no trace is run twice').toBe(reduced.traces.length)
  expect([...reduced.traces].sort()).toEqual([...new Set(naively.traces)].sort())
  const inShares = new Set<string>()
  explore(programOf(threads, inShares), inParts)
  expect([...inShares].sort()).toEqual([...all].sort())
}

function stepsOf(kinds: readonly number[]): fc.Arbitrary<Step> {
  return fc.record({
    kind: fc.constantFrom(...kinds),
    cell: fc.integer({ min: 0, max: CELLS - 1 }),
    value: fc.integer({ min: 0, max: 2 }),
    extra: fc.integer({ min: 0, max: 1 }),
  })
}

function programs(kinds: readonly number[], threads: number, steps: number): fc.Arbitrary<Step[][]> {
  return fc.array(fc.array(stepsOf(kinds), { minLength: 1, maxLength: steps }), {
    minLength: 2,
    maxLength: threads,
  })
}

/**
 * A notify that finds a sleeper in a loop and might have found none: the turn of the sleeper is not useless.
 */
const wokenInLoop: Step[][] = [
  [
    { kind: NOTIFY, cell: 0, value: 0, extra: 0 },
    { kind: SPIN, cell: 0, value: 0, extra: 0 },
  ],
  [{ kind: SPIN_WAIT, cell: 0, value: 1, extra: 0 }],
]

const runs = process.env.HEDDLE_LONG === '1' ? 5000 : 150

/**
 * A wait that, when reversed, finds its value and joins a list: an independent notify must then come first.
 */
const waitThatJoins: Step[][] = [
  [
    { kind: LOAD, cell: 0, value: 0, extra: 0 },
    { kind: MUTEX, cell: 1, value: 0, extra: 0 },
  ],
  [{ kind: WAIT, cell: 1, value: 0, extra: 0 }],
  [
    { kind: MUTEX, cell: 0, value: 0, extra: 0 },
    { kind: NOTIFY, cell: 1, value: 0, extra: 0 },
  ],
]

/** One thread waits for ever where the others are asleep: the word that it waits for is still in a race. */
const waitsWhereAllSleep: Step[][] = [
  [
    { kind: LOAD, cell: 0, value: 0, extra: 0 },
    { kind: LOAD, cell: 1, value: 0, extra: 0 },
  ],
  [
    { kind: SPIN, cell: 0, value: 0, extra: 0 },
    { kind: SPIN_TEST, cell: 1, value: 0, extra: 0 },
  ],
  [
    { kind: LOAD, cell: 0, value: 0, extra: 0 },
    { kind: MUTEX, cell: 0, value: 1, extra: 0 },
  ],
]

/**
 * Bytes of a word that is first accessed as a whole: the whole word is of mixed sizes, not only those bytes.
 */
const bytesAfterWord: Step[][] = [
  [
    { kind: BYTE, cell: 0, value: 0, extra: 0 },
    { kind: BYTE, cell: 1, value: 1, extra: 0 },
  ],
  [
    { kind: COMPARE_EXCHANGE, cell: 1, value: 0, extra: 1 },
    { kind: BYTE, cell: 1, value: 2, extra: 1 },
  ],
  [
    { kind: COMPARE_EXCHANGE, cell: 1, value: 0, extra: 0 },
    { kind: BYTE, cell: 1, value: 1, extra: 1 },
  ],
]

describe('the optimal search runs every trace once, as a search of all interleavings finds them', () => {
  const accesses = [LOAD, LOAD, STORE, ADD, EXCHANGE, COMPARE_EXCHANGE, COMPARE_EXCHANGE]
  test('of loads, stores and read-modify-writes', () => {
    fc.assert(fc.property(programs(accesses, 3, 3), compare), { numRuns: runs })
  })
  test('of accesses of different sizes to overlapping bytes', () => {
    fc.assert(fc.property(programs([LOAD, STORE, COMPARE_EXCHANGE, BYTE, BYTE], 3, 3), compare), {
      numRuns: runs,
    })
  })
  test('of waits, timeouts and notifies', () => {
    fc.assert(fc.property(programs([WAIT, WAIT, NOTIFY, STORE, LOAD], 3, 3), compare), { numRuns: runs })
  })
  test('of mutexes', () => {
    fc.assert(fc.property(programs([MUTEX, MUTEX, LOAD, STORE], 3, 2), compare), { numRuns: runs })
  })
  test('of loops that wait for a change', () => {
    fc.assert(
      fc.property(programs([SPIN, SPIN_LOAD, SPIN_TWO, SPIN_WAIT, NOTIFY, STORE, LOAD, ADD], 3, 2), compare),
      {
        numRuns: runs,
      },
    )
  })
  test('of handwritten locks: compare-exchange, exchange, test and test-and-set, tickets', () => {
    const locks = [SPIN, SPIN_EXCHANGE, SPIN_TEST, SPIN_TICKET, SPIN_LOAD, STORE, ADD]
    fc.assert(fc.property(programs(locks, 3, 2), compare), { numRuns: runs })
  })
  test('and also when it is split in parts', () => {
    const kinds = [LOAD, STORE, ADD, COMPARE_EXCHANGE, WAIT, NOTIFY, MUTEX, SPIN, SPIN_TEST, SPIN_EXCHANGE]
    fc.assert(
      fc.property(programs(kinds, 3, 2), threads => {
        const setup = programOf(threads)
        const whole = explore(setup, optimal)
        const parts = explore(setup, inParts)
        expect([...parts.traces].sort()).toEqual([...whole.traces].sort())
        expect([...parts.outcomes].sort()).toEqual([...whole.outcomes].sort())
      }),
      { numRuns: runs, examples: [[waitThatJoins], [waitsWhereAllSleep]] },
    )
  })
  test('and a useless turn of a loop leads to no state that the search does not reach', () => {
    const kinds = [SPIN, SPIN_EXCHANGE, SPIN_TEST, SPIN_TICKET, SPIN_LOAD, SPIN_TWO, SPIN_WAIT]
    const loops = programs([...kinds, NOTIFY, STORE, ADD], 3, 2)
    fc.assert(
      fc.property(loops, threads => {
        const setup = programOf(threads)
        const turning = explore(setup, naiveTurning)
        expect([...explore(setup, optimal).outcomes].sort()).toEqual([...turning.outcomes].sort())
      }),
      { numRuns: Math.min(runs, 1000), examples: [[wokenInLoop]] },
    )
  })
  test('and reaches every state of the watched words', () => {
    fc.assert(fc.property(programs(accesses, 3, 3), compareWatched), { numRuns: runs })
    const others = [SPIN, SPIN_LOAD, SPIN_WAIT, WAIT, NOTIFY, MUTEX, STORE, ADD, COMPARE_EXCHANGE]
    fc.assert(fc.property(programs(others, 3, 2), compareWatched), { numRuns: runs })
    fc.assert(fc.property(programs([BYTE, STORE, COMPARE_EXCHANGE], 3, 2), compareWatched), {
      numRuns: runs,
      examples: [[bytesAfterWord]],
    })
  })
  test('of four threads', () => {
    fc.assert(fc.property(programs(accesses, 4, 2), compare), { numRuns: runs })
  })
})
