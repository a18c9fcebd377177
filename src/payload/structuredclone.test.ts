import { isDeepStrictEqual } from 'node:util'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { payloadArena } from '../../testing/payload/setup.ts'

const { heap, codecs, threads } = payloadArena()
const [codec] = codecs

function travel<T>(value: T): T {
  const word = codec.encode(value, 'value')
  try {
    return codec.decode(word) as T
  } finally {
    codec.free(word)
  }
}

afterEach(() => {
  expect(heap.usedBlocks()).toBe(0)
  heap.verify(threads[0])
})

const boxes = ['[object Number]', '[object String]', '[object Boolean]', '[object BigInt]']

/** Describes a graph as text, identities included, so that two graphs can be compared. */
function portrait(value: unknown): string {
  const numbers = new Map<object, number>()
  const lines: string[] = []
  const draw = (part: unknown): string => {
    if (Object.is(part, -0)) return '-0'
    if (typeof part === 'string') return JSON.stringify(part)
    if (typeof part === 'bigint') return `${part}n`
    if (typeof part !== 'object' || part === null) return String(part)
    const known = numbers.get(part)
    if (known !== undefined) return `#${known}`
    const number = numbers.size
    numbers.set(part, number)
    const name = Object.prototype.toString.call(part)
    const facts = [name, (Object.getPrototypeOf(part) as object | null)?.constructor?.name ?? 'null']
    if (part instanceof Map) for (const [key, item] of part) facts.push(`${draw(key)} => ${draw(item)}`)
    else if (part instanceof Set) for (const item of part) facts.push(draw(item))
    else if (part instanceof Date) facts.push(String(part.getTime()))
    else if (part instanceof RegExp) facts.push(String(part), String(part.lastIndex))
    else if (part instanceof ArrayBuffer) {
      facts.push([...new Uint8Array(part)].join(), String(part.resizable), String(part.maxByteLength))
    } else if (ArrayBuffer.isView(part)) {
      facts.push(String(part.byteOffset), String(part.byteLength), draw(part.buffer))
    } else if (boxes.includes(name)) {
      facts.push(draw(part.valueOf()))
    }
    if (part instanceof Error) {
      facts.push(part.name, part.message, String(part.stack), String(Object.hasOwn(part, 'message')))
      facts.push('cause' in part ? draw(part.cause) : 'no cause')
    }
    if (!ArrayBuffer.isView(part) && name !== '[object String]') {
      if (Array.isArray(part)) facts.push(`length ${part.length}`)
      for (const key of Object.keys(part)) {
        facts.push(`${JSON.stringify(key)}: ${draw((part as Record<string, unknown>)[key])}`)
      }
    }
    lines[number] = facts.join(' | ')
    return `#${number}`
  }
  return `${draw(value)}\n${lines.join('\n')}`
}

function expectSame(value: unknown): void {
  const expected = portrait(structuredClone(value))
  expect(portrait(travel(value))).toBe(expected)
}

const leaf = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.bigInt(),
  fc.bigInt({ min: -(2n ** 300n), max: 2n ** 300n }),
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.integer({ min: 0, max: 0xffff }).map(unit => String.fromCharCode(unit)),
    maxLength: 60,
  }),
  fc.boolean(),
  fc.constantFrom(
    undefined,
    null,
    -0,
    NaN,
    Infinity,
    -Infinity,
    2 ** 30,
    -(2 ** 30),
    -(2 ** 30) - 1,
    2 ** 53,
  ),
  fc.date({ noInvalidDate: false }),
  fc.constantFrom(/a/gi, /[/]\n/su, /(?<x>y)/dmv, /()/).map(regexp => new RegExp(regexp)),
  fc
    .oneof(fc.integer(), fc.string(), fc.boolean(), fc.bigInt())
    .map(primitive => Object(primitive) as object),
)

