import { transformSync } from 'esbuild'
import { describe, expect, test } from 'vitest'
import { PREEMPTED, setSafepointFlag, SUSPENDED, type Twin, twin } from '../coroutine/core/coroutine.ts'
import { type CompileOptions, compile } from './compile.ts'
import { preemptEverywhere } from '../../test/compiler/differential/drive.ts'
import { evaluateModule, evaluateScript, type Namespace } from '../../test/compiler/differential/evaluate.ts'
import * as runtime from './runtime.ts'

function load(
  source: string,
  file = 'module.js',
  options: CompileOptions = {},
  imports: Namespace = {},
): Namespace {
  // The output of the generator lowering. differential/ has the common behaviour; see frames.test.ts for the
  // other.
  const { code, diagnostics } = compile(source, file, { lowering: 'generator', ...options })
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([])
  const modules = { 'heddle/runtime': runtime, ...imports }
  return file.endsWith('.cjs') ? evaluateScript(code, file, modules) : evaluateModule(code, file, modules)
}

function twinOf(fn: unknown): Twin {
  const found = (fn as { [twin]?: Twin })[twin]
  if (found === undefined) throw new Error('no twin')
  return found
}

/** Runs a twin to its end with the safepoint flag set; records its stops. */
function drive(resumable: Generator<number, unknown>): { value: unknown; stops: number[] } {
  const stops: number[] = []
  const flag = new Int32Array(1).fill(1)
  setSafepointFlag(flag, 0)
  try {
    for (;;) {
      const step = resumable.next()
      if (step.done) return { value: step.value, stops }
      stops.push(step.value)
    }
  } finally {
    setSafepointFlag(new Int32Array(1), 0)
  }
}

describe('the plain form', () => {
  test('of a marked function is its source text', () => {
    const text = `function f(a, b = 2) {\n  'use task'\n  const g = x => { for (;;) return x } // a comment\n  return g(a) + b\n}`
    const { f } = load(`export ${text}`)
    expect(f.toString()).toBe(text)
    expect([f(1), f.name, f.length]).toEqual([3, 'f', 1])
  })

  test('of a module without the directive is the module itself', () => {
    const source = `export function f() { for (;;) {} } // 'use task' would be here`
    expect(compile(source, 'a.js')).toMatchObject({
      code: source,
      changed: false,
      map: null,
      diagnostics: [],
    })
  })

  test('has the same properties, and a twin that is not enumerable', () => {
    const { f } = load(`export function f() { 'use task' }`)
    expect(Object.keys(f)).toEqual([])
    expect(Object.assign({}, f)).toEqual({})
    expect(Reflect.ownKeys(f).includes(twin)).toBe(true)
  })

  test('of anonymous functions keeps the names that their context gives them', () => {
    const space = load(
      `'use task'
      export const arrow = () => { for (;;) return 1 }
      export const object = { key: () => { for (;;) return 1 }, method() { for (;;) return 1 }, ['a' + 'b']: function () { for (;;) return 1 } }
      export class Made { field = () => { for (;;) return 1 }; static fixed = function () { for (;;) return 1 } }
      export let assigned
      assigned = function () { for (;;) return 1 }
      export const { given = () => { for (;;) return 1 } } = {}`.replace(
        'export const { given',
        'const { given',
      ) + '\nexport const late = given',
    )
    const names = [space['arrow'], space['object'].key, space['object'].method, space['object'].ab]
    names.push(new space['Made']().field, space['Made'].fixed, space['assigned'], space['late'])
    expect(names.map(({ name }) => name)).toEqual([
      'arrow',
      'key',
      'method',
      'ab',
      'field',
      'fixed',
      'assigned',
      'given',
    ])
    for (const fn of names) expect(drive(twinOf(fn)()).value).toBe(1)
  })

  test('of a default export without a name is called default', () => {
    const space = load(`export default function () { 'use task'; for (;;) return 1 }`)
    expect(space['default'].name).toBe('default')
    expect(drive(twinOf(space['default'])()).value).toBe(1)
  })

  test('of methods adds nothing visible to classes and objects', () => {
    const { A, o } = load(`'use task'
      export class A { m() { for (;;) return 1 } static s() { for (;;) return 2 } #p() { for (;;) return 3 } q() { return this.#p() } }
      export const o = { m() { for (;;) return super.toString() } }`)
    expect(Reflect.ownKeys(A.prototype)).toEqual(['constructor', 'm', 'q'])
    expect(Reflect.ownKeys(A)).toEqual(['length', 'name', 'prototype', 's'])
    expect(Reflect.ownKeys(o)).toEqual(['m'])
    expect(drive(twinOf(A.prototype.q).call(new A())).value).toBe(3)
    expect(drive(twinOf(o.m).call(o)).value).toBe('[object Object]')
  })
})

