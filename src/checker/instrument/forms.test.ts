import * as fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../check.ts'
import type { Step } from '../../../testing/checker/programs/forms.ts'
import { loadInstrumented } from '../../../testing/checker/programs/load.ts'
import { Search } from '../search/search.ts'

type Forms = typeof import('../../../testing/checker/programs/forms.ts')
let programs: Forms
beforeAll(async () => {
  programs = await loadInstrumented<Forms>(
    new URL('../../../testing/checker/programs/forms.ts', import.meta.url),
  )
})

/** A thread of the plain machine that sleeps in `Atomics.wait`. */
interface Sleeper {
  woken: boolean
}
interface Plain extends Array<number> {
  /** The threads that sleep on each of the two words, in the order of their arrival. */
  sleepers: Sleeper[][]
}

/**
 * One access of the plain machine: a word and its new value. Word 2 is the length of the memory that grows.
 */
interface Access {
  (memory: Plain): unknown
  /** Whether it can happen now. Default: always. */
  able?: (memory: Plain) => boolean
  /** Its thread sleeps until then, or until it is woken. */
  sleeper?: Sleeper
}
type Steps = Generator<Access, unknown, any>
type Meaning = (index: number, value: number) => Steps

const get =
  (i: number): Access =>
  memory =>
    memory[i]
const put =
  (i: number, x: number): Access =>
  memory =>
    void (memory[i] = x)
const change =
  (i: number, to: (old: number) => number): Access =>
  memory => {
    const old = memory[i]!
    memory[i] = to(old)
    return old
  }
/** A loop that polls a word until it has a value is one access, which happens then. */
const once = (able: (memory: Plain) => boolean, access: Access): Access =>
  Object.assign((memory: Plain) => access(memory), { able })
const notify =
  (i: number, most: number): Access =>
  memory => {
    const woken = memory.sleepers[i]!.splice(0, most)
    for (const sleeper of woken) sleeper.woken = true
    return woken.length
  }
function leave(memory: Plain, sleeper: Sleeper | undefined): void {
  memory.sleepers = memory.sleepers.map(list => list.filter(one => one !== sleeper))
}
function* sleep(i: number, sleeper: Sleeper): Steps {
  return yield memory => {
    if (memory[i] !== 0) return false
    memory.sleepers[i]!.push(sleeper)
    return true
  }
}

const one: Meaning = function* (i) {
  return yield get(i)
}
const both: Meaning = function* () {
  return `${yield get(0)}${yield get(1)}`
}
const write: Meaning = function* (i, x) {
  yield put(i, x)
}
const writeBoth: Meaning = function* (_, x) {
  yield put(0, x)
  yield put(1, x)
}
const spins = (result: (turns: number) => number, most: number): Meaning =>
  function* (i) {
    let turns = 0
    while ((yield get(i)) === 0 && turns < most) turns++
    return result(turns)
  }

