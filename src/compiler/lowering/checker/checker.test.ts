import { describe, expect, test } from 'vitest'
import { type Twin, twin } from '../../../coroutine/core/coroutine.ts'
import { compile } from '../../compile.ts'
import { evaluateModule, type Namespace } from '../../../../test/compiler/differential/evaluate.ts'
import { unwatched } from '../../../../test/compiler/differential/unwatched.ts'
import * as runtime from '../../runtime.ts'

const names = (
  'read,write,load,store,add,sub,and,or,xor,exchange,compareExchange,wait,notify,waitAsync,await,' +
  'view read,view write,bulk,iterate,pause'
).split(',')

interface Operation {
  kind: number
  site: number
  view: any
  index: any
  a: any
  b: any
}

/** A checker that performs each operation immediately, in its single thread. */
class Recorder {
  readonly log: string[] = []
  readonly turns: unknown[][] = []
  effects = 0
  sites: [number, number, string][] = []
  #pending: Operation | null = null

  exports(): Namespace {
    const isShared = (x: unknown): boolean => ArrayBuffer.isView(x) && x.buffer instanceof SharedArrayBuffer
    const ask = (
      kind: string,
      site: number,
      view: unknown,
      index?: unknown,
      a?: unknown,
      b?: unknown,
    ): number => {
      this.#pending = { kind: names.indexOf(kind), site: site - 1000, view, index, a, b }
      return 2
    }
    function* all(site: number, from: unknown): Generator<number, unknown, unknown> {
      return isShared(from) ? yield ask('iterate', site, from) : from
    }
    return {
      ...runtime,
      ...unwatched,
      module: (_file: string, sites: [number, number, string][]) => {
        this.sites = sites
        return 1000
      },
      isShared,
      waits: (site: number, value: unknown) => ask('await', site, value),
      awaitedAt: (fn: never) => runtime.own(fn),
      ownAt: (fn: never) => runtime.own(fn),
      direct: (value: unknown) => value,
      entered: () => undefined,
      pending: { grows: false },
      modelled: isShared,
      *places(
        site: number,
        view: unknown,
        name: string,
        args: unknown[],
      ): Generator<number, unknown, unknown> {
        if (!(view instanceof DataView)) return yield ask('bulk', site, view, 0, name, args)
        const [offset, second, third] = args
        return name.startsWith('get')
          ? yield ask('view read', site, view, offset, undefined, [name, second])
          : yield ask('view write', site, view, offset, second, [name, third])
      },
      elements: (_site: number, from: unknown) => from,
      take: all,
      fields: all,
      list: all,
      // oxlint-disable-next-line require-yield
      *construct(_site: number, maker: new (...args: unknown[]) => object, args: unknown[]) {
        return new maker(...args)
      },
      op: (kind: number, site: number, view: unknown, index: unknown, a: unknown, b: unknown) => {
        this.#pending = { kind, site: site - 1000, view, index, a, b }
        return 2
      },
      loop: (site: number) => ({ site }),
      turn: (_entered: unknown, ...values: unknown[]) => {
        this.turns.push(values)
        return true
      },
      effect: (value: unknown) => {
        this.effects++
        return value
      },
    }
  }

  run(resumable: Generator<number, unknown>): unknown {
    let step = resumable.next()
    while (!step.done) {
      const operation = this.#pending!
      this.#pending = null
      const [line, , text] = this.sites[operation.site]!
      this.log.push(`${line} ${names[operation.kind]} ${text}`)
      let value: unknown
      try {
        value = perform(operation)
      } catch (error) {
        step = resumable.throw(error)
        continue
      }
      step = resumable.next(value)
    }
    return step.value
  }
}

function perform({ kind, view, index, a, b }: Operation): unknown {
  const name = names[kind]!
  switch (name) {
    case 'read':
      return view[index]
    case 'write':
      return void (view[index] = a)
    case 'compareExchange':
      return Atomics.compareExchange(view, index, a, b)
    case 'load':
      return Atomics.load(view, index)
    case 'notify':
      return Atomics.notify(view, index, a)
    case 'await':
      return view
    case 'view read':
      return view[b[0]](index, b[1])
    case 'view write':
      return view[b[0]](index, a, b[1])
    case 'bulk':
      return view[a](...b)
    case 'iterate':
      return [...view]
    case 'pause':
      return undefined
    default:
      return (Atomics as any)[name](view, index, a)
  }
}

