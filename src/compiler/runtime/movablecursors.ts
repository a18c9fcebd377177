/**
 * Iteration in functions that can move: over arrays, typed arrays, strings, Maps and Sets at a position that
 * can be written, and over any iterator that can itself travel.
 *
 * The position in a Map or Set is the number of entries before the next one. The engine's iterator does not
 * tell it, so it is asked for the next entry, and a new iterator takes its place just before that entry. A
 * program cannot observe this.
 */
import { registerMovable } from '../../coroutine/core/movable.ts'
import { registerImageKind } from '../../payload/imagekinds.ts'
import { inspectors } from './builtins/inspectors.ts'
import { type Cursor, cursor, IteratorCursor, KeyCursor } from './cursor.ts'

const typedPrototype = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array
const native = {
  arrayValues: Array.prototype.values as unknown,
  arrayKeys: Array.prototype.keys as unknown,
  arrayEntries: Array.prototype.entries as unknown,
  typedValues: typedPrototype.values as unknown,
  typedKeys: typedPrototype.keys as unknown,
  typedEntries: typedPrototype.entries as unknown,
  mapKeys: Map.prototype.keys as unknown,
  mapValues: Map.prototype.values as unknown,
  mapEntries: Map.prototype.entries as unknown,
  setValues: Set.prototype.values as unknown,
  setEntries: Set.prototype.entries as unknown,
  string: String.prototype[Symbol.iterator] as unknown,
}

const iteratorPrototypes = {
  array: Object.getPrototypeOf([][Symbol.iterator]()) as object,
  map: Object.getPrototypeOf(new Map().entries()) as object,
  set: Object.getPrototypeOf(new Set().values()) as object,
  string: Object.getPrototypeOf(''[Symbol.iterator]()) as object,
}
const nexts = {
  array: (iteratorPrototypes.array as Iterator<unknown>).next as unknown,
  map: (iteratorPrototypes.map as Iterator<unknown>).next as unknown,
  set: (iteratorPrototypes.set as Iterator<unknown>).next as unknown,
  string: (iteratorPrototypes.string as Iterator<unknown>).next as unknown,
}

type Family = keyof typeof nexts

/** Where an iteration is: the next step, or the end. */
abstract class Position {
  protected source: any
  /** 0: keys, 1: values, 2: entries. */
  protected form: number
  protected isDone = false

  constructor(source: unknown, form: number) {
    this.source = source
    this.form = form
  }

  /** The next value in `value`; false at the end. */
  abstract step(): boolean
  value: any = undefined
  /** The number of steps, units or entries before the next. */
  abstract index(): number
  abstract moveTo(index: number): void

  parts(): unknown[] {
    return [this.source, this.form, this.isDone, this.isDone ? 0 : this.index(), this.value]
  }

  fill([source, form, isDone, index, value]: readonly unknown[]): void {
    this.source = source
    this.form = form as number
    this.isDone = isDone === true
    this.value = value
    this.#arrivedAt = Number(index)
  }

  #arrivedAt = 0

  settle(): void {
    this.moveTo(this.#arrivedAt)
  }
}

/** Over an array or a typed array. */
class ListPosition extends Position {
  #at = 0

  step(): boolean {
    if (this.isDone) return false
    const { source, form } = this
    const at = this.#at
    if (at >= source.length) {
      this.isDone = true
      return false
    }
    this.#at = at + 1
    this.value = form === 1 ? source[at] : form === 0 ? at : [at, source[at]]
    return true
  }

  index(): number {
    return this.#at
  }

  moveTo(index: number): void {
    this.#at = index
  }
}

class StringPosition extends Position {
  #at = 0

