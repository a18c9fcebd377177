/** Frames as data: hand-written movable functions, packed and continued elsewhere. */
import { expect, test } from 'vitest'
import { renamed, sealed } from '../../../testing/payload/images.ts'
import { payloadArena } from '../../../testing/payload/setup.ts'
import { imageFromBytes, imageToBytes, modulesOfBytes } from '../../payload/imagebytes.ts'
import { ImageError } from '../../payload/imagekinds.ts'
import { UntravelableError } from '../../payload/untravelable.ts'
import { type Coroutine, continued } from './coroutine.ts'
import { frames, type Reenter, save, take } from './frames.ts'
import { CodeChangedError, moduleLoaded, ModuleMissingError, registerMovable } from './movable.ts'
import { stamp } from './stamps.ts'
import { obstacleOf, packFrames, unpackFrames, changesAround, PackedFrames } from './packedframes.ts'

const module = 'test/hand.ts'
const url = import.meta.url

/** Stops once at each place, and returns what it holds at the end. */
function second(this: any, place: number, values: unknown[]): unknown {
  const given = take()
  if (place < 3) {
    frames.u = 1
    return save(this, place + 1, values, null)
  }
  return { self: this, values, given }
}

class Point {
  x: number
  constructor(x: number) {
    this.x = x
  }
  double(): number {
    return this.x * 2
  }
}

class Tagged extends Map<string, unknown> {
  tag = 'tagged'
}

function helper(): string {
  return 'helped'
}

function counter(box: { v: number }, shared: object): () => number {
  return stamp(
    Object.assign(() => (box.v += shared === null ? 0 : 1), {}),
    [counter, box, shared],
  )
}

registerMovable(module, url, [
  { key: 'second', hash: 'h1', reenter: second as Reenter, slots: ['rows', 'onDone', 'rest'] },
  { key: 'Point', hash: '', value: () => Point },
  { key: 'Tagged', hash: '', value: () => Tagged },
  { key: 'helper', hash: '', value: () => helper },
  { key: 'second.counter', hash: 'c1', make: counter },
])

function stopped(values: unknown[], self?: unknown): Coroutine {
  return continued([{ reenter: second as Reenter, place: 1, self, values }], false)
}

const { codecs, heap } = payloadArena({ bytes: 4 << 20, threads: 2 })

/** Continues after a move, through the arena and as bytes: both results. */
function moved(coroutine: Coroutine): any[] {
  expect(obstacleOf(coroutine)).toBeNull()
  const word = codecs[0].encodeImage(packFrames(coroutine), 'frames')
  expect(codecs[1].modulesOfImage(word)[0]).toEqual({ key: module, url })
  const far = unpackFrames(codecs[1].decodeImage(word))
  codecs[1].free(word)
  expect(heap.usedBlocks()).toBe(0)
  const bytes = imageToBytes(packFrames(coroutine), 'frames')
  expect(modulesOfBytes(bytes)[0]).toEqual({ key: module, url })
  return [far, unpackFrames(imageFromBytes(bytes))].map(one => {
    while (!one.resume('sent'));
    expect(one.state).toBe('returned')
    return one.result
  })
}

test('frames continue at their place, with their values and this', () => {
  for (const { self, values, given } of moved(stopped([1, 'two', [3.5]], { name: 'self' }))) {
    expect(values).toEqual([1, 'two', [3.5]])
    expect(self).toEqual({ name: 'self' })
    expect(given).toBe('sent')
  }
})

test('an object that two frames share stays one, and a cycle stays a cycle', () => {
  const shared: Record<string, unknown> = { name: 'shared' }
  shared.self = shared
  const coroutine = continued(
    [
      { reenter: second as Reenter, place: 3, self: shared, values: [shared] },
      { reenter: second as Reenter, place: 3, self: undefined, values: [[shared]] },
    ],
    false,
  )
  const packed = imageFromBytes(imageToBytes(packFrames(coroutine), 'frames')) as any
  const [inner, outer] = packed.frames
  expect(inner.self).toBe(inner.values[0])
  expect(outer.values[0][0]).toBe(inner.self)
  expect(inner.self.self).toBe(inner.self)
})

