/** Properties of functions that unwind. The differential suites show that they behave like plain ones. */
import { afterEach, describe, expect, test } from 'vitest'
import {
  coroutineOf,
  itself,
  setSafepointFlag,
  twin,
  twinOf,
  unwinds,
} from '../../../coroutine/core/coroutine.ts'
import { frames } from '../../../coroutine/core/frames.ts'
import { safepointLine, setSafepointLine } from '../../../coroutine/core/safepoint.ts'
import * as heddle from '../../../coroutine/index.ts'
import { Schedule } from '../../../coroutine/schedule/schedule.ts'
import { type CompileOptions, compile } from '../../compile.ts'
import { preemptEverywhere } from '../../../../test/compiler/differential/drive.ts'
import { evaluateModule } from '../../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../runtime.ts'

function load(source: string, options: CompileOptions = {}): Record<string, (...args: any[]) => any> {
  const { code, diagnostics } = compile(source, 'work.js', options)
  expect(diagnostics).toEqual([])
  return evaluateModule(code, 'work.js', { 'heddle/runtime': runtime, heddle })
}

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)

afterEach(() => {
  setSafepointFlag(lowered, 0)
  expect(frames.u, 'nothing unwinds any more').toBe(0)
  expect(frames.ok, 'no permission is left over').toBe(0)
})