  step(): boolean {
    const text = this.source as string
    if (this.#at >= text.length) return false
    this.value = String.fromCodePoint(text.codePointAt(this.#at)!)
    this.#at += (this.value as string).length
    return true
  }

  index(): number {
    return this.#at
  }

  moveTo(index: number): void {
    this.#at = index
  }
}

const mapEntries = Map.prototype.entries
const setValues = Set.prototype.values
const mapSize = Object.getOwnPropertyDescriptor(Map.prototype, 'size')!.get!
const setSize = Object.getOwnPropertyDescriptor(Set.prototype, 'size')!.get!
const mapNext = nexts.map as () => IteratorResult<[unknown, unknown]>
const setNext = nexts.set as () => IteratorResult<unknown>

class MapPosition extends Position {
  #iterator: Iterator<[unknown, unknown]> | null = null

  step(): boolean {
    if (this.isDone) return false
    this.#iterator ??= mapEntries.call(this.source)
    const { done, value } = mapNext.call(this.#iterator)
    if (done) {
      this.isDone = true
      return false
    }
    this.value = this.form === 2 ? value : value[this.form]
    return true
  }

  index(): number {
    if (this.#iterator === null) return 0
    const { done, value } = mapNext.call(this.#iterator)
    let index = mapSize.call(this.source) as number
    if (!done) {
      index = 0
      const from = mapEntries.call(this.source)
      while (!Object.is(mapNext.call(from).value[0], value[0])) index++
    }
    this.moveTo(index)
    return index
  }

  moveTo(index: number): void {
    this.#iterator = mapEntries.call(this.source)
    const end = Math.min(index, mapSize.call(this.source) as number)
    for (let at = 0; at < end; at++) mapNext.call(this.#iterator)
  }
}

class SetPosition extends Position {
  #iterator: Iterator<unknown> | null = null

  step(): boolean {
    if (this.isDone) return false
    this.#iterator ??= setValues.call(this.source)
    const { done, value } = setNext.call(this.#iterator)
    if (done) {
      this.isDone = true
      return false
    }
    this.value = this.form === 2 ? [value, value] : value
    return true
  }

  index(): number {
    if (this.#iterator === null) return 0
    const { done, value } = setNext.call(this.#iterator)
    let index = setSize.call(this.source) as number
    if (!done) {
      index = 0
      const from = setValues.call(this.source)
      while (!Object.is(setNext.call(from).value, value)) index++
    }
    this.moveTo(index)
    return index
  }

  moveTo(index: number): void {
    this.#iterator = setValues.call(this.source)
    const end = Math.min(index, setSize.call(this.source) as number)
    for (let at = 0; at < end; at++) setNext.call(this.#iterator)
  }
}

const positions = { array: ListPosition, map: MapPosition, set: SetPosition, string: StringPosition }

/** The family and form of a built-in iterator method that was called on this object, or null. */
function familyOf(source: unknown, method: unknown): { family: Family; form: number } | null {
  const found = lookUp(source, method)
  if (found === null) return null
  // A program that replaces `next` sees its own calls.
  const { family } = found
  return (iteratorPrototypes[family] as Iterator<unknown>).next === nexts[family] ? found : null
}

function lookUp(source: unknown, method: unknown): { family: Family; form: number } | null {
  if (typeof source === 'string') return method === native.string ? { family: 'string', form: 1 } : null
  if (Array.isArray(source)) {
    if (method === native.arrayValues) return { family: 'array', form: 1 }
    if (method === native.arrayKeys) return { family: 'array', form: 0 }
    return method === native.arrayEntries ? { family: 'array', form: 2 } : null
  }
  if (source instanceof Map) {
    if (method === native.mapEntries) return { family: 'map', form: 2 }
    if (method === native.mapValues) return { family: 'map', form: 1 }
    return method === native.mapKeys ? { family: 'map', form: 0 } : null
  }
  if (source instanceof Set) {
    if (method === native.setValues) return { family: 'set', form: 1 }
    return method === native.setEntries ? { family: 'set', form: 2 } : null
  }
  if (ArrayBuffer.isView(source) && !(source instanceof DataView)) {
    if (method === native.typedValues) return { family: 'array', form: 1 }
    if (method === native.typedKeys) return { family: 'array', form: 0 }
    return method === native.typedEntries ? { family: 'array', form: 2 } : null
  }
  return null
}

/** The cursor of a loop over such a source. Nothing has to be closed. */
class PositionCursor implements Cursor {
  family: Family
  position: Position

  constructor(family: Family, source: unknown, form: number) {
    this.family = family
    this.position = new positions[family](source, form)
  }

  get value(): any {
    return this.position.value
  }

  step(): boolean {
    return this.position.step()
  }

  fail(): void {}

  close(): void {}
}

/** As `cursor`, in a function that can move. */
export function movableCursor(ok: unknown, iterable: any, message: string): Cursor | null {
  // A program may observe the read of `Symbol.iterator` of its own objects.
  const isOurs =
    typeof iterable === 'string' ||
    iterable instanceof Map ||
    iterable instanceof Set ||
    ArrayBuffer.isView(iterable)
  const found = isOurs ? familyOf(iterable, (iterable as any)[Symbol.iterator]) : null
  if (found === null) return cursor(ok, iterable, message)
  return new PositionCursor(found.family, iterable, found.form)
}

/** The cursor of a loop over `object.values()` and the like. */
export function cursorOf(ok: unknown, message: string, object: any, name: PropertyKey, text: string): Cursor {
  const method = object[name]
  if (typeof method !== 'function') throw new TypeError(`${text} is not a function`)
  const found = familyOf(object, method)
  if (found !== null) return new PositionCursor(found.family, object, found.form)
  const iterable = Reflect.apply(method, object, [])
  return cursor(ok, iterable, message) ?? new PositionCursor('array', iterable, 1)
}

/** An iterator that a program holds: like the engine's, but its position can be written. */
class MovableIterator {
  family: Family
  position: Position

  constructor(family: Family, source: unknown, form: number) {
    this.family = family
    this.position = new positions[family](source, form)
  }

  next(): IteratorResult<unknown> {
    return this.position.step()
      ? { value: this.position.value, done: false }
      : { value: undefined, done: true }
  }
}

// A loop over such an iterator holds its `next`.
registerMovable('heddle', 'heddle', [
  { key: 'iterator.next', hash: '', value: () => MovableIterator.prototype.next },
])

/** Objects of each family inherit from the engine's iterators: their tag, and `Symbol.iterator`. */
const iteratorClasses = Object.fromEntries(
  (Object.keys(nexts) as Family[]).map(family => {
    const prototype = Object.create(iteratorPrototypes[family]) as object
    Object.defineProperty(prototype, 'next', {
      value: MovableIterator.prototype.next,
      writable: true,
      configurable: true,
    })
    return [family, prototype]
  }),
) as Record<Family, object>

function makeIterator(family: Family, source: unknown, form: number): MovableIterator {
  const made = new MovableIterator(family, source, form)
  for (const key of Object.keys(made)) Object.defineProperty(made, key, { enumerable: false })
  return Object.setPrototypeOf(made, iteratorClasses[family]) as MovableIterator
}

/** `object.values()` and the like, in a function that can move. */
export function iteratorOf(object: any, name: PropertyKey, text: string): unknown {
  const method = object[name]
  if (typeof method !== 'function') throw new TypeError(`${text} is not a function`)
  const found = familyOf(object, method)
  return found === null ? Reflect.apply(method, object, []) : makeIterator(found.family, object, found.form)
}

/**
 * A `for…in` in a function that can move: its keys are listed first. A key that is deleted before its turn is
 * left out, as the language asks.
 */
class MovableKeys {
  value: string = ''
  object: object
  keys: string[] = []
  at = 0

  constructor(object: unknown) {
    this.object = object as object
    // oxlint-disable-next-line guard-for-in
    for (const key in this.object) this.keys.push(key)
  }

  step(): boolean {
    while (this.at < this.keys.length) {
      const key = this.keys[this.at++]
      if (!(key in Object(this.object))) continue
      this.value = key
      return true
    }
    return false
  }
}

registerImageKind<PositionCursor>(PositionCursor.prototype, {
  name: 'cursor',
  parts: ({ family, position }) => [family, ...position.parts()],
  create: () => Object.create(PositionCursor.prototype) as PositionCursor,
  fill: fillPosition,
  settle: ({ position }) => position.settle(),
})

for (const family of Object.keys(nexts) as Family[]) {
  registerImageKind<MovableIterator>(iteratorClasses[family], {
    name: `iterator of ${family}`,
    parts: ({ position }) => [family, ...position.parts()],
    create: () => makeIterator(family, undefined, 1),
    fill: fillPosition,
    settle: ({ position }) => position.settle(),
  })
}

function fillPosition(
  made: { family: Family; position: Position },
  [family, ...parts]: readonly unknown[],
): void {
  const Class = positions[family as Family]
  const [source] = parts
  const isRight =
    family === 'array'
      ? Array.isArray(source) || ArrayBuffer.isView(source)
      : family === 'map'
        ? source instanceof Map
        : family === 'set'
          ? source instanceof Set
          : family === 'string' && typeof source === 'string'
  if (Class === undefined || !isRight) throw new TypeError('an iterator without its source')
  made.family = family as Family
  made.position = new Class(undefined, 1)
  made.position.fill(parts)
}

/** The keys of a `for…in` in a function that can move. A Proxy sees each step, so its loop stays. */
export function movableKeys(object: unknown): MovableKeys | KeyCursor {
  return inspectors?.isProxy(object) === true ? new KeyCursor(object) : new MovableKeys(object)
}

registerImageKind<MovableKeys>(MovableKeys.prototype, {
  name: 'keys',
  parts: ({ value, object, keys, at }) => [value, object, keys, at],
  create: () => Object.create(MovableKeys.prototype) as MovableKeys,
  fill(made, [value, object, keys, at]) {
    if (typeof value !== 'string' || !Array.isArray(keys)) throw new TypeError('a loop without its keys')
    Object.assign(made, { value, object, keys, at: Number(at) })
  },
})

registerImageKind<IteratorCursor>(IteratorCursor.prototype, {
  name: 'iterator cursor',
  parts: cursor => cursor.parts(),
  create: () => IteratorCursor.empty(),
  fill: (cursor, parts) => cursor.fill(parts),
  steps: (_cursor, part) => [['iterator', 'next', 'isOpen', 'value'][part]],
})
