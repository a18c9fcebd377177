/**
 * Models of the language's own functions over shared memory: one step for each element that they read or
 * write, in the order of the specification. A model calls callbacks through their twins, so they may take
 * steps too.
 *
 * A model is a generator: `(site, self, args)`. It is found in three ways: by the compiler, for a method of a
 * view that is called by its name (`modelled`); as the twin of a method of a proxy (views.ts); and as the
 * twin of a function that gets a view as an argument (twins.ts).
 */
import { generatorBody, generatorTwin, Out } from '../../compiler/runtime/generator.ts'
import { DATAVIEW_READ, DATAVIEW_WRITE, GROW } from '../machine/operations.ts'
import { refuseTornCopy } from './copies.ts'
import {
  type Stops,
  all,
  append,
  call,
  clamp,
  count,
  fill,
  get,
  lengthOf,
  like,
  put,
  reduce,
  search,
  sorted,
  truthy,
  whole,
} from './elementwise.ts'
import { isTyped, take } from './patterns.ts'
import { effect, isShared, op, pending, realOf } from '../machine/pending.ts'
import { listed, primitive } from './quiet.ts'
import {
  growing,
  guardMethods,
  isGuarded,
  isNativeMethod,
  kindOf,
  nativeMark,
  proxied,
  typedArrays,
  viewProxy,
} from '../machine/views.ts'

export type Model = (site: number, self: any, args: any[]) => Stops

const Shared = SharedArrayBuffer
const Typed: any = Object.getPrototypeOf(Int8Array)
const isBuffer = (x: unknown): boolean => isGuarded(x) && realOf(x as object) instanceof Shared