test('classes, functions and built-ins are found by name', () => {
  const point = new Point(4)
  const tagged = new Tagged([['p', point]])
  for (const { values } of moved(stopped([point, tagged, helper, Math.floor, Array.prototype.push, Point]))) {
    const [arrived, map, fn, floor, push, Class] = values
    expect(arrived).toBeInstanceOf(Point)
    expect(arrived).not.toBe(point)
    expect(arrived.double()).toBe(8)
    expect(map).toBeInstanceOf(Tagged)
    expect(map.tag).toBe('tagged')
    expect(map.get('p')).toBe(arrived)
    expect([fn, floor, push, Class]).toEqual([helper, Math.floor, Array.prototype.push, Point])
  }
})

test('closures share their boxes after the move, also where a captured object contains the closure', () => {
  const box = { v: 1 }
  const owner: Record<string, unknown> = {}
  const first = counter(box, owner)
  const other = counter(box, owner)
  owner.first = first
  for (const { values } of moved(stopped([first, [other], box]))) {
    const [one, [two], kept] = values
    expect(one()).toBe(2)
    expect(two()).toBe(3)
    expect(kept).toEqual({ v: 3 })
    expect(box.v).toBe(1)
    const image = imageFromBytes(imageToBytes(one, 'closure')) as () => number
    expect(image()).toBe(4)
  }
  expect(owner.first).toBe(first)
})

test('exact copies: flags, accessors, symbols, prototypes, frozen objects, lastIndex, arguments', () => {
  const odd = Object.defineProperty({ [Symbol.iterator]: helper, a: 1 }, 'hidden', { value: 2 })
  const bare = Object.assign(Object.create(null), { b: 1 })
  const expression = /a/g
  expression.lastIndex = 3
  function list(..._all: unknown[]): IArguments {
    return arguments
  }
  const values = [odd, bare, Object.freeze([1, { c: 1 }]), expression, list(1, 'x'), Symbol.for('k'), -0, 5n]
  for (const { values: arrived } of moved(stopped(values))) {
    expect(Object.getOwnPropertyDescriptor(arrived[0], 'hidden')).toEqual({
      value: 2,
      writable: false,
      enumerable: false,
      configurable: false,
    })
    expect(arrived[0][Symbol.iterator]).toBe(helper)
    expect(Object.getPrototypeOf(arrived[1])).toBeNull()
    expect(Object.isFrozen(arrived[2])).toBe(true)
    expect(arrived[3].lastIndex).toBe(3)
    expect([Object.prototype.toString.call(arrived[4]), ...arrived[4]]).toEqual([
      '[object Arguments]',
      1,
      'x',
    ])
    expect(arrived.slice(5)).toEqual([Symbol.for('k'), -0, 5n])
  }
})

test('a linked list of any length travels', () => {
  let list: { next: unknown } | null = null
  for (let length = 0; length < 20_000; length++) list = { next: list }
  const image = imageToBytes(packFrames(stopped([list])), 'frames')
  let length = 0
  for (let at = (imageFromBytes(image) as any).frames[0].values[0]; at !== null; at = at.next) length++
  expect(length).toBe(20_000)
})

test('a value that cannot travel is refused with its path, and nothing changes', () => {
  const coroutine = stopped([[], { deep: [new WeakMap()] }, 0])
  const before = packFrames(coroutine)
  for (const encode of [
    () => codecs[0].encodeImage(packFrames(coroutine), 'frames'),
    () => imageToBytes({ frames: packFrames(coroutine) }, ''),
  ]) {
    expect(encode).toThrow(UntravelableError)
    expect(encode).toThrow('frames[0].values.onDone.deep[0]: a WeakMap cannot travel')
  }
  expect(heap.usedBlocks()).toBe(0)
  expect(packFrames(coroutine)).toEqual(before)
  class Unknown {
    field = 1
  }
  expect(() => imageToBytes(packFrames(stopped([new Unknown()])), 'frames')).toThrow(
    'frames[0].values.rows: an Unknown cannot travel',
  )
  expect(() => imageToBytes(packFrames(stopped([() => 1])), 'frames')).toThrow("'use task movable'")
  expect(() => imageToBytes(packFrames(stopped([Symbol('own')])), 'frames')).toThrow('the symbol own')
  expect(() => imageToBytes(packFrames(stopped([new SharedArrayBuffer(8)])), 'frames')).toThrow(
    'frames[0].values.rows: a SharedArrayBuffer is memory of this process',
  )
})