describe('a function that unwinds', () => {
  test('is a plain function with its own name and length, and no generator', () => {
    const { fib } = load(`'use task'\nexport function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }`)
    expect(fib(10)).toBe(55)
    expect([fib.name, fib.length, unwinds(fib)]).toEqual(['fib', 1, true])
    expect(Object.keys(fib)).toEqual([])
    expect(compile(`export function f() { 'use task'; for (;;) f() }`, 'a.js').code).not.toContain(
      'function*',
    )
  })

  test('is preempted in constructors: of a base class, a derived one, its parent, and a function', () => {
    const { base, derived, parent, old, without } = load(
      `'use task'
       const turn = (self, n) => { for (let i = 0; i < n; i++) self.sum = (self.sum ?? 0) + one(i); return self }
       const one = i => (i < 0 ? one(i + 1) : 1)
       class Base { constructor(n) { turn(this, n) } }
       class Derived extends Base { constructor(n) { super(0); turn(this, n) } }
       class Child extends Base { field = this.sum; constructor(n) { super(n) } }
       function Old(n) { turn(this, n) }
       export const base = n => new Base(n).sum
       export const derived = n => new Derived(n).sum
       export const parent = n => new Child(n).field
       export const old = n => new Old(n).sum
       export const without = n => Reflect.construct(Child, [n]).field`,
      { lowering: 'frames' },
    )
    for (const fn of [base, derived, parent, old]) {
      const { value, preemptions } = preemptEverywhere(fn, [2_000])
      expect(value).toBe(2_000)
      expect(preemptions).toBeGreaterThan(200)
    }
    expect(preemptEverywhere(without, [2_000]).value).toBe(2_000)
  })

  test('shares its variables with the functions that it declares, in both of its forms', () => {
    const source = `'use task'
       let outer = 100
       const brief = i => (i < 0 ? brief(i + 1) : 1)
       export function shared(n, { step = 1, ...rest } = {}) {
         let sum = 0, turns = 0
         var late = typeof after
         const seen = []
         for (let i = 0; i < n; i++) {
           add(brief(i) * step)
           let outer = i
           for (let j = 0; j < 3; j++) { if (j === 1) continue; turns += brief(j); outer += j }
           switch (outer % 3) { case 0: n = shrink(n); break; default: seen.push(outer) }
         }
         try { for (let i = 0; i < 5; i++) { add(brief(i)); if (i === 3) throw new Error(String(both())) } }
         catch (error) { seen.push(error.message) }
         function add(by) { sum += by; return both() }
         function shrink(to) { rest.shrunk = (rest.shrunk ?? 0) + 1; return to - 1 }
         function both() { return sum + ':' + n + ':' + outer }
         function after() { return late }
         return [sum, turns, n, late, after(), both(), rest, seen.join()]
       }
       export function self(n) {
         const o = { base: 7, run(n) {
           let total = 0
           for (let i = 0; i < n; i++) { total += brief(i) + this.base; bump() }
           function bump() { total++ }
           return total
         } }
         return o.run(n)
       }
       export function early(n) {
         for (let i = 0; i < n; i++) brief(i)
         try { return read() } catch (error) { return error.name }
         const value = 1
         function read() { return value }
       }
       export function counters(n) {
         const all = [1, 2, 3].map(from => count(from))
         function count(from) {
           let at = from
           for (let i = 0; i < n; i++) { at += brief(i); step() }
           function step() { at += from }
           return at
         }
         return all.join()
       }`
    const compiled = load(source, { lowering: 'frames' })
    const plain = evaluateModule(source, 'plain.js', {}) as typeof compiled
    const shrinks = (): unknown[] => [40, { step: 2, x: 1 }]
    for (const [name, args] of [
      ['shared', shrinks],
      ['self', () => [40]],
      ['early', () => [40]],
      ['counters', () => [40]],
    ] as const) {
      const expected = plain[name]!(...args())
      expect(compiled[name]!(...args()), name).toEqual(expected)
      const { value, preemptions } = preemptEverywhere(compiled[name]!, args())
      expect(value, name).toEqual(expected)
      expect(preemptions, name).toBeGreaterThan(3)
    }
  })

  test('is preempted in getters and setters that loop', () => {
    const { read, write } = load(
      `'use task'
       const one = i => (i < 0 ? one(i + 1) : 1)
       class Sum {
         count = 0
         total = 0
         get slowly() { let sum = 0; for (let i = 0; i < this.count; i++) sum += one(i); return sum }
         set slowly(n) { for (let i = 0; i < n; i++) this.total += one(i) }
       }
       export function read(n) { const sum = new Sum(); sum.count = n; return sum.slowly }
       export function write(n) { const sum = new Sum(); sum.slowly = n; return sum.total }`,
    )
    for (const fn of [read, write]) {
      const { value, preemptions } = preemptEverywhere(fn, [2_000])
      expect(value).toBe(2_000)
      expect(preemptions).toBeGreaterThan(200)
      expect(fn(50)).toBe(50)
    }
  })

  test('is preempted in accessors with private and with computed names', () => {
    const { all, others } = load(
      `'use task'
       const one = i => (i < 0 ? one(i + 1) : 1)
       const key = Symbol('key'), odd = { toString() { odd.asked++; return 'odd' }, asked: 0 }
       class Sum {
         count = 0
         total = 0
         #plain = 7
         get #slowly() { let sum = 0; for (let i = 0; i < this.count; i++) sum += one(i); return sum }
         set #slowly(n) { for (let i = 0; i < n; i++) this.total += one(i) }
         static get #shared() { let sum = 0; for (let i = 0; i < 600; i++) sum += one(i); return sum }
         get [key]() { let sum = 0; for (let i = 0; i < this.count; i++) sum += one(i); return sum }
         set [key](n) { for (let i = 0; i < n; i++) this.total += one(i) }
         get [Symbol.toStringTag]() { let sum = 0; for (let i = 0; i < this.count; i++) sum += one(i); return String(sum) }
         get [odd]() { let sum = 0; for (let i = 0; i < 3; i++) sum += one(i); return sum }
         run(n, kind) {
           this.count = n
           switch (kind) {
             case 0: return this.#slowly
             case 1: this.#slowly = n; return this.total
             case 2: return this[key]
             case 3: this[key] = n; return this.total
             case 4: return Number(this[Symbol.toStringTag])
             case 5: return Sum.#shared + n - 600
           }
         }
         // The name means a field here, and an accessor outside.
         static inner = class Inner { #slowly = 5; read(o) { return o.#slowly } }
         refused(o) { try { return o.#slowly } catch (error) { return error.constructor.name + [1].map(() => one(0)) } }
       }
       export function all(n, kind) { return new Sum().run(n, kind) }
       export function others() {
         const inner = new Sum.inner(), odds = new Sum()[odd]
         return [inner.read(inner), new Sum().refused({}), new Sum().refused(5), new Sum().refused(null), odds, odd.asked]
       }`,
    )
    for (const kind of [0, 1, 2, 3, 4, 5]) {
      const { value, preemptions } = preemptEverywhere(all, [1_000, kind])
      expect(value).toBe(1_000)
      expect(preemptions, `kind ${kind}`).toBeGreaterThan(50)
      expect(all(50, kind)).toBe(50)
    }
    const expected = [5, 'TypeError1', 'TypeError1', 'TypeError1', 3]
    expect(others()).toEqual([...expected, 2])
    expect(preemptEverywhere(others, []).value).toEqual([...expected, 3])
  })

  test('takes no permission from an ordinary argument', () => {
    const { up, fib } = load(
      `'use task'\nexport function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\nexport const up = list => list.map(fib)`,
    )
    setSafepointFlag(raised, 0)
    expect([3, 4, 5].map(fib)).toEqual([2, 3, 5])
    expect(up([3, 4, 5])).toEqual([2, 3, 5])
  })

  test.each(['frames', 'generator'] as const)(
    'stays resumable when plain code binds it, at the top of a module and in a constructor: %s',
    lowering => {
      const { bound, total, run, plain, broken } = load(
        `'use task'
         function sum(n) { let s = this.from; for (let i = 0; i < n; i++) s += one(i); return s }
         function one(i) { return i < 0 ? one(i + 1) : 1 }
         export const bound = sum.bind({ from: 10 }, 20)
         class Total { constructor() { this.total = this.total.bind(this) } total(n) { return sum.call({ from: 0 }, n) } }
         export const total = new Total().total
         export const run = () => bound() + total(5)
         export const plain = Math.max.bind(null, 1)
         export const broken = (make = () => { const a = { b: {} }; let n = 0; a.b.bind(n++, n++) }) => make`,
        { lowering },
      )
      for (const fn of [bound, total]) expect(twinOf(fn)).toBeDefined()
      expect([bound.name, bound.length, plain(2)]).toEqual(['bound sum', 0, 2])
      expect(preemptEverywhere(run, [])).toMatchObject({ value: 35 })
      expect(preemptEverywhere(bound, []).preemptions).toBeGreaterThan(0)
      expect(broken()).toThrow(new TypeError('a.b.bind is not a function'))
    },
  )

  test.each(['frames', 'generator'] as const)(
    'is preempted inside JSON.parse of a long text: %s',
    lowering => {
      const { read } = load(
        `'use task'\nexport function read(text, reviver) { return reviver ? JSON.parse(text, reviver) : JSON.parse(text) }`,
        { lowering },
      )
      const rows = Array.from({ length: 20_000 }, (_, n) => ({ n, text: 'x'.repeat(n % 30), deep: [[n]] }))
      const text = JSON.stringify({ rows, last: true })
      const { value, preemptions } = preemptEverywhere(read, [text])
      expect(value).toEqual({ rows, last: true })
      expect(preemptions).toBeGreaterThan(10)
      expect(preemptEverywhere(read, ['[1]']).value).toEqual([1])
      expect(preemptEverywhere(read, [text, (_: string, v: unknown) => v]).value).toEqual({
        rows,
        last: true,
      })
      expect(() => preemptEverywhere(read, [`${text},`])).toThrow(SyntaxError)
    },
  )

  test.each(['frames', 'generator'] as const)(
    'is preempted inside JSON.stringify of a large value: %s',
    lowering => {
      const { write } = load(
        `'use task'\nexport function write(value, replacer, space) { return JSON.stringify(value, replacer, space) }`,
        { lowering },
      )
      const rows = Array.from({ length: 5_000 }, (_, n) => ({ n, text: 'x'.repeat(n % 30), deep: [[n]] }))
      const { value, preemptions } = preemptEverywhere(write, [{ rows, last: true }, null, 1])
      expect(value).toBe(JSON.stringify({ rows, last: true }, null, 1))
      expect(preemptions).toBeGreaterThan(10)
      expect(preemptEverywhere(write, [[1]])).toMatchObject({ value: '[1]' })
      expect(preemptEverywhere(write, [undefined]).value).toBeUndefined()
    },
  )

  test.each(['frames', 'generator'] as const)('is preempted inside sort of a long list: %s', lowering => {
    const { order } = load(`'use task'\nexport function order(list, how) { return list[how]() }`, {
      lowering,
    })
    const numbers = Array.from({ length: 20_000 }, (_, n) => Math.imul(n, 2_654_435_761) >>> 8)
    const sparse: unknown[] = numbers.map(n => (n % 7 === 0 ? undefined : `n${n}`))
    for (let k = 0; k < sparse.length; k += 5) delete sparse[k]
    for (const list of [numbers, sparse, Float32Array.from(numbers)]) {
      for (const how of ['sort', 'toSorted'] as const) {
        const expected = list.slice()[how]()
        const given = list.slice()
        const { value, preemptions } = preemptEverywhere(order, [given, how])
        expect(value).toEqual(expected)
        expect(Object.keys(value)).toEqual(Object.keys(expected))
        expect(value === given).toBe(how === 'sort')
        expect(preemptions).toBeGreaterThan(5)
      }
    }
  })

  test('has a twin for generators that call it', () => {
    const { fib } = load(`'use task'\nexport function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }`)
    setSafepointFlag(raised, 0)
    const made = (fib as never as { [twin]: (n: number) => Generator<number, number> })[twin](6)
    let stops = 0
    let step = made.next()
    for (; !step.done; step = made.next()) stops++
    expect(step.value).toBe(8)
    expect(stops).toBeGreaterThan(5)
  })

  test('does not unwind through plain code that calls it', () => {
    const { run } = load(`
      'use task'
      function heavy(x) { let s = 0; for (let i = 0; i < 3; i++) s += other(x); return s }
      function other(x) { return x < 0 ? other(x + 1) : x }
      export function run() { return 'a1b2'.replace(/\\d/g, d => heavy(Number(d))) + JSON.stringify({ toJSON: () => heavy(4) }) }`)
    const { value } = preemptEverywhere(run, [])
    expect(value).toBe('a3b612')
  })

  test('continues in the middle of loops, blocks and handlers, with the variables that closures share', () => {
    const { run } = load(
      `
      'use task'
      function wait(x) { return x < 0 ? wait(x + 1) : x }
      export function run() {
        let total = 0
        const add = n => { total += n }
        const kept = []
        outer: for (let i = 0; i < 4; i++) {
          for (const j of [1, 2, 3]) {
            try {
              if (wait(j) === 2) continue outer
              add(wait(i) * j)
              kept.push(() => i * 10 + j)
              if (i === 3) throw new Error('three')
            } catch (error) { add(wait(100)); kept.push(() => error.message) }
            finally { total += 1000 }
          }
        }
        return [total, kept.map(f => f())]
      }`,
      { strip: 1 },
    )
    const { value, preemptions } = preemptEverywhere(run, [])
    expect(value).toEqual(run())
    expect(value[0]).toBe(8106)
    expect(preemptions).toBeGreaterThan(10)
  })

  test('has a safepoint in a loop even if few of its calls have one, for any iterable', () => {
    const { run } = load(`
      'use task'
      const box = { short(x) { return x + 1 } }
      export function run(items) { let n = 0; for (const x of items) { n = box.short(n); if (n === 100) break } return n }`)
    function* endless(): Generator<number> {
      for (;;) yield 1
    }
    for (const items of [new Array(200).fill(1), endless(), new Set(new Array(200).keys())]) {
      const { value, preemptions } = preemptEverywhere(run, [items])
      expect(value).toBe(100)
      expect(preemptions).toBeGreaterThanOrEqual(10)
    }
  })

  test.each([
    'for (let i = 0; i < n; i++) sum += call(i)',
    'for (let i = 0; i < n; i++) { if (i % 3 === 1) continue; sum += call(i) }',
    'for (let i = 0; ; i++) { sum += call(i); if (i === n) break }',
    'let i = 0; turns: while (i++ < n) { for (;;) { sum += call(i); if (i > 9) break turns; continue turns } }',
    'let i = 0; do sum += call(i); while (++i < n)',
    'for (const i of new Array(n).keys()) sum += call(i)',
    'for (const i of Array.from({ length: n }, () => 2)) sum += call(i)',
    'for (let i = 0; i < n; i++) sum += own(i)',
    'for (let i = 0; i < n; i++) sum += i',
  ])('goes on if the interrupt handler does not stop it: %s', text => {
    const { run } = load(`
      'use task'
      const own = x => (x < 0 ? own(x + 1) : x)
      export function run(n, call) { let sum = 0; ${text}; return sum }`)
    const call = (x: number): number => x + 1
    const expected = run(2_000, call)
    let asked = 0
    const before = setSafepointLine(
      safepointLine(raised, 0, () => {
        if (++asked > 10_000) throw new Error('a safepoint asks again and again')
        return false
      }),
    )
    try {
      const made = coroutineOf(run, [2_000, call])
      expect([made.start(), made.state, made.result]).toEqual([true, 'returned', expected])
    } finally {
      setSafepointLine(before)
    }
    expect(asked).toBeGreaterThan(0)
  })

  test.each([
    ['by its own name', 'const go = n => n === 0 ? 0 : go(n - 1); export const run = n => go(n)'],
    [
      'by methods of this file',
      'const o = { even(n) { return n === 0 ? 0 : this.odd(n - 1) }, odd(n) { return n === 0 ? 0 : this.even(n - 1) } }; export const run = n => o.even(n)',
    ],
    [
      'by a name that is not only a function of this file',
      'class Tree { constructor(f) { this.go = f } step(n) { return n === 0 ? 0 : this.go(this, n - 1) } go(t, n) { return t.step(n) } }; export const run = n => new Tree((t, n) => t.step(n)).step(n)',
    ],
    [
      'by what it is given',
      'const step = (f, n) => n === 0 ? 0 : f(f, n - 1); export const run = n => step(step, n)',
    ],
  ])('has a safepoint if it leads back to itself %s', (_, body) => {
    const { run } = load(`'use task'\n${body}`)
    const { value, preemptions } = preemptEverywhere(run, [100])
    expect(value).toBe(0)
    expect(preemptions).toBeGreaterThan(40)
  })

  test('closes no iterator and runs no `finally` when it is suspended', () => {
    const log: string[] = []
    const { run } = load(
      `
      'use task'
      function step(x) { return x < 0 ? step(x + 1) : x }
      export function run(items, log) {
        try { for (const x of items) { log.push('turn ' + step(x)); if (x === 2) break } } finally { log.push('end') }
      }`,
      { strip: 1 },
    )
    const items = {
      [Symbol.iterator]: () => {
        let at = 0
        return {
          next: () => ({ value: ++at, done: at > 5 }),
          return: () => (log.push('closed'), {}),
        }
      },
    }
    const { preemptions } = preemptEverywhere(run, [items, log])
    expect(preemptions).toBeGreaterThan(1)
    expect(log).toEqual(['turn 1', 'turn 2', 'closed', 'end'])
  })
})

