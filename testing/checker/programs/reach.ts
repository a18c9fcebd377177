import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { inspect, isDeepStrictEqual, types } from 'node:util'
import { serialize } from 'node:v8'

/**
 * Every way in which JavaScript reaches shared memory, by the clauses of ECMA-262, and in which Node and the
 * web reach it. Each entry is a separate program: it reads both words of `words`, or writes 1 to both, in the
 * named way.
 *
 *   reads, writes  each element is a step: another thread can run between them
 *   one            there is one element, or the language makes it one step
 *   refused        the check ends with an error that names the site
 */
export interface Reach {
  readonly clause: string
  readonly way: string
  readonly does: 'reads' | 'writes' | 'reads one' | 'writes one' | 'refused'
  readonly run: (words: Int32Array<SharedArrayBuffer>, buffer: SharedArrayBuffer, data: DataView) => any
}

const two = (list: any): string => `${list[0]}${list[1]}`
const reads = (clause: string, way: string, run: Reach['run']): Reach => ({ clause, way, does: 'reads', run })
const writes = (clause: string, way: string, run: Reach['run']): Reach => ({
  clause,
  way,
  does: 'writes',
  run,
})
const readsOne = (clause: string, way: string, run: Reach['run']): Reach => ({
  clause,
  way,
  does: 'reads one',
  run,
})
const writesOne = (clause: string, way: string, run: Reach['run']): Reach => ({
  clause,
  way,
  does: 'writes one',
  run,
})
const refused = (clause: string, way: string, run: Reach['run']): Reach => ({
  clause,
  way,
  does: 'refused',
  run,
})

function* through(words: Int32Array): Generator<number> {
  yield* words
}
async function later(words: Int32Array): Promise<number> {
  await undefined
  return words[0]!
}
function patterns([a, b]: any): string {
  return `${a}${b}`
}
function fallback(words: any, a = words[0], b = words[1]): string {
  return `${a}${b}`
}
const tagOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Int8Array.prototype), Symbol.toStringTag)!
  .get as () => unknown
const { load, store, add, exchange, compareExchange } = Atomics
class Ring extends Array {}

/** Stands for a module that is not instrumented: the compiler does not see the text. */
const unseen = (text: string): ((...args: any[]) => any) => new Function('v', 'b', text) as never