const buffers = fc.oneof(
  fc.uint8Array({ maxLength: 2000 }),
  fc.int16Array(),
  fc.float32Array(),
  fc.float64Array(),
  fc.bigInt64Array(),
  fc.uint8ClampedArray(),
  fc.uint8Array({ minLength: 8, maxLength: 40 }).map(bytes => new Uint16Array(bytes.slice().buffer, 2, 2)),
  fc.uint8Array({ minLength: 8, maxLength: 40 }).map(bytes => new DataView(bytes.slice().buffer, 3, 4)),
  fc.uint8Array({ minLength: 8, maxLength: 40 }).map(bytes => bytes.slice().buffer),
)

const key = fc.oneof(
  fc.string(),
  fc.constantFrom('__proto__', 'constructor', 'toJSON', '0', 'a', 'b', 'length'),
)

const { graph } = fc.letrec<{ graph: unknown }>(tie => ({
  graph: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    buffers,
    fc.array(tie('graph'), { maxLength: 6 }),
    fc.sparseArray(tie('graph'), { maxNumElements: 4, maxLength: 12 }),
    fc.array(fc.integer(), { maxLength: 40 }),
    fc.array(fc.double(), { maxLength: 40 }),
    fc.array(fc.tuple(key, tie('graph')), { maxLength: 5 }).map(entries => Object.fromEntries(entries)),
    fc.array(fc.tuple(tie('graph'), tie('graph')), { maxLength: 4 }).map(entries => new Map(entries)),
    fc.array(tie('graph'), { maxLength: 4 }).map(items => new Set(items)),
    fc.tuple(fc.array(tie('graph'), { maxLength: 3 }), key, tie('graph')).map(([array, name, value]) =>
      // A named property; not an index, and not the length.
      /^\d+$|^length$/.test(name) ? array : Object.defineProperty(array, name, plainProperty(value)),
    ),
    fc
      .tuple(fc.constantFrom(Error, TypeError, RangeError, SyntaxError, URIError), fc.string(), tie('graph'))
      .map(([Class, message, cause]) => new Class(message, { cause })),
  ),
}))

function plainProperty(value: unknown): PropertyDescriptor {
  return { value, writable: true, enumerable: true, configurable: true }
}

test('any value arrives as structured clone would copy it', () => {
  fc.assert(fc.property(graph, expectSame), { numRuns: 3000 })
})

test('shared parts stay shared, and cycles stay cycles', () => {
  const knots = fc.tuple(
    fc.array(graph, { minLength: 1, maxLength: 5 }),
    fc.array(fc.nat(), { maxLength: 8 }),
  )
  fc.assert(
    fc.property(knots, ([parts, picks]) => {
      const whole: Record<string, unknown> = { parts }
      const objects = [whole, parts, ...parts.filter(part => typeof part === 'object' && part !== null)]
      for (const [index, pick] of picks.entries()) whole[`link${index}`] = objects[pick % objects.length]
      for (const part of objects) {
        if (part instanceof Map) part.set(part, whole)
        else if (part instanceof Set) part.add(whole)
        else if (part instanceof Error) part.cause = whole
        else if (Object.getPrototypeOf(part) === Object.prototype)
          (part as Record<string, unknown>).whole = whole
      }
      expectSame(whole)
    }),
    { numRuns: 1000 },
  )
})

test('views of one buffer arrive as views of one buffer', () => {
  const buffer = new ArrayBuffer(1024)
  const [bytes, words, same] = travel([
    new Uint8Array(buffer, 4, 16),
    new Float64Array(buffer),
    buffer,
  ] as const)
  expect(bytes.buffer).toBe(words.buffer)
  expect(same).toBe(words.buffer)
  bytes[4] = 7
  expect(new Uint8Array(words.buffer)[8]).toBe(7)
})

test('every kind of view arrives as that kind, empty ones and Float16Array included', () => {
  const names = [
    'Int8',
    'Uint8',
    'Uint8Clamped',
    'Int16',
    'Uint16',
    'Int32',
    'Uint32',
    'Float32',
    'Float64',
    'Float16',
  ]
  for (const name of [...names, 'BigInt64', 'BigUint64']) {
    const View = (globalThis as unknown as Record<string, Uint8ArrayConstructor | undefined>)[`${name}Array`]
    if (View === undefined) continue
    for (const length of [0, 1, 300]) expectSame(new View(length))
  }
  expectSame(new DataView(new ArrayBuffer(0)))
  expectSame(Buffer.from('a pooled buffer keeps its offset'))
})