describe('a stop', () => {
  test('deep in a recursion continues at its innermost call only', () => {
    const { descend } = load(`
      'use task'
      function tick(i) { return i < 0 ? tick(i + 1) : i & 1 }
      export function descend(depth, seen) {
        if (depth === 0) { let s = 0; for (let i = 0; i < 200; i++) s += tick(i); return s }
        const below = descend(depth - 1, seen)
        seen.push(depth)
        return below
      }`)
    const seen: number[] = []
    const coroutine = coroutineOf(descend, [500, seen])
    setSafepointFlag(raised, 0)
    let stops = 0
    for (let finished = coroutine.start(); !finished; finished = coroutine.resume()) {
      stops++
      // The frames are plain data until control returns to them: no caller has run.
      if (stops < 500) expect(seen).toEqual([])
    }
    expect(coroutine.result).toBe(100)
    expect(seen).toEqual(Array.from({ length: 500 }, (_, i) => i + 1))
  })

  test('empties the stack: a recursion a million deep completes if it is preempted', () => {
    const { sum } = load(`'use task'\nexport function sum(n) { return n === 0 ? 0 : 1 + sum(n - 1) }`)
    const coroutine = coroutineOf(sum, [1_000_000])
    setSafepointFlag(raised, 0)
    for (let finished = coroutine.start(); !finished; ) finished = coroutine.resume()
    expect(coroutine.state).toBe('returned')
    expect(coroutine.result).toBe(1_000_000)
  })

  test('that never happens leaves a deep recursion to the engine, which throws as usual', () => {
    const { sum } = load(`'use task'\nexport function sum(n) { return n === 0 ? 0 : 1 + sum(n - 1) }`)
    const coroutine = coroutineOf(sum, [10_000_000])
    expect(coroutine.start()).toBe(true)
    expect(coroutine.result).toBeInstanceOf(RangeError)
  })

  test('can be resumed with an error, which is thrown at the resume point', () => {
    const { run } = load(`
      'use task'
      function spin() { for (let i = 0; ; i++) tick(i) }
      function tick(i) { return i < 0 ? tick(i + 1) : i }
      export function run(log) { try { spin() } catch (error) { log.push(error.message); return 'caught' } finally { log.push('left') } }`)
    const log: string[] = []
    const coroutine = coroutineOf(run, [log])
    setSafepointFlag(raised, 0)
    expect(coroutine.start()).toBe(false)
    expect(coroutine.raise(new Error('stop'))).toBe(true)
    expect([coroutine.state, coroutine.result, log]).toEqual(['returned', 'caught', ['stop', 'left']])
  })
})