function load(
  source: string,
  recorder = new Recorder(),
  file = 'm.js',
): { space: Namespace; recorder: Recorder } {
  const { code, diagnostics } = compile(source, file, { mode: 'checker' })
  expect(diagnostics).toEqual([])
  return { space: evaluateModule(code, file, { 'heddle/checker/runtime': recorder.exports() }), recorder }
}

function both(body: string, ...values: unknown[]): { recorder: Recorder; result: unknown } {
  const source = `export function f(v, d, ...rest) { ${body} }`
  const views = (): unknown[] => {
    const shared = new SharedArrayBuffer(64)
    return [new Int32Array(shared), new DataView(shared), ...values]
  }
  const { space, recorder } = load(source)
  const plainViews = views()
  const expected = outcome(() => space['f'](...plainViews))
  const checkedViews = views()
  const result = outcome(() => recorder.run((space['f'] as { [twin]: Twin })[twin](...checkedViews)))
  expect(result).toEqual(expected)
  expect(checkedViews[0]).toEqual(plainViews[0])
  return { recorder, result }
}

function outcome(run: () => unknown): unknown {
  try {
    return { returned: run() }
  } catch (error) {
    return { threw: String(error) }
  }
}

describe('an access to shared memory', () => {
  test.each([
    ['v[0] = 5; return v[0] + v[1]', ['write', 'read', 'read']],
    [
      'v[0] += 2; v[1] ||= 3; v[2] &&= 4; return [v[0]++, --v[1], v[0]]',
      ['read', 'write', 'read', 'write', 'read', 'read', 'write', 'read', 'write', 'read'],
    ],
    [
      'return Atomics.add(v, 0, 3) + Atomics.load(v, 0) + Atomics.compareExchange(v, 0, 3, 9) + Atomics.exchange(v, 0, 1)',
      ['add', 'load', 'compareExchange', 'exchange'],
    ],
    [
      'return [Atomics.store(v, 1, 7), Atomics.sub(v, 1, 1), Atomics.or(v, 1, 8), Atomics.and(v, 1, 12), Atomics.xor(v, 1, 1), Atomics.notify(v, 0)]',
      ['store', 'sub', 'or', 'and', 'xor', 'notify'],
    ],
    [
      'd.setInt32(0, 77, true); return [d.getInt32(0, true), d.getUint8(1)]',
      ['view write', 'view read', 'view read'],
    ],
    [
      'v.fill(3, 1, 4); v.set([9], 2); v.copyWithin(5, 1, 3); return v.slice(0, 8)',
      ['bulk', 'bulk', 'bulk', 'bulk'],
    ],
    [
      'v[2] = 4; let s = 0; for (const x of v) s += x; return [s, [...v].length, Math.max(...v)]',
      ['write', 'iterate', 'iterate'],
    ],
    ['Atomics.pause(); return v?.[0] ?? 1', ['pause', 'read']],
    ['return v[v[v[0]]] + v["length"]', ['read', 'read', 'read']],
    ['return Atomics.load(v, 99)', ['load']],
    ['const o = { v }; o.v[1] = o.v[0] = 8; return o.v[1]', ['write', 'write', 'read']],
  ])('is a yield that names it: %s', (body, kinds) => {
    const { recorder } = both(body)
    expect(
      recorder.log.map(line =>
        line.replace(/^\d+ (\w+(?: \w+)?) .*$/, '$1').replace(/^(view \w+|\w+).*/, '$1'),
      ),
    ).toEqual(kinds)
  })

  test('has its source position', () => {
    const recorder = new Recorder()
    const { space } = load('export function f(v) {\n  v[1] = 2\n  return Atomics.load(v,\n 1)\n}', recorder)
    expect(recorder.run((space['f'] as any)[twin](new Int32Array(new SharedArrayBuffer(8))))).toBe(2)
    expect(recorder.log).toEqual(['2 write v[1] = 2', '3 load Atomics.load(v, 1)'])
  })

  test('of memory that is not shared does not yield', () => {
    const { recorder } = both(
      'const own = new Int32Array(4); own[1] = 3; own[1]++; Atomics.add(own, 1, 1); own.fill(1, 2); return [...own, own[1]]',
    )
    expect(recorder.log).toEqual([])
  })
})