describe('the twin', () => {
  test('is under the well-known symbol: a generator function with the same parameters and this', () => {
    const { f } = load(
      `export function f(a, { b }, ...rest) { 'use task'; for (let i = 0; i < 2; i++); return [this, a, b, rest] }`,
    )
    expect(twin).toBe(Symbol.for('heddle.twin'))
    expect(Object.prototype.toString.call(twinOf(f))).toBe('[object GeneratorFunction]')
    expect(drive(twinOf(f).call('me', 1, { b: 2 }, 3, 4)).value).toEqual(['me', 1, 2, [3, 4]])
  })

  test('of a hoisted function is there before the first statement runs', () => {
    const { seen } = load(
      `export const seen = typeof later[Symbol.for('heddle.twin')]\nfunction later() { 'use task' }`,
    )
    expect(seen).toBe('function')
  })

  test('does not stop while the flag is clear', () => {
    const { f } =
      load(`export function f(n) { 'use task'; let s = 0; for (let i = 0; i < n; i++) s += g(i); return s }
      function g(x) { 'use task'; for (const y of [x, x]) x += y; return x }`)
    const step = twinOf(f)(100).next()
    expect(step.done).toBe(true)
    expect(step.value).toBe(f(100))
  })

  test('calls the twins of functions of other modules', () => {
    const other = Object.assign(() => 'plain', {
      *[twin](x: number) {
        const got: unknown = yield SUSPENDED
        return [x, got]
      },
    })
    const { f } = load(
      `import { other, bare } from 'other'\nexport function f() { 'use task'; return [other(7), bare(8)] }`,
      'module.js',
      {},
      { other: { other, bare: (x: number) => x } },
    )
    const steps = twinOf(f)()
    expect(steps.next()).toEqual({ value: SUSPENDED, done: false })
    expect(steps.next('woken')).toEqual({ value: [[7, 'woken'], 8], done: true })
    expect(f()).toEqual(['plain', 8])
  })

  test('calls a blocking method like any other', () => {
    class Mutex {
      lock(): never {
        throw new Error('needs a task')
      }
    }
    Object.defineProperty(Mutex.prototype.lock, twin, {
      *value(this: Mutex): Generator<number, unknown, unknown> {
        return [yield SUSPENDED, this instanceof Mutex]
      },
    })
    const { f } = load(
      `export function f(m) { 'use task'; try { return m.lock() } finally { m.done = (m.done ?? 0) + 1 } }`,
    )
    const mutex = new Mutex() as Mutex & { done?: number }
    const steps = twinOf(f)(mutex)
    steps.next()
    expect(steps.next('token').value).toEqual(['token', true])
    expect(mutex.done).toBe(1)
    const cancelled = twinOf(f)(mutex)
    cancelled.next()
    expect(() => cancelled.throw(new Error('cancelled'))).toThrow('cancelled')
    expect(mutex.done).toBe(2)
  })

  test('is not taken from a proxy, nor inherited from another function', () => {
    const { f, call } = load(
      `export function f() { 'use task'; for (;;) return 'f' }\nexport function call(g) { 'use task'; return g() }`,
    )
    const proxy = new Proxy(f, { apply: () => 'trapped' })
    const heir = Object.setPrototypeOf(() => 'heir', f)
    expect([f, proxy, heir].map(g => drive(twinOf(call)(g)).value)).toEqual(['f', 'trapped', 'heir'])
  })

  test('that a program attaches itself is used, also inside its own module', () => {
    const { f } = load(`export function f() { 'use task'; return block() }
      function block() { return 'plain' }
      block[Symbol.for('heddle.twin')] = function* () { return 'by hand' }`)
    expect(drive(twinOf(f)()).value).toBe('by hand')
  })

  test('of a function with a sloppy this gets the same this', () => {
    const { f } = load(`exports.f = function () { 'use task'; for (;;) return this }`, 'module.cjs')
    expect(drive(twinOf(f).call(undefined)).value).toBe(globalThis)
    expect(drive(twinOf(f).call(1)).value).toBeInstanceOf(Number)
  })
})