test('a resizable buffer stays resizable, and a view that follows it still does', () => {
  for (const [length, max] of [
    [8, 64],
    [8, 8],
    [1024, 4096],
  ]) {
    const buffer = new ArrayBuffer(length, { maxByteLength: max })
    new Uint8Array(buffer).set(Array.from({ length }, (_, index) => index))
    const views = [
      new Uint8Array(buffer),
      new Uint8Array(buffer, 0, length),
      new Int32Array(buffer, 4),
      new Int32Array(buffer, length - 4, 1),
      new DataView(buffer),
      new DataView(buffer, 2, 3),
    ]
    expectSame(views)
    const lengths = (all: readonly ArrayBufferView[]): number[] => {
      ;(all[0].buffer as ArrayBuffer).resize(length - 4)
      ;(all[0].buffer as ArrayBuffer).resize(length)
      ;(all[0].buffer as ArrayBuffer).resize(Math.min(max, length + 4))
      return all.map(view => view.byteLength)
    }
    expect(lengths(travel(views))).toEqual(lengths(structuredClone(views)))
    expect([...new Uint8Array(buffer)]).toEqual(Array.from({ length }, (_, index) => index & 255))
  }
})

test('the internal slots decide the kind of an object, not its own claims', () => {
  class Point {
    x = 1
    #hidden = 2
    get sum(): number {
      return this.x + this.#hidden
    }
  }
  class OrderedMap extends Map<string, number> {}
  const cases: unknown[] = [
    new Point(),
    Object.create(null, { a: plainProperty(1) }),
    Object.create(Date.prototype),
    Object.create(Map.prototype),
    Object.create(Error.prototype),
    Object.setPrototypeOf(new Map([[1, 2]]), Point.prototype) instanceof Map,
    new OrderedMap([['a', 1]]),
    { [Symbol.toStringTag]: 'Map', a: 1 },
    { toJSON: undefined, hasOwnProperty: 1 },
    Math,
    Object.defineProperty({ a: 1 }, 'b', { value: 2, enumerable: false }),
    { [Symbol('s')]: 1, visible: 2 },
    /x/.exec('axb'),
    'x'.repeat(100).match(/x/g),
    new Error(),
    Object.freeze([1, { a: 1 }]),
  ]
  for (const value of cases) expectSame(value)
  expectSame(
    runInNewContext('[new Map([[1, new Set([2])]]), new Date(3), /x/g, new Uint8Array(4), {a: [1.5]}]'),
  )
})

test('getters are called once, in order, and properties that they delete are left out', () => {
  const make = () => {
    const calls: string[] = []
    const value = {
      get a() {
        calls.push('a')
        delete (value as { c?: number }).c
        return 1
      },
      get b() {
        calls.push('b')
        return 2
      },
      c: 3,
      d: undefined,
    }
    return { value, calls }
  }
  const here = make()
  const there = make()
  expect(isDeepStrictEqual(travel(here.value), structuredClone(there.value))).toBe(true)
  expect(here.calls).toEqual(['a', 'b'])
})

test('a getter may send a payload of its own', () => {
  const value = {
    before: 'b',
    get inner() {
      return travel({ deep: [1, 'two'] })
    },
    after: [3],
  }
  expect(travel(value)).toEqual({ before: 'b', inner: { deep: [1, 'two'] }, after: [3] })
})

test('long strings, long arrays and large objects arrive whole', () => {
  expectSame('x'.repeat(1_000_003))
  expectSame(`${'ü'.repeat(100_001)}€`)
  expectSame(Array.from({ length: 50_000 }, (_, index) => (index % 3 === 0 ? 'three' : index / 7)))
  expectSame(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`key ${index}`, { index }])))
  expectSame(Array.from({ length: 3_000 }, (_, index) => ({ id: index, name: `n${index}`, ok: true })))
  const sparse: number[] = []
  sparse[4_000_000_000] = 1
  const arrived = travel(sparse)
  expect(arrived.length).toBe(4_000_000_001)
  expect(Object.keys(arrived)).toEqual(['4000000000'])
})
