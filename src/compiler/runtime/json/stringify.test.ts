import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isBriefJson, partsOf } from './size.ts'
import { PartwiseWriter } from './stringify.ts'

type Write = (value: unknown, replacer: unknown, space: unknown) => unknown

const original: Write = (value, replacer, space) => JSON.stringify(value, replacer as never, space as never)

/** The writer in parts of `step` values; the original writes objects with up to `atOnce` properties. */
const inParts =
  (step: number, atOnce: number): Write =>
  (value, replacer, space) => {
    const writer = new PartwiseWriter(value, replacer, space, step, atOnce)
    let steps = 0
    while (!writer.advance()) expect(++steps).toBeLessThan(1_000_000)
    return writer.result
  }

/** The parts of a value. Each is recreated for each run, which may change it. */
type Tell = (text: string) => void
type Make = (log: Tell) => unknown

const leaf: fc.Arbitrary<Make> = fc.oneof(
  fc.constantFrom<Make>(
    () => undefined,
    () => () => 1,
    () => Symbol('s'),
    () => -0,
    () => Number.NaN,
    () => Number.POSITIVE_INFINITY,
    () => new Number(3),
    () => new String('box"ed'),
    () => new Boolean(false),
    () => Object(Symbol.iterator),
    () => new Date(86_400_000),
    () => new Date(Number.NaN),
    () => /x/,
    () => new Map([[1, 2]]),
    () => new Int8Array([1, 2]),
    () => 'lone \ud800 and "quoted" \n \u2028',
    log => ({
      valueOf: () => log('valueOf'),
      toString: () => log('toString'),
    }),
    log =>
      Object.assign(new Number(1), {
        valueOf() {
          log('number')
          return 7
        },
      }),
    () => Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { value: 3 } }),
  ),
  fc.jsonValue({ maxDepth: 2 }).map(value => () => structuredClone(value)),
)

const containers = (part: fc.Arbitrary<Make>): fc.Arbitrary<Make> =>
  fc.oneof(
    fc.array(part, { maxLength: 6 }).map(parts => (log: Tell) => parts.map(make => make(log))),
    fc.array(part, { maxLength: 4 }).map(parts => (log: Tell) => {
      const list = parts.map(make => make(log))
      list.length += 2
      return list
    }),
    fc
      .array(fc.tuple(fc.constantFrom('a', 'b', '1', '', 'toString', '__proto__', 'é"'), part), {
        maxLength: 5,
      })
      .map(entries => (log: Tell) => Object.fromEntries(entries.map(([key, make]) => [key, make(log)]))),
    fc.tuple(part, part).map(([make, other]) => (log: Tell) => ({
      first: make(log),
      get read() {
        log('getter')
        return other(log)
      },
    })),
    fc.tuple(part, fc.constantFrom('a', 'list')).map(([make, key]) => (log: Tell) => ({
      key,
      toJSON(this: unknown, name: string) {
        log(`toJSON ${name}`)
        return make(log)
      },
    })),
    part.map(make => (log: Tell) => {
      const traps: ProxyHandler<object> = {}
      for (const trap of ['get', 'ownKeys', 'getOwnPropertyDescriptor', 'has', 'getPrototypeOf'] as const) {
        traps[trap] = (...args: any[]) => {
          log(`${trap} ${String(args[1])}`)
          return (Reflect[trap] as (...all: unknown[]) => never)(...args)
        }
      }
      return new Proxy(Array.isArray(make) ? [make(log)] : { a: 1, inner: make(log) }, traps)
    }),
    part.map(make => (log: Tell) => {
      class Row {
        value = make(log)
      }
      return new Row()
    }),
  )

const value: fc.Arbitrary<Make> = fc.letrec<{ any: Make }>(tie => ({
  any: fc.oneof({ maxDepth: 4 }, leaf, containers(tie('any'))),
})).any

const replacer: fc.Arbitrary<Make> = fc.constantFrom<Make>(
  () => undefined,
  () => null,
  () => 5,
  () => ['a', 1, new String('first'), 'a', { toString: () => 'no' }, 'inner'],
  log => (key: string, part: unknown) => {
    log(`replacer ${key}`)
    return part
  },
  log =>
    function (this: any, key: string, part: unknown) {
      log(`${key} of ${Array.isArray(this) ? 'list' : typeof this}`)
      return key === 'b' ? undefined : typeof part === 'number' ? `n${part}` : part
    },
)