/** The meaning of each form, one access at a time, written without the checker. */
const meanings: Record<string, Meaning> = {
  ...Object.fromEntries(
    ['index', 'text', 'at', 'load', 'alias', 'data', 'byte', 'reflect', 'converts', 'default'].map(name => [
      name,
      one,
    ]),
  ),
  ...Object.fromEntries(
    [
      [
        'spread',
        'from',
        'slice',
        'join',
        'copy',
        'set',
        'object',
        'json',
        'forOf',
        'pattern',
        'map',
        'reduce',
      ],
      ['delegates', 'generator'],
    ]
      .flat()
      .map(name => [name, both]),
  ),
  ...Object.fromEntries(
    ['write', 'store', 'aliasStore', 'dataWrite', 'byteWrite', 'reflectSet', 'valued'].map(name => [
      name,
      write,
    ]),
  ),
  ...Object.fromEntries(['fill', 'setAll', 'destructured'].map(name => [name, writeBoth])),
  *nested() {
    const first: number = (yield get(0)) + 2 * (yield get(1))
    return `${first}${(yield get(1)) + 2 * (yield get(0))}`
  },
  *copyWithin() {
    const x: number = yield get(0)
    yield put(1, x)
  },
  *reverse() {
    const [a, b]: number[] = [yield get(0), yield get(1)]
    yield put(0, b!)
    yield put(1, a!)
  },
  *add(i) {
    return yield change(i, old => old + 1)
  },
  *exchange(i, x) {
    return yield change(i, () => x)
  },
  *compareExchange(i, x) {
    return yield change(i, old => (old === 0 ? x : old))
  },
  *plus(i) {
    const old: number = yield get(i)
    yield put(i, old + 1)
    return old
  },
  spins: spins(turns => turns, 2),
  spinsInObject: spins(turns => turns, 2),
  *spinsInProxy(i) {
    let turns = 0
    while ((yield get(i)) === 0) if (++turns >= 2) break
    return turns
  },
  spinsInGenerator: spins(() => 0, 2),
  *times(i) {
    const word: number = yield get(i)
    if (word !== 5) return 'not-equal'
    return 'timed-out'
  },
  *spinLock(i, x) {
    yield once(memory => memory[i] === 0, put(i, x))
    yield put(i, 0)
  },
  *exchangeLock(i) {
    yield once(memory => memory[i] !== 1, put(i, 1))
    yield put(i, 0)
  },
  *testedLock(i, x) {
    for (;;) {
      yield once(memory => memory[i] === 0, get(i))
      if ((yield change(i, old => (old === 0 ? x : old))) === 0) break
    }
    yield put(i, 0)
  },
  *ticketLock(i) {
    const ticket: number = yield change(i, old => old + 1)
    yield once(memory => memory[1 - i] === ticket, get(1 - i))
    yield put(1 - i, ticket + 1)
    return ticket
  },
  *spinsUntil(i, x) {
    yield once(memory => memory[i] === x, get(i))
  },
  *spinsPlainly(i) {
    yield once(memory => memory[i] !== 0, get(i))
    return yield get(i)
  },
  *wait(i) {
    const sleeper: Sleeper = { woken: false }
    if (!(yield* sleep(i, sleeper))) return 'not-equal'
    const awake: Access = () => 'ok'
    return yield Object.assign(awake, { able: () => sleeper.woken, sleeper })
  },
  *waitAwhile(i) {
    const sleeper: Sleeper = { woken: false }
    if (!(yield* sleep(i, sleeper))) return 'not-equal'
    const awake: Access = memory => {
      if (sleeper.woken) return 'ok'
      leave(memory, sleeper)
      return 'timed-out'
    }
    return yield Object.assign(awake, { sleeper })
  },
  *notify(i) {
    return yield notify(i, 1)
  },
  *notifyAll(i) {
    return yield notify(i, Number.POSITIVE_INFINITY)
  },
  *grow() {
    if ((yield get(2)) === 1) yield put(2, 2)
  },
  *length() {
    return yield get(2)
  },
  *beyond() {
    return (yield get(2)) === 2 ? 0 : undefined
  },
}

/**
 * An outcome of a program: the results of its threads and the content of memory, or `STUCK` if a thread
 * cannot end.
 */
const STUCK = 'a thread cannot end'