test('a changed body is an error that names the function; so are a missing module and a missing function', () => {
  const image = imageToBytes(packFrames(stopped([1])), 'frames')
  const word = codecs[0].encodeImage(packFrames(stopped([counter({ v: 0 }, {})])), 'frames')
  registerMovable(module, url, [{ key: 'second', hash: 'h2', reenter: second as Reenter }])
  for (const decode of [() => imageFromBytes(image), () => codecs[1].decodeImage(word)]) {
    expect(decode).toThrow(CodeChangedError)
    expect(decode).toThrow(`${module}: the body of second has changed (h1 made the task, here it is h2)`)
  }
  codecs[0].free(word)
  // Another copy of the module, with the body that made the task.
  registerMovable(module, `${url}?2`, [
    { key: 'second', hash: 'h1', reenter: Object.assign((...all: any[]) => (second as any)(...all), {}) },
  ])
  expect(() => imageFromBytes(image)).not.toThrow()
  registerMovable(module, url, [
    { key: 'second', hash: 'h1', reenter: second as Reenter, slots: ['rows', 'onDone', 'rest'] },
  ])
  const elsewhere: Reenter = () => 0
  registerMovable('test/gone.ts', url, [{ key: 'gone', hash: 'g', reenter: elsewhere }])
  const gone = imageToBytes(
    packFrames(continued([{ reenter: elsewhere, place: 0, self: 0, values: [] }], true)),
    'frames',
  )
  const missing = renamed(gone, 'test/gone.ts', 'test/lost.ts')
  expect(() => imageFromBytes(missing)).toThrow(ModuleMissingError)
  expect(() => imageFromBytes(missing)).toThrow('the task needs the module test/lost.ts')
})

test('an obstacle is named: a function that is not movable, a coroutine that has not unwound', () => {
  const plain = { walk: (() => 0) as Reenter }.walk
  expect(obstacleOf(continued([{ reenter: plain, place: 0, self: 0, values: [] }], false))).toBe(
    'walk is on its stack, and is not movable',
  )
  expect(() => packFrames(continued([{ reenter: plain, place: 0, self: 0, values: [] }], false))).toThrow(
    'walk',
  )
})

function rich(): Uint8Array {
  const box = { v: 1 }
  const values = [
    new Map<unknown, unknown>([[{ k: 1 }, new Set([1, 'two'])]]),
    [
      new Point(1),
      counter(box, [box]),
      new Float64Array([1.5, 2]),
      new Uint8Array(1000),
      'text',
      'ünïcode €',
    ],
    [/a/g, new Date(5), new RangeError('x', { cause: [1] }), 10n ** 30n, Object.freeze({ a: [1.5, 2] })],
  ]
  return imageToBytes(packFrames(stopped(values)), 'frames')
}

test('a truncated or changed image is an error', () => {
  const image = rich()
  for (let length = 0; length < image.length; length++) {
    expect(() => imageFromBytes(image.slice(0, length))).toThrow(ImageError)
  }
  for (let at = 0; at < image.length; at++) {
    const changed = image.slice()
    changed[at] ^= 0x41
    expect(() => imageFromBytes(changed)).toThrow(ImageError)
  }
  const newer = image.slice()
  newer[3] = '2'.charCodeAt(0)
  expect(() => imageFromBytes(newer)).toThrow('version 2')
})

test('an image that was changed on purpose, with right checksums, is an error or harmless, and never hangs', () => {
  const image = rich()
  let errors = 0
  for (let at = 16; at < image.length - 1100; at++) {
    for (const change of [0x01, 0x80, 0xff]) {
      const changed = image.slice()
      changed[at] ^= change
      try {
        imageFromBytes(sealed(changed))
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
        expect(['ImageError', 'CodeChangedError', 'ModuleMissingError']).toContain((error as Error).name)
        errors++
      }
    }
  }
  expect(errors).toBeGreaterThan(500)
})