describe('safepoints', () => {
  test('are in loops without calls once in some hundreds of turns', () => {
    const { f } = load(
      `export function f(n) { 'use task'; let s = 0; for (let i = 0; i < n; i++) s += i; while (s > 0) s -= n; return s }`,
    )
    const { stops, value } = drive(twinOf(f)(5120))
    expect(value).toBe(f(5120))
    expect(stops.length).toBeGreaterThanOrEqual(10)
    expect(stops.length).toBeLessThan(40)
    expect(new Set(stops)).toEqual(new Set([PREEMPTED]))
  })

  test('are in every turn of a loop that calls a function which may run long', () => {
    const { f } = load(`export function f(n, g) { 'use task'; for (let i = 0; i < n; i++) g(i) }`)
    expect(drive(twinOf(f)(100, () => 0)).stops.length).toBeGreaterThanOrEqual(100)
  })

  test('are reached in nests of short loops too, at any depth', () => {
    const loop = (name: string, body: string): string =>
      `for (let ${name} = 0; ${name} < n; ${name}++) { ${body} }`
    const names = ['a', 'b', 'c', 'd', 'e']
    const { f } = load(
      `export function f(n) { 'use task'; let s = 0; ${names.reduceRight((body, name) => loop(name, body), 's++')}; return s }`,
    )
    const { value, stops } = drive(twinOf(f)(16))
    expect(value).toBe(16 ** 5)
    // At least one in 200,000 turns of the innermost loop.
    expect(stops.length).toBeGreaterThan(16 ** 5 / 200_000)
  })

  test('are at the entry of functions that can recurse', () => {
    const { fib } = load(`export function fib(n) { 'use task'; return n < 2 ? n : fib(n - 1) + fib(n - 2) }`)
    const { stops, value } = drive(twinOf(fib)(10))
    expect(value).toBe(55)
    expect(stops).toHaveLength(177)
  })

  test.each([
    ['for (let i = 0; i < n; i++) s = (s * 31 + i) | 0'],
    ['for (let i = n; i > 0; i -= 3) { if (i % 5 === 0) continue; s += i; if (s > 1e6) break }'],
    ['for (let i = 1; i <= n; i += i) s += i'],
    ['for (let i = 0, j = n; i < j; i++, j--) { s += i * j }'],
    ['let i = 0; while (i < n) { i++; if (i % 7 === 0) continue; s += i }'],
    ['let i = 0; do { i += 2; if (i % 3 === 0) continue; s ^= i } while (i < n)'],
    [
      'for (let i = 0; i < n; i++) { const q = i & 3; for (let j = i; j < n; j += 2) { if (j === 40) continue; if (j > 80) break; s += j + q } s ^= q }',
    ],
    [
      'out: for (let i = 0; i < n; i++) { for (let j = 0; j < 9; j++) { if (j === 5) continue out; if (i === 77) break out; s += j } s = -1 }',
    ],
    ['const a = [1, 2, 3]; for (let i = 0; i < n; i++) for (const x of a) s += x * i'],
    ['const a = [1]; for (let i = 0; i < a.length; i++) if (a.length < n) a[a.length] = i; s = a.length'],
    ['for (let i = 0n; i < BigInt(n); i++) s += Number(i)'],
    ['for (let i = 0; i < { valueOf: () => n }; i++) s += i'],
    ['for (const k in { a: 1, b: 2 }) { for (let i = 0; i < n; i++) s += k.charCodeAt(0) }'],
  ])('do not change what a loop does, with strips of any length: %s', body => {
    const source = `export function f(n) { 'use task'; let s = 0; ${body}; return s }`
    for (const strip of [1, 2, 3, 64, 512]) {
      const { f } = load(source, 'module.js', { strip })
      for (const n of [0, 1, 2, 3, 50, 131, 1000]) {
        const { value, stops } = drive(twinOf(f)(n))
        expect(value).toBe(f(n))
        if (strip === 1 && n === 131) expect(stops.length).toBeGreaterThan(0)
      }
    }
  })
})