/** The outcomes of every interleaving of plain generators. `deaths`: how many threads may die. */
function enumerate(threads: readonly (readonly Step[])[], deaths: number): Set<string> {
  const found = new Set<string>()
  const choices: number[] = []
  for (let runs = 0; ; runs++) {
    fc.pre(runs < 6000)
    const memory: Plain = Object.assign([0, 0, 1], { sleepers: [[], []] })
    const texts: (string | undefined)[] = threads.map(() => '')
    const running = threads.map(function* (steps, t): Steps {
      for (const { form, index, value } of steps) texts[t] += `${yield* meanings[form]!(index, value)};`
      return undefined
    })
    const next = threads.map((_, t) => running[t]!.next())
    const counts: number[] = []
    let dead = 0
    for (let depth = 0; ; depth++) {
      const living = threads.map((_, t) => t).filter(t => next[t]!.done !== true && texts[t] !== undefined)
      const able = living.filter(t => (next[t]!.value as Access).able?.(memory) !== false)
      // A choice past the threads that can continue is a death.
      const mortal = dead < deaths ? living : []
      if (able.length === 0 && living.length > 0) found.add(STUCK)
      if (able.length + mortal.length === 0) {
        if (living.length === 0 && dead === deaths) found.add(`${texts.join(' | ')} ${memory.join()}`)
        break
      }
      if (depth === choices.length) choices.push(0)
      counts.push(able.length + mortal.length)
      const choice = choices[depth]!
      if (choice < able.length) {
        const t = able[choice]!
        next[t] = running[t]!.next((next[t]!.value as Access)(memory))
      } else {
        const t = mortal[choice - able.length]!
        texts[t] = undefined
        dead++
        leave(memory, (next[t]!.value as Access).sleeper)
      }
    }
    choices.length = counts.length
    while (choices.length > 0 && choices.at(-1)! + 1 >= counts[choices.length - 1]!) choices.pop()
    if (choices.length === 0) return found
    choices[choices.length - 1]!++
  }
}

function explore(threads: readonly (readonly Step[])[], deaths: number): Set<string> {
  const found = new Set<string>()
  const options = { races: false, keepGoing: true, ...(deaths > 0 && { crashes: deaths }) }
  const search = new Search('random', options, (): Program => {
    const { memory, ...program } = programs.program(threads)
    return {
      ...program,
      final({ results, crashed }) {
        if (crashed.length < deaths) return
        found.add(`${results.join(' | ')} ${[memory.v[0], memory.v[1], memory.grown.length].join()}`)
      },
    }
  })
  search.run()
  const { complete, failure } = search.result
  expect(complete).toBe(true)
  if (failure !== undefined) {
    expect(['deadlock', 'lost-wakeup', 'livelock']).toContain(failure.kind)
    found.add(STUCK)
  }
  return found
}

const times = process.env.HEDDLE_LONG === '1' ? 25 : 1

/** Compares `runs` random programs of these forms. Every form must occur in one of them. */
function compare(names: readonly string[], runs: number, threadsMax: number, deaths: number): void {
  const met = new Set<string>()
  const step = fc.record({
    form: fc.constantFrom(...names),
    index: fc.integer({ min: 0, max: 1 }),
    value: fc.integer({ min: 1, max: 3 }),
  })
  const thread = fc.array(step, { minLength: 1, maxLength: 2 })
  fc.assert(
    fc.property(fc.array(thread, { minLength: 2, maxLength: threadsMax }), threads => {
      const all = enumerate(threads, deaths)
      for (const { form } of threads.flat()) met.add(form)
      expect([...explore(threads, deaths)].sort()).toEqual([...all].sort())
    }),
    { numRuns: runs * times },
  )
  expect([...met].sort()).toEqual([...names].sort())
}

const atomic: readonly string[] = [
  'load',
  'store',
  'add',
  'exchange',
  'compareExchange',
  'spins',
  'spinLock',
  'exchangeLock',
  'testedLock',
  'ticketLock',
  'spinsUntil',
  'wait',
  'waitAwhile',
  'notify',
  'notifyAll',
]

describe('random programs have the same outcomes as a plain enumeration of all interleavings', () => {
  test('of every form', () => {
    const names = Object.keys(programs.forms)
    expect(names.filter(name => meanings[name] === undefined)).toEqual([])
    compare(names, 1400, 3, 0)
  }, 600_000)

  test(
    'of atomic accesses, locks by hand, waits and notifies alone',
    () => compare(atomic, 400, 3, 0),
    600_000,
  )

  test('in which a thread dies', () => compare(atomic, 200, 2, 1), 600_000)
})