/** A module whose variables are the properties of an object; loaded. */
function loaded<T extends object>(key: string, all: T, imports: string[] = [], awaitsEnd = false): T {
  const reenter: Reenter = () => 0
  registerMovable(key, key, [{ key: 'run', hash: 'r', reenter, slots: ['held'] }], {
    all: Object.assign(all, { reenter }),
    imports,
    hash: 'm1',
    awaitsEnd,
  })
  moduleLoaded(key, key)
  return all
}

function holding(all: object, ...values: unknown[]): PackedFrames {
  const { reenter } = all as { reenter: Reenter }
  return packFrames(continued([{ reenter, place: 0, self: undefined, values }], false))
}

const valuesOf = (image: Uint8Array): any => (imageFromBytes(image) as PackedFrames).frames[0].values

test('what a module holds when it has been loaded travels by name, whatever happens to it later', () => {
  const deep = { leaf: true }
  const kind = Symbol('kind')
  const all = loaded('held/all', {
    types: { num: new Point(1), 'odd name': [deep] },
    byName: new Map<string, unknown>([['first', { a: 1 }]]),
    byObject: new Map<unknown, unknown>([[{ key: 1 }, new Set([{ b: 2 }])]]),
    memory: new WeakMap(),
    proxy: new Proxy({}, {}),
    kind,
    base: Object.create({ proto: true }) as object,
    twoViews: new Uint8Array(new Float64Array(1).buffer),
  })
  const parts = [
    all.types,
    all.types.num,
    deep,
    all.byName.get('first'),
    [...all.byObject][0][0],
    [...([...all.byObject][0][1] as Set<unknown>)][0],
    all.memory,
    all.proxy,
    kind,
    Object.getPrototypeOf(all.base),
    all.twoViews.buffer,
    Object.assign(Object.create(all.base), { own: 1 }),
  ]
  const image = imageToBytes(holding(all, ...parts), 'frames')
  // What the program changes afterwards has no effect on names.
  all.byName.clear()
  all.types['odd name'].unshift({ other: true } as never)
  for (const bytes of [image, imageToBytes(holding(all, ...parts), 'frames')]) {
    const arrived = valuesOf(bytes)
    for (let at = 0; at < parts.length - 1; at++) expect(arrived[at] === parts[at], `part ${at}`).toBe(true)
    expect(Object.getPrototypeOf(arrived.at(-1))).toBe(all.base)
  }
  const word = codecs[0].encodeImage(holding(all, deep), 'frames')
  expect((codecs[1].decodeImage(word) as PackedFrames).frames[0].values[0]).toBe(deep)
  codecs[0].free(word)
})

test('what a module got later does not travel: a copy would be a second one', () => {
  const list: unknown[] = []
  const all = loaded('held/later', { list, cache: new Map<string, unknown>(), last: null as unknown })
  const entry = { id: 1 }
  expect(() => imageToBytes(holding(all, { entry }), '')).not.toThrow()
  list.push({ inside: entry })
  const text = `held.entry: this object that list[0].inside of held/later holds cannot travel`
  expect(() => imageToBytes({ frames: holding(all, { entry }) }, '')).toThrow(`frames[0].values.${text}`)
  expect(() => imageToBytes({ frames: holding(all, { entry }) }, '')).toThrow('after it was loaded')
  list.pop()
  expect(valuesOf(imageToBytes(holding(all, { entry }), ''))[0]).toEqual({ entry })
  for (const hold of [
    () => void (all.last = entry),
    () => void all.cache.set('k', [entry]),
    () => void Object.assign(helper, { last: entry }) as never,
  ].slice(0, 2)) {
    hold()
    expect(() => imageToBytes(holding(all, [entry]), '')).toThrow('of held/later holds cannot travel')
    all.last = null
    all.cache.clear()
  }
  const closure = counter({ v: 0 }, {})
  all.last = closure
  expect(() => imageToBytes(holding(all, closure), '')).toThrow('last of held/later holds')
  // The modules that a module on the stack imports are looked through too.
  const importer = loaded('held/importer', { list, other: 1 }, ['list'])
  list.push(entry)
  expect(() => imageToBytes(holding(importer, entry), '')).toThrow('list[0] of held/later holds')
})