test('long lists are iterated by plain callbacks and by callbacks that unwind, with stops', () => {
  const { run } = load(`
    'use task'
    const slow = x => x < 0 ? slow(x + 1) : x
    export function run(list) {
      const all = []
      for (const f of [x => x % 3, x => slow(x) % 3]) {
        let sum = 0
        list.forEach(x => { sum += f(x) })
        all.push(list.map(f).length, list.filter(f).length, list.some(x => f(x) === 5), list.every(x => f(x) < 3), sum)
        all.push(list.find(x => x === 150), list.findIndex(x => f(x) === 7), list.reduce((s, x) => s + f(x)), list.reduce((s, x) => s + x, 1))
        all.push(list.map(x => x * 2)[199], list.filter(x => x > 100).length, list.some(x => x === 199), list.findIndex(x => x === 170))
      }
      return all
    }`)
  const list = Array.from({ length: 200 }, (_, i) => i)
  const { value, preemptions } = preemptEverywhere(run, [list])
  expect(value).toEqual(run(list))
  expect(preemptions).toBeGreaterThan(100)
})

describe('errors', () => {
  test('show their callers by name across suspensions', async () => {
    const { outer } = load(`
      import { sleep } from 'heddle'
      export function outer() { 'use task frames'; return 1 + middle() }
      function middle() { 'use task frames'; sleep(1); return 1 + inner() }
      function inner() { 'use task frames'; sleep(1); throw new Error('deep down') }`)
    const error: Error = await new Schedule().run({ name: 'report' }, outer).catch((thrown: Error) => thrown)
    const names = error
      .stack!.split('\n')
      .filter(line => /^\s+at /.test(line))
      .map(line => /at (?:Object\.)?([^(]+?)(?: \(|$)/.exec(line)![1])
    expect(names.slice(0, 4)).toEqual(['inner', 'middle', 'outer', 'coroutine report #1'])
  })
})

describe('which lowering', () => {
  const formsOf = (source: string, options: CompileOptions = {}): Record<string, string | undefined> =>
    Object.fromEntries(compile(source, 'a.js', options).stats.map(({ name, lowering }) => [name, lowering]))

  test('a directive names has precedence over the option', () => {
    const source = `
      export function a() { 'use task'; for (;;) a() }
      export function b() { 'use task generator'; for (;;) b() }
      export function c() { 'use task frames'; for (;;) c() }`
    expect(formsOf(source)).toEqual({ a: 'frames', b: 'generator', c: 'frames' })
    expect(formsOf(source, { lowering: 'generator' })).toEqual({
      a: 'generator',
      b: 'generator',
      c: 'frames',
    })
    expect(formsOf(source, { lowering: 'frames' })).toEqual({ a: 'frames', b: 'generator', c: 'frames' })
    expect(formsOf(`'use task generator'\nexport function a() { for (;;) a() }`)).toEqual({ a: 'generator' })
  })

  test('is a generator for a function that only blocks', () => {
    const source = `
      'use task'
      import { sleep, wait } from 'heddle'
      export function clock(n) { for (let i = 0; i < n; i++) sleep(10) }
      export function both(n) { for (let i = 0; i < n; i++) sleep(10); for (let i = 0; i < n; i++) clock(i) }
      export function page(url) { return wait(fetch(url)) }`
    expect(formsOf(source)).toMatchObject({ clock: 'generator', both: 'frames' })
  })

  test('is a generator for code that cannot unwind, with the reason', () => {
    const { stats } = compile(`export function f(g) { 'use task'; const { a = g() } = {}; return a }`, 'a.js')
    expect(stats[0]).toMatchObject({ form: 'twin', lowering: 'generator' })
    expect(stats[0]!.why).toContain('a pattern can suspend')
  })

  test('does not matter to calls: functions of both kinds call each other and are preempted inside', () => {
    const { a } = load(`
      'use task'
      export function a(n) { 'use task frames'; return n <= 0 ? 0 : 1 + b(n - 1) }
      export function b(n) { 'use task generator'; let s = 0; for (const x of [1, 2]) s += x; return n <= 0 ? s : s + [n].map(m => a(m - 1))[0] }`)
    const { value, preemptions } = preemptEverywhere(a, [9])
    expect(value).toBe(a(9))
    expect(preemptions).toBeGreaterThan(5)
  })
})

test('a function that unwinds has its mark under a symbol that is not enumerable', () => {
  const { make } = load(`'use task'\nexport function make() { return { run() { for (;;) return make() } } }`)
  const made = make() as { run: (() => unknown) & { [itself]?: unknown } }
  expect(made.run[itself]).toBe(made.run)
  expect(Object.getOwnPropertyDescriptor(made.run, itself)!.enumerable).toBe(false)
})