export const typed: Record<string, Model> = {
  *at(site, view, [index]) {
    const length = yield* count(site, view)
    const k = whole(index) < 0 ? length + whole(index) : whole(index)
    return k < 0 || k >= length ? undefined : yield* get(site, view, k)
  },
  *copyWithin(site, view, [target, start, end]) {
    refuseTornCopy(view, 'copyWithin()')
    const length = yield* count(site, view)
    const to = clamp(target, 0, length)
    const from = clamp(start, 0, length)
    const size = Math.min(clamp(end, length, length) - from, length - to)
    const backwards = from < to && to < from + size
    for (let turn = 0; turn < size; turn++) {
      const i = backwards ? size - 1 - turn : turn
      yield* put(site, view, to + i, yield* get(site, view, from + i))
    }
    return view
  },
  *fill(site, view, [value, start, end]) {
    const length = yield* count(site, view)
    const first = clamp(start, 0, length)
    const last = clamp(end, length, length)
    for (let i = first; i < last; i++) yield* put(site, view, i, value)
    return view
  },
  *set(site, view, [source, offset]) {
    const start = whole(offset)
    refuseTornCopy(view, 'set()', source)
    if (start < 0) throw new RangeError('offset is out of bounds')
    const length = isShared(view) ? yield* count(site, view) : view.length
    const shared = isTyped(source)
    const size = shared ? yield* count(site, source) : whole((source as ArrayLike<unknown>).length)
    if (start + size > length) throw new RangeError('offset is out of bounds')
    const same = shared && isShared(view) && realOf(source).buffer === realOf(view).buffer
    const before = same ? yield* all(site, source) : undefined
    for (let i = 0; i < size; i++) {
      const value = before !== undefined ? before[i] : shared ? yield* get(site, source, i) : source[i]
      if (isShared(view)) yield* put(site, view, start + i, value)
      else view[start + i] = value
    }
    if (!isShared(view)) effect()
    return undefined
  },
  *slice(site, view, [start, end]) {
    refuseTornCopy(view, 'slice()')
    const length = yield* count(site, view)
    const first = clamp(start, 0, length)
    const last = clamp(end, length, length)
    const values: any[] = []
    for (let i = first; i < last; i++) append(values, yield* get(site, view, i))
    return yield* fill(like(view, values.length), values)
  },
  *includes(site, view, [wanted, from]) {
    const length = yield* count(site, view)
    for (let i = clamp(from, 0, length); i < length; i++) {
      const value = yield* get(site, view, i)
      if (value === wanted || (value !== value && wanted !== wanted)) return true
    }
    return false
  },
  *indexOf(site, view, [wanted, from]) {
    const length = yield* count(site, view)
    for (let i = clamp(from, 0, length); i < length; i++) if ((yield* get(site, view, i)) === wanted) return i
    return -1
  },
  *lastIndexOf(site, view, args) {
    const length = yield* count(site, view)
    const from = args.length > 1 ? whole(args[1]) : length - 1
    for (let i = from < 0 ? length + from : Math.min(from, length - 1); i >= 0; i--) {
      if ((yield* get(site, view, i)) === args[0]) return i
    }
    return -1
  },
  /**
   * If the view tracks the length of its buffer, its length is read, and a subarray without an end tracks it
   * too.
   */
  *subarray(site, view, [start, end]) {
    if (growing(realOf(view)) === undefined)
      return proxied(Reflect.apply(Typed.prototype.subarray, realOf(view), [start, end]))
    const length = yield* count(site, view)
    const first = clamp(start, 0, length)
    const { constructor, buffer, byteOffset, BYTES_PER_ELEMENT } = view
    const offset = byteOffset + first * BYTES_PER_ELEMENT
    if (end === undefined) return new constructor(buffer, offset)
    return viewProxy(
      new typedArrays[kindOf(realOf(view))!]!(
        realOf(buffer),
        offset,
        Math.max(0, clamp(end, length, length) - first),
      ),
      false,
    )
  },
  *join(site, view, args) {
    return Reflect.apply(Array.prototype.join, yield* all(site, view), args)
  },
  *toString(site: number, view: any) {
    return Reflect.apply(Array.prototype.join, yield* all(site, view), [])
  },
  *toLocaleString(site: number, view: any, args: any[]) {
    return Reflect.apply(Array.prototype.toLocaleString, yield* all(site, view), args)
  },
  *reverse(site, view) {
    const length = yield* count(site, view)
    for (let low = 0, high = length - 1; low < high; low++, high--) {
      const [a, b] = [yield* get(site, view, low), yield* get(site, view, high)]
      yield* put(site, view, low, b)
      yield* put(site, view, high, a)
    }
    return view
  },
  *toReversed(site, view) {
    const values = yield* all(site, view)
    const made = new typedArrays[kindOf(realOf(view))!]!(values.length)
    return yield* fill(made, values.toReversed())
  },
  *sort(site, view, [order]) {
    const values = yield* sorted(yield* all(site, view), order, kindOf(realOf(view))!.startsWith('Big'))
    for (let i = 0; i < values.length; i++) yield* put(site, view, i, values[i])
    return view
  },
  *toSorted(site, view, [order]) {
    const values = yield* sorted(yield* all(site, view), order, kindOf(realOf(view))!.startsWith('Big'))
    return yield* fill(new typedArrays[kindOf(realOf(view))!]!(values.length), values)
  },
  *with(site, view, [index, value]) {
    const values = yield* all(site, view)
    const k = whole(index) < 0 ? values.length + whole(index) : whole(index)
    if (k < 0 || k >= values.length) throw new RangeError('Invalid typed array index')
    values[k] = value
    return yield* fill(new typedArrays[kindOf(realOf(view))!]!(values.length), values)
  },
  *forEach(site, view, args) {
    yield* search(site, view, args, true, () => false)
  },
  *some(site, view, args) {
    return (yield* search(site, view, args, true, truthy)) !== undefined
  },
  *every(site, view, args) {
    return (yield* search(site, view, args, true, answer => !truthy(answer))) === undefined
  },
  *find(site, view, args) {
    return (yield* search(site, view, args, true, truthy))?.[1]
  },
  *findIndex(site, view, args) {
    return (yield* search(site, view, args, true, truthy))?.[0] ?? -1
  },
  *findLast(site, view, args) {
    return (yield* search(site, view, args, false, truthy))?.[1]
  },
  *findLastIndex(site, view, args) {
    return (yield* search(site, view, args, false, truthy))?.[0] ?? -1
  },
  *map(site, view, args) {
    const length = yield* count(site, view)
    const made = like(view, length)
    for (let k = 0; k < length; k++) {
      const value = yield* call(args[0], args[1], yield* get(site, view, k), k, view)
      if (isShared(made)) yield* put(site, made, k, value)
      else made[k] = value
    }
    return made
  },
  *filter(site, view, args) {
    const length = yield* count(site, view)
    const kept: any[] = []
    for (let k = 0; k < length; k++) {
      const value = yield* get(site, view, k)
      if (yield* call(args[0], args[1], value, k, view)) append(kept, value)
    }
    return yield* fill(like(view, kept.length), kept)
  },
  *reduce(site, view, args) {
    return yield* reduce(site, view, args, true)
  },
  *reduceRight(site, view, args) {
    return yield* reduce(site, view, args, false)
  },
  // oxlint-disable-next-line require-yield
  *values(site, view) {
    return elements(site, view)
  },
  // oxlint-disable-next-line require-yield
  *entries(site, view) {
    return iterator(site, view, 'entries')
  },
  // oxlint-disable-next-line require-yield
  *keys(site, view) {
    return iterator(site, view, 'keys')
  },
}

typed['[Symbol.iterator]'] = typed['values']!

const buffers: Record<string, Model> = {
  *slice(site, buffer, [start, end]) {
    const real = realOf(buffer) as SharedArrayBuffer
    const length = (yield* lengthOf(site, buffer, 'byteLength')) as number
    const first = clamp(start, 0, length)
    const last = clamp(end, length, length)
    const bytes = new typedArrays['Uint8Array']!(real)
    const made = new SharedArrayBuffer(Math.max(0, last - first))
    const copy = new typedArrays['Uint8Array']!(realOf(made))
    for (let i = first; i < last; i++) copy[i - first] = yield* get(site, bytes, i)
    return made
  },
  *grow(site, buffer, [length]) {
    return yield op(GROW, site, buffer, undefined, length)
  },
}