export const ways: readonly Reach[] = [
  // 10.4.5 TypedArray exotic objects
  reads('10.4.5.4 [[Get]]', 'v[0]', v => `${v[0]}${v[1]}`),
  reads('10.4.5.4 [[Get]]', 'v["0"]', v => `${(v as any)['0']}${(v as any)['1']}`),
  reads('10.4.5.4 [[Get]]', 'v[`${i}`]', v => `${(v as any)[`${0}`]}${(v as any)[`${1}`]}`),
  reads('10.4.5.4 [[Get]]', 'v[{ toString }]', v => `${(v as any)[{ toString: () => '0' } as any]}${v[1]}`),
  reads('10.4.5.4 [[Get]]', 'v?.[0]', v => `${v?.[0]}${v?.[1]}`),
  writes('10.4.5.5 [[Set]]', 'v[0] = 1', v => ((v[0] = 1), (v[1] = 1))),
  writes('10.4.5.5 [[Set]]', 'v[0] ||= 1', v => ((v[0] ||= 1), (v[1] ||= 1))),
  writes('10.4.5.5 [[Set]]', 'v[0]++', v => (v[0]++, ++v[1])),
  writes('10.4.5.5 [[Set]]', 'v[0] += 1', v => ((v[0] += 1), (v[1] += 1))),
  writes('10.4.5.5 [[Set]]', 'v[0] = { valueOf }', v => ((v[0] = { valueOf: () => 1 } as any), (v[1] = 1))),
  refused('10.4.5.3 [[DefineOwnProperty]]', 'Object.defineProperty(v, 0)', v =>
    Object.defineProperty(v, 0, { value: 1 }),
  ),
  refused('10.4.5.1 [[GetOwnProperty]]', 'Object.getOwnPropertyDescriptor(v, 0)', v =>
    Object.getOwnPropertyDescriptor(v, 0),
  ),
  // 8.6.2, 13.15.5 destructuring; 14.7 loops; 13.2.4 spread; 15.5 yield*
  reads('8.6.2 binding patterns', 'const [a, b] = v', v => {
    const [a, b] = v
    return `${a}${b}`
  }),
  reads('8.6.2 binding patterns', 'const { 0: a, 1: b } = v', v => {
    const { 0: a, 1: b } = v
    return `${a}${b}`
  }),
  reads('8.6.2 binding patterns', 'const { ...all } = v', v => {
    const { ...all } = v as any
    return two(all)
  }),
  reads('8.6.2 binding patterns', '([a, b]) => …', v => patterns(v)),
  reads('15.1 parameters', '(v, a = v[0]) => …', v => fallback(v)),
  reads('13.15.5 assignment patterns', '[a, b] = v', v => {
    let a: any
    let b: any
    ;[a, b] = v
    return `${a}${b}`
  }),
  writes('13.15.5 assignment patterns', '[v[0], v[1]] = […]', v => {
    ;[v[0], v[1]] = [1, 1]
  }),
  reads('14.7.5 for-of', 'for (const x of v)', v => {
    let text = ''
    for (const x of v) text += x
    return text
  }),
  reads('14.7.5 for-of', 'for (const [i, x] of v.entries())', v => {
    let text = ''
    for (const [, x] of v.entries()) text += x
    return text
  }),
  writes('14.7.5 for-of', 'for (v[0] of …)', v => {
    for (v[0] of [1]);
    for (v[1] of [1]);
  }),
  reads('13.2.4 array literals', '[...v]', v => two([...v])),
  reads('13.2.5 object literals', '{ ...v }', v => two({ ...v })),
  reads('13.3.8 arguments', 'f(...v)', v => ((...all: any[]) => two(all))(...v)),
  reads('13.3.5 new', 'new C(...v)', v => two(new Ring(...v))),
  reads('15.5.5 yield*', 'yield* v', v => two([...through(v)])),
  // 23.1, 23.2 arrays and typed arrays
  reads('23.1.2.1 Array.from', 'Array.from(v)', v => two(Array.from(v))),
  reads('23.1.2.1 Array.from', 'Array.from(v, f)', v => two(Array.from(v, x => x))),
  reads('23.2.2.1 %TypedArray%.from', 'Uint8Array.from(v)', v => two(Uint8Array.from(v))),
  reads('23.2.5.1 TypedArray()', 'new Uint8Array(v)', v => two(new Uint8Array(v))),
  reads('24.2.1.1 Set()', 'new Map(v.entries())', v => two([...new Map(v.entries()).values()])),
  readsOne('23.2.3.1 at', 'v.at(0)', v => v.at(0)),
  writes('23.2.3.6 copyWithin', 'v.copyWithin()', v => {
    v[0] = 1
    v.copyWithin(1, 0)
  }),
  reads('23.2.3.7 entries', 'v.entries().next()', v => {
    const all = v.entries()
    return `${all.next().value![1]}${all.next().value![1]}`
  }),
  reads('23.2.3.8 every', 'v.every(f)', v => {
    let text = ''
    v.every(x => ((text += x), true))
    return text
  }),
  writes('23.2.3.9 fill', 'v.fill(1)', v => v.fill(1)),
  reads('23.2.3.10 filter', 'v.filter(f)', v => two(v.filter(() => true))),
  reads('23.2.3.11 find', 'v.find(f)', v => {
    let text = ''
    v.find(x => ((text += x), false))
    return text
  }),
  reads('23.2.3.15 forEach', 'v.forEach(f)', v => {
    let text = ''
    v.forEach(x => (text += x))
    return text
  }),
  readsOne('23.2.3.16 includes', 'v.includes(1)', v => (v.subarray(0, 1).includes(1) ? 1 : 0)),
  readsOne('23.2.3.17 indexOf', 'v.indexOf(1)', v => v.subarray(0, 1).indexOf(1) + 1),
  readsOne('23.2.3.20 lastIndexOf', 'v.lastIndexOf(1)', v => v.subarray(0, 1).lastIndexOf(1) + 1),
  reads('23.2.3.18 join', 'v.join("")', v => v.join('')),
  reads('23.2.3.22 map', 'v.map(f)', v => two(v.map(x => x))),
  reads('23.2.3.23 reduce', 'v.reduce(f)', v => v.reduce((text, x) => `${text}${x}` as never, '' as never)),
  writes('23.2.3.25 reverse', 'v.reverse()', v => {
    v[0] = 1
    v.reverse()
    v[0] = 1
  }),
  writes('23.2.3.26 set', 'v.set([1, 1])', v => v.set([1, 1])),
  reads('23.2.3.26 set', 'local.set(v)', v => {
    const local = new Uint8Array(2)
    local.set(v)
    return two(local)
  }),
  reads('23.2.3.27 slice', 'v.slice()', v => two(v.slice())),
  reads('23.2.3.28 some', 'v.some(f)', v => {
    let text = ''
    v.some(x => ((text += x), false))
    return text
  }),
  writes('23.2.3.29 sort', 'v.sort()', v => {
    v[1] = 1
    v.sort((a, b) => b - a)
    v[1] = 1
  }),
  reads('23.2.3.30 subarray', 'v.subarray(0)[0]', v => `${v.subarray(0)[0]}${v.subarray(1)[0]}`),
  reads('23.2.3.32 toReversed', 'v.toReversed()', v => two((v as any).toReversed().toReversed())),
  reads('23.2.3.33 toSorted', 'v.toSorted(f)', v => two((v as any).toSorted(() => 0))),
  reads('23.2.3.34 toString', 'v.toString()', v => v.toString().replace(',', '')),
  reads('23.2.3.31 toLocaleString', 'v.toLocaleString()', v => v.toLocaleString().replace(',', '')),
  reads('23.2.3.35 values', 'v.values()', v => two([...v.values()])),
  readsOne('23.2.3.36 with', 'v.with(0, 1)', v => (v as any).with(0, 1)[1]),
  reads('23.2.3.37 @@iterator', 'v[Symbol.iterator]()', v => two([...v[Symbol.iterator]()])),
  reads('20.2.3.3 call', 'slice.call(v)', v => two(Int32Array.prototype.slice.call(v))),
  reads('28.1.1 Reflect.apply', 'Reflect.apply(join, v)', v =>
    Reflect.apply(Int32Array.prototype.join, v, ['']),
  ),
  refused('23.1.3 Array.prototype', 'Array.prototype.map.call(v)', v => Array.prototype.map.call(v, x => x)),
  refused('23.1.3 Array.prototype', 'Array.prototype.join.call(v)', v => Array.prototype.join.call(v)),
  // 25.1 buffers, 25.3 DataView, 25.4 Atomics
  reads('25.2.5.6 slice', 'buffer.slice()', (_, b) => {
    const copy = new Int32Array(b.slice(0))
    return `${copy[0]}${copy[1]}`
  }),
  reads('25.3.4 getInt32', 'd.getInt32()', (_v, _b, d) => `${d.getInt32(0, true)}${d.getInt32(4, true)}`),
  writes('25.3.4 setInt32', 'd.setInt32()', (_v, _b, d) => {
    d.setInt32(0, 1, true)
    d.setInt32(4, 1, true)
  }),
  reads('25.4 Atomics', 'Atomics.load()', v => `${Atomics.load(v, 0)}${Atomics.load(v, 1)}`),
  reads('25.4 Atomics', 'const { load } = Atomics', v => `${load(v, 0)}${load(v, 1)}`),
  reads(
    '25.4 Atomics',
    'Atomics.load(...args)',
    v => `${Atomics.load(...([v, 0] as const))}${Atomics.load(v, 1)}`,
  ),
  writes('25.4 Atomics', 'const { store } = Atomics', v => (store(v, 0, 1), store(v, 1, 1))),
  writes('25.4 Atomics', 'const { add, exchange } = Atomics', v => (add(v, 0, 1), exchange(v, 1, 1))),
  writesOne('25.4 Atomics', 'const { compareExchange } = Atomics', v => compareExchange(v, 0, 0, 1)),
  writesOne('25.4 Atomics', 'Atomics[name]()', v => (Atomics as any)[`st${'ore'}`](v, 0, 1)),
  // 20.1, 25.5, 28.1: functions over properties
  reads('28.1.5 Reflect.get', 'Reflect.get(v, 0)', v => `${Reflect.get(v, 0)}${Reflect.get(v, '1')}`),
  writes('28.1.12 Reflect.set', 'Reflect.set(v, 0, 1)', v => (Reflect.set(v, 0, 1), Reflect.set(v, 1, 1))),
  reads('20.1.2.1 Object.assign', 'Object.assign({}, v)', v => two(Object.assign({}, v))),
  refused('20.1.2.1 Object.assign', 'Object.assign(v, …)', v => Object.assign(v, { 0: 1 })),
  reads('20.1.2.24 Object.values', 'Object.values(v)', v => two(Object.values(v))),
  reads('20.1.2.5 Object.entries', 'Object.entries(v)', v =>
    Object.entries(v)
      .map(([, x]) => x)
      .join(''),
  ),
  reads('25.5.2 JSON.stringify', 'JSON.stringify(v)', v => two(Object.values(JSON.parse(JSON.stringify(v))))),
  refused('25.5.2 JSON.stringify', 'JSON.stringify({ v })', v => JSON.stringify({ v })),
  refused('20.1.2.7 Object.fromEntries', 'Object.fromEntries(…)', v => Object.fromEntries(v as never)),
  refused('28.1.2 Reflect.construct', 'Reflect.construct(Uint8Array, [v])', v =>
    Reflect.construct(Uint8Array, [v]),
  ),
  refused('22.1.1 String()', 'String(v)', v => String(v)),
  refused('13.15.3 +', 'v + ""', v => `${(v as any) + ''}`),
  refused('22.2 template literals', '`${v}`', v => `${v}`),
  refused('21.3 Math', 'Math.max.apply(null, v)', v => Math.max.apply(null, v as never)),
  refused('8.6.2 binding patterns', 'const { [k]: a } = v', v => {
    const k = 0
    const { [k]: a } = v
    return a
  }),
  refused('code that is not instrumented', 'v[0]', v => unseen('return v[0]')(v)),
  refused('code that is not instrumented', 'v[0] = 1', v => unseen('v[0] = 1')(v)),
  refused('code that is not instrumented', 'try { v[0] } catch {}', v =>
    unseen('try { return v[0] } catch { return 0 }')(v),
  ),
  refused('code that is not instrumented', 'new Int8Array(b)[0]', (v, b) =>
    unseen('return new Int8Array(b)[0]')(v, b),
  ),
  refused('code that is not instrumented', 'Atomics.load(v, 0)', v => unseen('return Atomics.load(v, 0)')(v)),
  refused('code that is not instrumented', 'v.slice()', v => unseen('return v.slice()')(v)),
  refused('code that is not instrumented', 'for (const x of v)', v =>
    unseen('for (const x of v) return x')(v),
  ),
  refused('code that is not instrumented', 'a generator of the check', v =>
    unseen('return [...v]')(through(v)),
  ),
  refused(
    'a constructor',
    'class { constructor(v) { v[0] } }',
    v =>
      new (class {
        readonly first: number
        constructor(from: Int32Array) {
          this.first = from[0]!
        }
      })(v),
  ),
  // Node and the web
  refused('Buffer.from', 'Buffer.from(v)', v => Buffer.from(v)),
  refused('Buffer.from', 'Buffer.from(buffer)', (_, b) => Buffer.from(b)),
  refused('Buffer.concat', 'Buffer.concat([v])', v => Buffer.concat([v] as never)),
  refused('TextDecoder', 'new TextDecoder().decode(v)', v => new TextDecoder().decode(v)),
  refused('TextEncoder', 'new TextEncoder().encodeInto("a", v)', (_, b) =>
    new TextEncoder().encodeInto('a', new Uint8Array(b)),
  ),
  refused('structuredClone', 'structuredClone(v)', v => structuredClone(v)),
  refused('structuredClone', 'structuredClone({ v })', v => {
    try {
      return structuredClone({ v })
    } catch {
      return unseen('return v[0]')(v)
    }
  }),
  refused('crypto.getRandomValues', 'crypto.getRandomValues(v)', v => crypto.getRandomValues(v as never)),
  // Reading the internal slots of a proxy throws. A thread that catches that error would differ from a real
  // thread.
  ...[
    ['structuredClone({ v })', (v: Int32Array) => structuredClone({ v })],
    ['crypto.createHash().update(v)', (v: Int32Array) => createHash('sha1').update(v as never)],
    ['v8.serialize({ a: [v] })', (v: Int32Array) => serialize({ a: [v] })],
    ['util.isDeepStrictEqual(v, …)', (v: Int32Array) => isDeepStrictEqual(v, new Int32Array(2))],
    ['util.types.isTypedArray(v)', (v: Int32Array) => types.isTypedArray(v)],
    [
      'DataView.prototype.getInt8.call(d)',
      (v: Int32Array) => DataView.prototype.getInt8.call(new DataView(v.buffer), 0),
    ],
    ['%TypedArray%.prototype[@@toStringTag] of v', (v: Int32Array) => tagOf.call(v)],
    ['Reflect.apply(f, null, [v])', (v: Int32Array) => Reflect.apply(types.isTypedArray, null, [v])],
    ['[v].forEach(f)', (v: Int32Array) => [v].forEach(types.isTypedArray)],
    ['new C(v)', (v: Int32Array) => new Blob([v as never])],
    [
      'Buffer.prototype.copy.call(v)',
      (v: Int32Array) => Buffer.prototype.copy.call(v as never, Buffer.alloc(1)),
    ],
    ['a function of a package', (v: Int32Array) => unseen('return v')(v)],
    ['a method that holds it', (v: Int32Array) => ({ v, type: types.isTypedArray }).type(0)],
    ['a promise', (v: Int32Array) => void Promise.resolve().then(() => v[0])],
    ['an async function of the check', (v: Int32Array) => void later(v)],
    ['an async function', () => unseen('return (async () => 1)()')()],
  ].map(([way, run]) =>
    refused('a caught error', way as string, v => {
      try {
        return (run as Reach['run'])(v, v.buffer, undefined as never)
      } catch {
        return '11'
      }
    }),
  ),
  refused('util.inspect', 'inspect(v)', v => inspect(v)),
  refused('util.inspect', 'inspect({ v })', v => inspect({ v })),
]