describe('which functions get a twin', () => {
  const source = `
    export function task(xs) {
      'use task'
      const short = x => Math.abs(x) + 1
      const long = x => { for (;;) return short(x) }
      function even(n) { return n === 0 || odd(n - 1) }
      function odd(n) { return n !== 0 && even(n - 1) }
      const caller = x => even(x)
      return xs.map(long).concat(caller(2))
    }
    export function bystander() { for (;;) return 1 }
    class C { constructor() { for (;;) break } get size() { 'use task'; return 1 } async *stream() { 'use task' } }`

  test('is reported with the reason, function by function', () => {
    const { stats } = compile(source, 'a.js')
    const told = Object.fromEntries(stats.map(({ name, form, why }) => [name, `${form}: ${why}`]))
    expect(told).toEqual({
      task: "twin: marked with 'use task'",
      short: 'plain: cannot run long: no loop, no recursion, no unknown call',
      long: 'twin: made inside a task, and can run long',
      even: 'twin: made inside a task, and can run long',
      odd: 'twin: made inside a task, and can run long',
      caller: 'twin: made inside a task, and can run long',
      bystander: 'plain: not marked',
      constructor: 'plain: not marked',
      size: 'plain: `size` is too common a name to check all reads of it',
      stream: 'plain: an async generator has no resumable form',
    })
    expect(stats.find(({ name }) => name === 'bystander')?.line).toBe(11)
  })

  test('a call that cannot run long stays a plain call', () => {
    const { code } = compile(
      `function add(a, b) { return a + b }\nexport function f(x) { 'use task'; return add(x, Math.sqrt(x)) + x.toFixed().length }`,
      'a.js',
      { lowering: 'generator' },
    )
    expect(code).toContain('return add(x, Math.sqrt(x)) + ')
  })

  test('a module that begins with the directive marks every function in it', () => {
    const { a, b } = load(
      `'use task'\nexport const a = () => 1\nexport function b() { return () => { for (;;) return 2 } }`,
    )
    expect(drive(twinOf(a)()).value).toBe(1)
    // A plain call made it, but it is a task: the module has the directive.
    expect(drive(twinOf(b())()).value).toBe(2)
    expect(drive(twinOf(drive(twinOf(b)()).value)()).value).toBe(2)
  })
})

test.each(['frames', 'generator'] as const)(
  'enums and namespaces, which a bundler compiles later, run the same: %s',
  lowering => {
    const source = `'use task'
    const give = <T,>(value: T): T => { for (let i = 0; i < 2; i++); return value }
    enum Outer { A = give(1), B = A + 1 }
    namespace Space { export const v = give(3); export function f(n: number) { for (let i = 0; i < n; i++) give(i); return v + n } }
    class Sides { constructor(readonly side: number, private other = give(2)) { give(0) } area() { return give(this.side) * this.other } }
    export function run() {
      enum Inner { A = give(5), B = A << 1, C = [1, 2].map(x => give(x)).length }
      const f = () => { enum Deep { A = give(Inner.A) + 1 } return Deep.A }
      return [Outer.B, Space.f(2), new Sides(4).area(), Inner.B, Inner[5], Inner.C, f(), give(Inner.A)!]
    }`
    const { code, diagnostics } = compile(source, 'a.ts', { lowering, sourcemap: false })
    expect(diagnostics.filter(({ code }) => code === 'internal')).toEqual([])
    const javascript = transformSync(code, { loader: 'ts', format: 'esm', target: 'es2022' }).code
    const { run } = evaluateModule(javascript, 'a.mjs', { 'heddle/runtime': runtime })
    const expected = [2, 5, 8, 10, 'A', 2, 6, 5]
    expect(run()).toEqual(expected)
    const { value, preemptions } = preemptEverywhere(run, [])
    expect(value).toEqual(expected)
    expect(preemptions).toBeGreaterThan(0)
  },
)