describe('every function of a checked module', () => {
  test('is resumable, of any kind', () => {
    both(`
      const log = []
      const arrow = i => v[i]
      function inner(i) { return arrow(i) + this.n }
      class C { #p(i) { return v[i] } static s(i) { return v[i] } m(i) { return this.#p(i) + [1, 2].map(k => v[k] + i).length } *g() { yield v[0]; yield* [v[1]] } }
      v[0] = 1; v[1] = 2
      const c = new C()
      for (const x of c.g()) log.push(x)
      try { log.push(missing.x) } catch (error) { log.push(error.name, v[0]) } finally { log.push(v[1]) }
      return [arrow(1), inner.call({ n: 5 }, 1), C.s(0), c.m(1), log, [3, 1, 2].sort((a, b) => v[0] * (a - b))]`)
  })

  test('also an async one: await is an operation', () => {
    const recorder = new Recorder()
    const { space } = load(
      'export async function f(v) { const x = await g(v); return x + (await v[1]) }\nasync function g(v) { v[1] = 4; return v[1] }',
      recorder,
    )
    expect(recorder.run((space['f'] as any)[twin](new Int32Array(new SharedArrayBuffer(8))))).toBe(8)
    expect(recorder.log.map(line => line.split(' ')[1])).toEqual(['write', 'read', 'await', 'read', 'await'])
  })

  test('evaluates its parts in their order, once', () => {
    both(`
      const log = []
      const at = i => (log.push(i), i)
      const view = () => (log.push('v'), v)
      view()[at(0)] = at(5)
      view()[at(1)] += at(6) + view()[at(0)]
      view()[at(2)]++
      Atomics.compareExchange(view(), at(3), at(0), at(1))
      return [log, view()?.[at(1)], delete [][at(0)]]`)
  })
})

describe('loops', () => {
  test('report each turn, with the variables that it changes', () => {
    const { recorder } = both(
      'let tries = 0; let kept = 1; while (Atomics.load(v, 0) < 3) { tries++; const local = tries; Atomics.add(v, 0, local > 0 ? kept : 0) } return tries',
    )
    expect(recorder.turns).toEqual([[0], [1], [2], [3]])
  })

  test('of every kind behave as before', () => {
    both(
      'let s = 0; a: for (let i = 0; i < 4; i++) { do { s += v[0] + i; if (s % 2) continue a; if (s > 40) break a } while (s % 5); for (const k in { x: 1 }) s += k.length } return s',
    )
  })

  test('report a turn that changes outer state', () => {
    const quiet = both('let n = 0; while (Atomics.load(v, 0) === 0 && n++ < 2) Atomics.pause()')
    expect(quiet.recorder.effects).toBe(0)
    const loud = both('const o = {}; let n = 0; const set = () => { n++ }; while (n < 2) { o.x = n; set() }')
    expect(loud.recorder.effects).toBe(4)
    const local = both('const own = new Int32Array(1); while (Atomics.add(own, 0, 1) < 2) {}')
    expect(local.recorder.effects).toBe(3)
    const driven = both(
      'function* g() { let n = 0; for (;;) yield n++ } const it = g(); while (it.next().value < 2) {}',
    )
    expect(driven.recorder.effects).toBe(3)
  })
})

test('a getter and a setter are resumed if this file has one of that name', () => {
  const { recorder } = both(`
    class Cell { constructor(v) { this.v = v } get value() { return this.v[0] } set value(x) { this.v[0] = x } static get zero() { return v[1] } async later() { return this.v[0] } }
    const cell = new Cell(v)
    const other = { value: 3, get twice() { return v[0] * 2 } }
    cell.value = 5
    other.value = cell.value + (cell?.value ?? 0)
    cell.value += 1
    return [other.value, Cell.zero, other.twice, cell.value, null?.value]`)
  expect(recorder.log.map(line => line.split(' ')[1])).toEqual([
    'write',
    'read',
    'read',
    'read',
    'read',
    'read',
  ])
})

test('a constructor or a getter with an atomic access is not checked, and causes a warning', () => {
  const { diagnostics } = compile(
    'class A {\n  constructor(v) { Atomics.store(v, 0, 1) }\n  get x() { return 1 }\n}',
    'm.js',
    { mode: 'checker' },
  )
  expect(diagnostics.map(({ severity, code, line }) => `${severity} ${code} ${line}`)).toEqual([
    'warning constructor 2',
  ])
})