const data = /^([gs]et)(?:Big)?(?:Int|Uint|Float)(?:8|16|32|64)$/

/** The model of a method, if it has one. */
function modelOf(self: unknown, name: string): Model | undefined {
  if (isShared(self)) {
    if (kindOf(realOf(self)) !== undefined) return Object.hasOwn(typed, name) ? typed[name] : undefined
    const found = data.exec(name)
    if (found === null) return undefined
    return found[1] === 'get'
      ? function* (site, view, [offset, little]) {
          return yield op(DATAVIEW_READ, site, view, offset, undefined, [name, little])
        }
      : function* (site, view, [offset, value, little]) {
          return yield op(DATAVIEW_WRITE, site, view, offset, value, [name, little])
        }
  }
  return isBuffer(self) && Object.hasOwn(buffers, name) ? buffers[name] : undefined
}

/** Whether a method of `self`, called by its name, takes steps of its own. Compiled code asks this. */
export function modelled(self: unknown, name: string): boolean {
  return (isShared(self) || isBuffer(self)) && modelOf(self, name) !== undefined
}

/** Calls a method for which `modelled` is true, or the method of a subclass that overrides it. */
export function* places(site: number, self: any, name: string, args: any[]): Stops {
  const method = self[name === '[Symbol.iterator]' ? Symbol.iterator : name]
  if (method?.[nativeMark] !== true && !isNativeMethod(method)) return yield* call(method, self, ...args)
  converts(args)
  return yield* modelOf(self, name)!(site, self, args)
}

/** The language converts the arguments of a method; for an object it calls the object's own code. */
function converts(args: readonly unknown[]): void {
  for (const x of args) if (typeof x !== 'function') primitive(x)
}

/** An iterator of the elements of a view, which it reads one by one. */
export function elements(site: number, view: unknown): any {
  return iterator(site, view, 'values')
}

const iteration = generatorTwin(
  function* () {} as never,
  function* (site: number, view: unknown, what: 'values' | 'entries' | 'keys'): Generator<any, void, any> {
    for (let i = 0; i < (yield* count(site, view)); i++) {
      effect()
      if (what === 'keys') yield new Out(i)
      else {
        const value = yield* get(site, view, i)
        yield new Out(what === 'values' ? value : [i, value])
      }
    }
  } as never,
) as unknown as (...args: unknown[]) => Stops

function iterator(site: number, view: unknown, what: 'values' | 'entries' | 'keys'): unknown {
  return iteration(site, view, what).next().value
}

/** The elements that a spread in an argument list or an array literal takes from `from`. */
export function* list(site: number, from: any): Stops {
  return isTyped(from) || generatorBody(from) !== undefined ? yield* take(site, from, Infinity) : listed(from)
}

const viewMakers = new Set<unknown>(Object.values(typedArrays))
const collections = new Set<unknown>([Map, Set, WeakMap, WeakSet, Array])

/** `new maker(...args)`: a constructor that copies a view reads it element by element. */
export function* construct(site: number, maker: any, args: any[]): Stops {
  const [first] = args
  if ((isTyped(first) || generatorBody(first) !== undefined) && typeof maker === 'function') {
    const real = realOf(maker)
    if (viewMakers.has(real) && isTyped(first)) refuseTornCopy(first, `new ${real.name}()`, new real(0))
    if (viewMakers.has(real) || (collections.has(real) && real !== Array)) {
      return effect(new maker(yield* take(site, first, Infinity), ...args.slice(1)))
    }
  }
  return effect(new maker(...args))
}

/** The twin of a method of a proxy. */
function twinFor(name: string): ((...args: any[]) => any) | undefined {
  const made: any = function* (this: any, ...args: any[]): Stops {
    const site = pending.place
    pending.place = -1
    const model = modelOf(this, name)
    converts(args)
    if (model !== undefined) return yield* model(site, this, args)
    throw new TypeError(`${name} was called on something else than the memory that it was read from`)
  }
  return made
}

guardMethods(Typed.prototype, '%TypedArray%.prototype', name =>
  Object.hasOwn(typed, name) ? twinFor(name) : undefined,
)
guardMethods(DataView.prototype, 'DataView.prototype', name => (data.test(name) ? twinFor(name) : undefined))
guardMethods(Shared.prototype, 'SharedArrayBuffer.prototype', name =>
  Object.hasOwn(buffers, name) ? twinFor(name) : undefined,
)
const Bytes = (globalThis as { Buffer?: { prototype: object } }).Buffer
if (Bytes !== undefined) guardMethods(Bytes.prototype, 'Buffer.prototype', () => undefined)
