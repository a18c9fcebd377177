/** Frames as data: hand-written movable functions, packed and continued elsewhere. */
import { expect, test } from 'vitest'
import { payloadArena } from '../../../testing/payload/setup.ts'
import { imageFromBytes, imageToBytes, modulesOfBytes } from '../../payload/imagebytes.ts'
import { ImageError } from '../../payload/imagekinds.ts'
import { UntravelableError } from '../../payload/untravelable.ts'
import { type Coroutine, continued } from './coroutine.ts'
import { frames, type Reenter, save, take } from './frames.ts'
import { CodeChangedError, ModuleMissingError, registerMovable, stamp } from './movable.ts'
import { obstacleOf, packFrames, unpackFrames, copiesOfVariables, PackedFrames } from './packedframes.ts'

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

/** The image with another text of the same length, and right checksums. */
function renamed(image: Uint8Array, from: string, to: string): Uint8Array {
  const copy = image.slice()
  const text = Buffer.from(copy.buffer).toString('latin1')
  const at = text.indexOf(from)
  expect(at).toBeGreaterThan(0)
  copy.set(Buffer.from(to, 'latin1'), at)
  return sealed(copy)
}

/** Corrects the checksums, as an attacker would. */
function sealed(image: Uint8Array): Uint8Array {
  const i32 = new Int32Array(image.buffer)
  let first = 0x811c9dc5 | 0
  let second = 0x9e3779b9 | 0
  for (let at = 4; at < i32.length; at++) {
    first = Math.imul(first ^ i32[at], 0x01000193)
    first ^= first >>> 15
    second = (Math.imul(second, 0x85ebca6b) + i32[at]) | 0
    second ^= second >>> 13
  }
  i32[2] = first
  i32[3] = second
  return image
}

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

test('an object that a variable of a module holds too is named, for debug mode', () => {
  const held = { count: 1 }
  registerMovable('copies', 'copies', [], { held, other: 1 })
  const packed = new PackedFrames()
  packed.frames = [{ reenter: null, place: 0, self: undefined, values: [1, held, { count: 1 }] }]
  expect(copiesOfVariables(packed)).toEqual(['value 1 (the variable copies held)'])
})
