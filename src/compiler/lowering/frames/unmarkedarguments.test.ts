/** Functions made in the argument list of a function that only calls them: they unwind without a mark. */
import { afterEach, describe, expect, test } from 'vitest'
import { setSafepointFlag, unwinds } from '../../../coroutine/core/coroutine.ts'
import { frames } from '../../../coroutine/core/frames.ts'
import { compile } from '../../compile.ts'
import { preemptEverywhere } from '../../../../test/compiler/differential/drive.ts'
import { evaluateModule } from '../../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../runtime.ts'

let marks = 0

function load(source: string): Record<string, (...args: any[]) => any> {
  const { code, diagnostics } = compile(`'use task'\n${source}`, 'work.js', { strip: 1, lowering: 'frames' })
  expect(diagnostics).toEqual([])
  const unwinding = (...args: Parameters<typeof runtime.unwinding>): unknown => {
    marks++
    return runtime.unwinding(...args)
  }
  const lend = (...[fn, at, callback]: Parameters<typeof runtime.lend>): void => {
    runtime.lend(fn, at, callback)
    if (unwinds(callback)) marks++
  }
  const loaded = evaluateModule(code, 'work.js', { 'heddle/runtime': { ...runtime, unwinding, lend } })
  marks = 0
  return loaded as never
}

/** The function's result, how often it was preempted, and how many functions were marked meanwhile. */
function run(
  fn: (...args: any[]) => any,
  ...args: unknown[]
): { value: any; preemptions: number; marks: number } {
  const { value, preemptions } = preemptEverywhere(fn, args)
  return { value, preemptions, marks }
}

afterEach(() => {
  setSafepointFlag(Int32Array.of(0), 0)
  expect([frames.u, frames.ok, frames.made], 'nothing is left over').toEqual([0, 0, null])
})

const each = `
  function each(list, fn) { for (let i = 0; i < list.length; i++) fn(list[i], i); return list }
  function sum(n) { let all = 0; for (let i = 0; i < n; i++) all += i; return all }`

describe('a function that is passed to one that only calls it', () => {
  test('is preempted inside, and has no mark', () => {
    const { total } = load(`${each}
      export function total(list) { let all = 0; each(list, x => { all += sum(x) }); return all }`)
    const { value, preemptions, marks } = run(total!, [100, 200, 300])
    expect([value, marks]).toEqual([4950 + 19900 + 44850, 0])
    expect(preemptions).toBeGreaterThan(500)
  })

  test('may pass on another one, and be stopped in any of them', () => {
    const { copy } = load(`${each}
      export function copy(value) {
        if (typeof value === 'number') return sum(value)
        const made = []
        each(value, function (x, k) { made[k] = copy(x) })
        return made
      }`)
    const { value, preemptions, marks } = run(copy!, [[3, [4, 5]], 6, [[7], 8]])
    expect([value, marks]).toEqual([[[3, [6, 10]], 15, [[21], 28]], 0])
    expect(preemptions).toBeGreaterThan(30)
  })

  test('keeps its own name', () => {
    const { names } = load(`
      function call(fn) { return fn(stack) }
      function stack(fn) { return new Error().stack }
      export function names() { return call(go => go()) }`)
    expect(names!().split('\n')[2]).not.toMatch(/made/)
  })

  test.each([
    [
      'keeps it',
      'let kept; function give(fn) { fn(0); kept = fn } export const get = () => kept',
      'give(FN)',
    ],
    [
      'returns it',
      'let kept; function give(fn) { fn(0); return fn } export const get = () => kept',
      'kept = give(FN)',
    ],
    [
      'has it in arguments',
      'let kept; function give(fn) { fn(0); kept = arguments[0] } export const get = () => kept',
      'give(FN)',
    ],
    [
      'shows it to a closure',
      'let kept; function give(fn) { fn(0); (() => { kept = fn })() } export const get = () => kept',
      'give(FN)',
    ],
  ])('is marked if the callee %s', (_, source, call) => {
    const fn = 'x => { for (let i = 0; i < 9; i++) count += x }'
    const { work, get } = load(`let count = 0; ${source}
      export function work() { ${call.replace('FN', fn)} }`)
    run(work!)
    expect(unwinds(get!())).toBe(true)
  })

  test('is marked if its own code exposes it', () => {
    const { work, get } = load(`let kept; function give(fn) { fn(0) } export const get = () => kept
      export function work() { give(function own(x) { for (let i = 0; i < 9; i++) kept = own }) }`)
    run(work!)
    expect(unwinds(get!())).toBe(true)
  })

  test('is marked if a later argument may run code', () => {
    const { work } = load(`${each}
      function both(fn, x) { fn(x); return x }
      export function work(of) {
        let all = 0
        const last = both(x => { all += sum(x) }, of.size)
        return [all, last]
      }`)
    const of = {
      get size() {
        return 20
      },
    }
    const { value, preemptions, marks } = run(work!, of)
    expect([value, marks]).toEqual([[190, 20], 1])
    expect(preemptions).toBeGreaterThan(15)
  })
})

