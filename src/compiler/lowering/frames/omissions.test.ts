/**
 * Omissions that keep compiled code short and fast, as its text and counts show. bench/compiler.ts measures
 * times.
 */
import { afterEach, describe, expect, test } from 'vitest'
import { setSafepointFlag } from '../../../coroutine/core/coroutine.ts'
import { frames, lookInTime } from '../../../coroutine/core/frames.ts'
import { compile } from '../../compile.ts'
import { preemptEverywhere } from '../../../../test/compiler/differential/drive.ts'
import { evaluateModule } from '../../../../test/compiler/differential/evaluate.ts'
import * as runtime from '../../runtime.ts'

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)

afterEach(() => setSafepointFlag(lowered, 0))

function load(source: string, whole = false): Record<string, (...args: any[]) => any> {
  const { code } = compile(source, 'work.js', { whole, strip: 1 })
  return evaluateModule(code, 'work.js', { 'heddle/runtime': runtime })
}

function plainOnes(source: string, whole: boolean): string[] {
  return compile(source, 'work.js', { whole, strip: 1 })
    .stats.filter(({ form }) => form === 'plain')
    .map(({ name }) => name)
}

describe('a function that cannot run long', () => {
  const source = `
    export const rotate = (word, by) => (word << by) | (word >>> (32 - by))
    export class Vector {
      constructor(x) { this.x = x }
      get() { return this.x }
      plus(other) { return new Vector(this.x + other.x) }
      each(fn) { for (let i = 0; i < this.x; i++) fn(i) }
    }`

  test('stays plain in a package that is compiled whole', () => {
    expect(plainOnes(source, true)).toEqual(['rotate', 'constructor', 'get', 'plus'])
  })

  test('stays plain as a method of a module that is marked, whose functions may be tasks', () => {
    expect(plainOnes(`'use task'\n${source}`, false)).toEqual(['constructor', 'get', 'plus'])
  })
})

describe('a tail call', () => {
  const source = `
    'use task'
    export function outer(list, pick) { return pick ? inner(list) : list.map(x => twice(x)) }
    function inner(list) { let sum = 0; for (const x of list) sum += twice(x); return sum }
    function twice(x) { let made = 0; while (made < 2 * x) made++; return made }
    export function guarded(list) { try { return failing(list) } catch (error) { return error.message } }
    function failing(list) { if (inner(list) > 0) throw new Error('caught by its caller'); return 0 }
    export function first(lists) { for (const list of lists) return inner(list) }
    export function chosen(list) { return list && (inner(list), inner([...list, 1])) }`

  test('needs no second form: nothing is left to do after it', () => {
    const { code } = compile(
      `'use task'\nexport const f = g => h(g)\nfunction h(g) { g(); return g() }`,
      'a.js',
    )
    const [before, after] = code.split('function h')
    expect(before).not.toContain('$s(')
    expect(after).toContain('$s(')
  })

  test('passes its value or its error to the caller of the function, after any number of stops', () => {
    const made = load(source)
    const list = [3, 4, 5]
    const expected = new Map<string, [unknown[], unknown]>([
      ['outer', [[list, true], 24]],
      ['guarded', [[list], 'caught by its caller']],
      ['first', [[[list]], 24]],
      ['chosen', [[list], 26]],
    ])
    for (const [name, [args, value]] of expected) {
      const run = preemptEverywhere(made[name]!, args)
      expect(run.value, name).toEqual(value)
      expect(run.preemptions, name).toBeGreaterThan(2)
    }
    expect(preemptEverywhere(made['outer']!, [list, false]).value).toEqual([6, 8, 10])
  })
})

test('a safepoint that may not unwind keeps counting while a preemption is pending', () => {
  setSafepointFlag(raised, 0)
  frames.left = -1
  expect(lookInTime(0)).toBe(false)
  expect(frames.left).toBeGreaterThan(1)
})

describe('the time of compilation and the size of its output', () => {
  /** This many functions, which call each other inside one that shares a variable with all. */
  const nest = (count: number): string =>
    `'use task'\nexport function all(list) { let shared = 0\n${Array.from(
      { length: count },
      (_, i) =>
        `function f${i}(x) { for (const y of list) { shared += f${(i * 7) % count}(y, x => g(x + ${i})) } return shared }`,
    ).join('\n')}\nfunction g(x) { return x }\nreturn f0(1) }`

  test('grow linearly with the source', () => {
    const few = compile(nest(50), 'a.js', { sourcemap: false }).code.length
    const many = compile(nest(800), 'a.js', { sourcemap: false }).code.length
    expect(many / few).toBeLessThan(17)
  })

  test('are not doubled by an inner function whose defaults make closures', () => {
    const inner = `function inner(x, by = () => x) { let y = 0; while (y < by()) y++; return y }`
    const source = (text: string): string =>
      `'use task'\nexport function outer(n) { let made = 0; ${text}; for (let i = 0; i < n; i++) made += inner(i); return made }`
    const { stats } = compile(source(inner), 'a.js')
    expect(stats.find(({ name }) => name === 'outer')?.lowering).toBe('frames')
    const { outer } = load(source(inner))
    expect(preemptEverywhere(outer!, [5]).value).toBe(10)
  })
})

describe('`call` and `apply`', () => {
  test('let their callee unwind, with its receiver and its arguments', () => {
    const source = `
      'use task'
      function Base() { this.initialize.apply(this, arguments) }
      Base.prototype.initialize = function (a, b) { this.sum = slow(a) + slow(b); return this }
      Base.prototype.add = function (c) { return this.sum += slow(c) }
      export function run() {
        const made = new Base(1, 2)
        const again = Base.prototype.initialize.call(made, 3, 4)
        return [made === again, Base.prototype.add.call(made, 5), all(6, 7)]
      }
      function all() { return pick.apply(this, arguments) }
      function pick(a, b) { return [slow(a), slow(b)] }
      function slow(n) { let i = 0; while (i < n) i++; return i }`
    const { value, preemptions } = preemptEverywhere(load(source)['run']!, [])
    expect(value).toEqual([true, 12, [6, 7]])
    expect(preemptions).toBeGreaterThan(20)
  })

  test('are those of the function if it has its own', () => {
    const source = `
      'use task'
      export function run(fn) { return [fn.call(1, 2), (function () { return fn.apply(3, arguments) })(4)] }`
    const fn = Object.assign(() => 'itself', {
      call: (...args: unknown[]) => ['call', ...args],
      apply: (self: unknown, args: unknown[]) => ['apply', self, ...args],
    })
    expect(preemptEverywhere(load(source)['run']!, [fn]).value).toEqual([
      ['call', 1, 2],
      ['apply', 3, 4],
    ])
    expect(() => load(source)['run']!({ call: 1 })).toThrow('fn.call is not a function')
  })
})