const space = fc.constantFrom<unknown>(
  undefined,
  '',
  0,
  1,
  2,
  12,
  -1,
  2.7,
  '\t',
  '--',
  '\n',
  'longer than ten',
  new Number(3),
  new String('ab'),
  true,
  {},
)

function run(write: Write, make: Make, replace: (log: Tell) => unknown, gap: unknown): unknown {
  const log: string[] = []
  const tell = (text: string): void => void log.push(text)
  try {
    return { text: write(make(tell), replace(tell), gap), log }
  } catch (error) {
    return { error: `${(error as Error).name}: ${(error as Error).message}`, log }
  }
}

test('writes like the original, and runs the same code in the same order', () => {
  fc.assert(
    fc.property(
      value,
      replacer,
      space,
      fc.constantFrom(1, 3, 1000),
      fc.constantFrom(0, 2, 5, 1000),
      (make, replace, gap, step, atOnce) => {
        expect(run(inParts(step, atOnce), make, replace, gap)).toEqual(run(original, make, replace, gap))
      },
    ),
    { numRuns: 1500 },
  )
})

test('refuses circular structures and bigints with the errors of the original', () => {
  class Ring {
    next: unknown = null
  }
  const cases: (() => unknown)[] = [
    () => 1n,
    () => ({ a: [1n] }),
    () => {
      const a: any = { list: [1, {}] }
      a.list[1].back = a
      return a
    },
    () => {
      const ring = new Ring()
      ring.next = [ring]
      return { outer: { ring } }
    },
    () => {
      const all = Array.from({ length: 6 }, () => new Ring())
      for (const [index, one] of all.entries()) one.next = all[(index + 1) % 6]
      return [0, all[0]]
    },
    () => {
      const self: any = Object.create(null)
      self.self = self
      return self
    },
  ]
  for (const make of cases) {
    for (const atOnce of [0, 1000]) {
      const expected = run(original, make, () => undefined, undefined)
      expect(expected).toHaveProperty('error')
      expect(run(inParts(1, atOnce), make, () => undefined, undefined)).toEqual(expected)
    }
  }
})

test('throws for an infinite structure', () => {
  const endless = {
    toJSON: () => ({ deeper: endless }),
  }
  expect(
    run(
      inParts(1000, 0),
      () => endless,
      () => undefined,
      undefined,
    ),
  ).toMatchObject({
    error: 'RangeError: Maximum call stack size exceeded',
  })
})

test('writes raw text if the engine supports it', () => {
  const { rawJSON } = JSON as { rawJSON?: (text: string) => object }
  if (rawJSON === undefined) return
  const make = (): unknown => ({ big: rawJSON('12345678901234567890'), list: [rawJSON('"x"')] })
  expect(inParts(1, 0)(make(), undefined, 2)).toBe(JSON.stringify(make(), null, 2))
})

test('ignores indices on prototypes', () => {
  const lists = Array.prototype
  Object.defineProperty(lists, 0, {
    set() {
      expect.unreachable()
    },
    configurable: true,
  })
  try {
    expect(inParts(1, 0)({ a: { b: { c: 1 } } }, undefined, '')).toBe('{"a":{"b":{"c":1}}}')
  } finally {
    delete lists[0]
  }
})

test('the size of a value is estimated without running code', () => {
  const row = { id: 1, list: [1, 2, { deep: null }] }
  expect(isBriefJson(row)).toBe(true)
  expect(isBriefJson(Array.from({ length: 500 }, () => row))).toBe(false)
  expect(isBriefJson({ rows: Array.from({ length: 1_500 }, () => 1) })).toBe(false)
  expect(isBriefJson({ text: 'x'.repeat(100_000) })).toBe(false)
  expect(isBriefJson('x'.repeat(1_000_000))).toBe(true)
  const untouched = new Proxy(
    {},
    { ownKeys: () => expect.unreachable(), getPrototypeOf: () => expect.unreachable() },
  )
  expect(isBriefJson(untouched)).toBe(false)
  const ring: Record<string, unknown> = {}
  ring.ring = ring
  expect(partsOf(ring, null)).toBe(0)
})