test('a callee checks the mark of functions from other callers', () => {
  const { plainly, marked, both } = load(`${each}
    export function plainly(fn) { return each([1, 2, 3], fn).length }
    export function marked(n) { const all = []; const add = x => { all.push(sum(x * n)) }; each([1, 2], add); return all }
    export function both(n) {
      const all = []
      each([n, n], x => { all.push(sum(x)) })
      const add = x => { all.push(sum(x)) }
      each([n], add)
      return all
    }`)
  const seen: number[] = []
  expect(run(plainly!, (x: number) => seen.push(x)).value).toBe(3)
  expect(seen).toEqual([1, 2, 3])
  const own = run(marked!, 10)
  expect(own.value).toEqual([45, 190])
  expect(own.preemptions).toBeGreaterThan(25)
  const mixed = run(both!, 50)
  expect(mixed.value).toEqual([1225, 1225, 1225])
  expect(mixed.preemptions).toBeGreaterThan(140)
})

/** Ways to make the callee `give` and to call it with FN, where only run time shows the callee. */
const ways: readonly [way: string, source: string, call: string][] = [
  ['a method of a class', 'class Giver { give(fn) { BODY } } const giver = new Giver()', 'giver.give(FN)'],
  ['a static method', 'class Giver { static give(fn) { BODY } }', 'Giver.give(FN)'],
  ['a method of an object', 'const giver = { give(n, fn) { BODY } }', 'giver.give(7, FN)'],
  ['a function in an object', 'const giver = { give: function (fn) { BODY } }', 'giver.give(FN)'],
  [
    'a function of a prototype',
    'function Giver() {} Giver.prototype.give = function (fn, n) { BODY }; const giver = new Giver()',
    'giver.give(FN, 7)',
  ],
  [
    'a function in a variable',
    'function give(n, fn) { BODY } let way = null; export function pick() { way = give }',
    '(pick(), way)(7, FN)',
  ],
]

describe.each(ways)('a function that is passed to %s', (_, source, call) => {
  const fn = 'x => { all += sum(x) }'
  const made = (body: string): string => `${each}
    let all = 0, kept = null; ${source.replace('BODY', body)}
    export const get = () => kept
    export function work() { all = 0; ${call.replace('FN', fn)}; return all }`

  test('is preempted inside, and has no mark if the callee only calls it', () => {
    const { work } = load(made('fn(100); for (let i = 0; i < 3; i++) fn(i)'))
    expect([work!(), marks]).toEqual([4951, 0])
    const { value, preemptions } = run(work!)
    expect(value).toBe(4951)
    expect(preemptions).toBeGreaterThan(100)
  })

  test('is marked if the callee keeps it', () => {
    const { work, get } = load(made('fn(100); kept = fn'))
    const { value, preemptions } = run(work!)
    expect(value).toBe(4950)
    expect(preemptions).toBeGreaterThan(90)
    expect(unwinds(get!())).toBe(true)
  })
})

test.each([
  ['is plain', 'const giver = { give: outside }'],
  ['is a Proxy', 'const giver = { give: new Proxy((fn) => { fn(9); kept = fn }, {}) }'],
  [
    'inherits from one that only calls it',
    `function only(fn) { fn(9) } export { only }
    const giver = { give: Object.setPrototypeOf(function (fn) { for (let i = 0; i < 2; i++) fn(i); kept = fn }, only) }`,
  ],
])('a function is marked if the callee %s', (_, source) => {
  const { work, get } = load(`${each}
    let all = 0, kept = null
    const outside = Function('fn', 'fn(9); globalThis.keptFunction = fn')
    ${source}
    export const get = () => kept ?? globalThis.keptFunction
    export function work() { giver.give(x => { all += sum(x) }); return all }`)
  run(work!)
  expect(unwinds(get!())).toBe(true)
  delete (globalThis as { keptFunction?: unknown }).keptFunction
})

test('a callee that is no function throws the error of the engine', () => {
  const { work } = load(
    'let way; export function set(x) { way = x } export function work() { way(x => { for (;;) x() }) }',
  )
  expect(() => work!()).toThrow(new TypeError('way is not a function'))
})
