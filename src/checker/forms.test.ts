import * as fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { check, type Program } from './check.ts'
import type { Step } from './programs/forms.ts'
import { loadInstrumented } from './programs/load.ts'

type Forms = typeof import('./programs/forms.ts')
let programs: Forms
beforeAll(async () => {
  programs = await loadInstrumented<Forms>(new URL('./programs/forms.ts', import.meta.url))
})

/** One access of the plain machine: a word, and what it becomes; a word of 2 is the length of what grows. */
type Access = (memory: number[]) => unknown
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

/** What each form is, one access at a time: written without the checker. */
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

/** Every interleaving, one after the other, of plain generators. */
function enumerate(threads: readonly (readonly Step[])[]): Set<string> {
  const found = new Set<string>()
  const choices: number[] = []
  for (let runs = 0; ; runs++) {
    fc.pre(runs < 6000)
    const memory = [0, 0, 1]
    const texts = threads.map(() => '')
    const running = threads.map(function* (steps, t): Steps {
      for (const { form, index, value } of steps) texts[t] += `${yield* meanings[form]!(index, value)};`
      return undefined
    })
    const next = threads.map((_, t) => running[t]!.next())
    const counts: number[] = []
    for (let depth = 0; ; depth++) {
      const able = threads.map((_, t) => t).filter(t => next[t]!.done !== true)
      if (able.length === 0) break
      if (depth === choices.length) choices.push(0)
      counts.push(able.length)
      const t = able[choices[depth]!]!
      next[t] = running[t]!.next((next[t]!.value as Access)(memory))
    }
    found.add(`${texts.join(' | ')} ${memory.join()}`)
    choices.length = counts.length
    while (choices.length > 0 && choices.at(-1)! + 1 >= counts[choices.length - 1]!) choices.pop()
    if (choices.length === 0) return found
    choices[choices.length - 1]!++
  }
}

function explore(threads: readonly (readonly Step[])[]): Set<string> {
  const found = new Set<string>()
  const { complete } = check('random', { races: false }, (): Program => {
    const { memory, ...program } = programs.program(threads)
    return {
      ...program,
      final({ results }) {
        found.add(`${results.join(' | ')} ${[memory.v[0], memory.v[1], memory.grown.length].join()}`)
      },
    }
  })
  expect(complete).toBe(true)
  return found
}

const runs = process.env.HEDDLE_LONG === '1' ? 50_000 : 2000

test('random programs of every form come to what a plain enumeration of all interleavings comes to', () => {
  const names = Object.keys(programs.forms)
  expect(names.filter(name => meanings[name] === undefined)).toEqual([])
  const met = new Set<string>()
  const step = fc.record({
    form: fc.constantFrom(...names),
    index: fc.integer({ min: 0, max: 1 }),
    value: fc.integer({ min: 1, max: 3 }),
  })
  const thread = fc.array(step, { minLength: 1, maxLength: 2 })
  fc.assert(
    fc.property(fc.array(thread, { minLength: 2, maxLength: 3 }), threads => {
      const all = enumerate(threads)
      for (const { form } of threads.flat()) met.add(form)
      expect([...explore(threads)].sort()).toEqual([...all].sort())
    }),
    { numRuns: runs },
  )
  // Every form has been met: the programs are not all of one kind.
  expect(met.size).toBe(names.length)
}, 120_000)