test('an import from a module that is not movable has the names of properties, and none of positions', () => {
  const plain = { config: { port: 1 }, rows: [{ id: 1 }] }
  const all = loaded('held/imports', { plain, own: 1 }, ['plain'])
  expect(valuesOf(imageToBytes(holding(all, plain.config), ''))[0]).toBe(plain.config)
  expect(() => imageToBytes(holding(all, plain.rows[0]), '')).toThrow(
    "plain.rows[0] of held/imports holds cannot travel to another thread; it is imported from a module without 'use task movable'",
  )
})

test('a module that holds too many objects is an obstacle for its tasks', () => {
  const all = loaded('held/large', { rows: Array.from({ length: 60_000 }, (_, id) => ({ id })) })
  expect(() => imageToBytes(holding(all, 1, 'text', all.rows), '')).not.toThrow()
  expect(() => imageToBytes(holding(all, all.rows[59_999]), '')).toThrow('held/large')
  let list: { next: unknown } | null = null
  for (let length = 0; length < 200; length++) list = { next: list }
  const deep = loaded('held/deep', { list })
  expect(() => imageToBytes(holding(deep, {}), '')).toThrow('held/deep holds cannot travel')
})

test('a name with a position needs the same code of the module; any name needs the same kind', () => {
  const all = loaded('held/first', { rules: [{ a: 1 }], named: { one: new Point(1) } })
  const byPosition = imageToBytes(holding(all, all.rules[0]), '')
  const byProperty = imageToBytes(holding(all, all.named.one), '')
  const other = { rules: [{ a: 2 }], named: { one: new Point(2) }, reenter: (all as any).reenter }
  registerMovable('held/other', 'held/other', [{ key: 'run', hash: 'r', reenter: other.reenter }], {
    all: other,
    imports: [],
    hash: 'm2',
    awaitsEnd: false,
  })
  moduleLoaded('held/other', 'held/other')
  expect(() => imageFromBytes(renamed(byPosition, 'held/first', 'held/other'))).toThrow(
    'held/other: rules[0] is no longer the same object there',
  )
  const arrived = valuesOf(renamed(byProperty, 'held/first', 'held/other'))
  expect(arrived[0] === other.named.one).toBe(true)
})

test('memory that threads share keeps its own identity', () => {
  const shared = new SharedArrayBuffer(8)
  const all = loaded('held/shared', { shared, view: new Int32Array(shared) })
  const word = codecs[0].encodeImage(holding(all, all.view), 'frames')
  const view = (codecs[1].decodeImage(word) as PackedFrames).frames[0].values[0] as Int32Array
  expect(view === all.view).toBe(false)
  expect(view.buffer).toBe(shared)
  codecs[0].free(word)
})

test('the state of modules that has changed since they were loaded is named, for debug mode', () => {
  const all = loaded('held/changed', {
    count: 0,
    state: { at: 0, deep: { n: 1 } },
    same: { x: 1 },
    list: [1],
  })
  expect(changesAround(holding(all))).toEqual([])
  all.count++
  all.state.deep.n++
  all.list.push(2)
  expect(changesAround(holding(all))).toEqual([
    'count of held/changed',
    'list of held/changed',
    'state.deep of held/changed',
  ])
})

test('a regular expression of a module keeps its position, and the others there begin at 0', () => {
  const all = loaded('held/search1', { word: /\w/g, sticky: /x/y, plain: /x/ })
  const there = loaded('held/search2', { word: /\w/g, sticky: /x/y, plain: /x/ })
  all.word.lastIndex = 3
  there.sticky.lastIndex = 7
  const image = renamed(imageToBytes(holding(all, 1), ''), 'held/search1', 'held/search2')
  unpackFrames(imageFromBytes(image))
  expect([there.word.lastIndex, there.sticky.lastIndex]).toEqual([3, 0])
  expect(all.word.lastIndex).toBe(3)
})
