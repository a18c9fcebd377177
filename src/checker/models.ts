/**
 * The language's own functions over shared memory, as the steps that they are: one for each element that they read or write, in the
 * order of the specification. Callbacks are called through their twins, so they may take steps too.
 *
 * A model is a generator: `(site, self, args)`. It is found in three ways: by the compiler, for a method of a view that is called by its
 * name (`modelled`); as the twin of a method of a proxy (views.ts); and as the twin of a function that is given a view (`over`).
 */
import { attach, own } from '../compiler/runtime.ts'
import { type Twin, twin } from '../coroutine/coroutine.ts'
import { generatorBody, generatorTwin, Out } from '../compiler/runtime/generator.ts'
import { arrayFrom } from '../compiler/runtime/from.ts'
import {
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  GROW,
  KIND_NAMES,
  LOAD,
  PLAIN_READ,
  PLAIN_WRITE,
  WAIT_ASYNC,
} from './operations.ts'
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
import { fields, isIndex, isTyped, take } from './patterns.ts'
import { effect, isShared, op, pending, realOf } from './pending.ts'
import { guardMethods, isGuarded, isNativeMethod, kindOf, nativeMark, typedArrays } from './views.ts'

type Callable = (...args: any[]) => any
type Model = (site: number, self: any, args: any[]) => Stops

const Shared = SharedArrayBuffer
const Typed: any = Object.getPrototypeOf(Int8Array)
const isBuffer = (x: unknown): boolean => isGuarded(x) && realOf(x as object) instanceof Shared

const typed: Record<string, Model> = {
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

/** The model of a method, where it has one. */
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

/** Whether a method of this, called by its name, takes steps of its own: the compiler asks. */
export function modelled(self: unknown, name: string): boolean {
  return (isShared(self) || isBuffer(self)) && modelOf(self, name) !== undefined
}

/** Calls a method for which `modelled` is true, unless a subclass has one of its own. */
export function* places(site: number, self: any, name: string, args: any[]): Stops {
  const method = self[name === '[Symbol.iterator]' ? Symbol.iterator : name]
  if (method?.[nativeMark] !== true && !isNativeMethod(method)) return yield* call(method, self, ...args)
  return yield* modelOf(self, name)!(site, self, args)
}

/** The elements of a view, read one by one as the loop comes to them. */
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

/** What a list of arguments or an array literal is spread from. */
export function* list(site: number, from: any): Stops {
  return isTyped(from) || generatorBody(from) !== undefined ? yield* take(site, from, Infinity) : from
}

const viewMakers = new Set<unknown>(Object.values(typedArrays))
const collections = new Set<unknown>([Map, Set, WeakMap, WeakSet, Array])

/** `new maker(...args)`: what copies a view reads it, element by element. */
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

/** Gives a function of the language a twin for when it is given shared memory; else it does as it did. */
function over(
  holder: any,
  name: string,
  quiet: boolean,
  applies: (self: any, args: any[]) => boolean,
  model: Model,
): void {
  const native = holder?.[name] as (Callable & { [twin]?: Twin & { [nativeMark]?: true } }) | undefined
  if (typeof native !== 'function' || native[twin]?.[nativeMark] === true) return
  const before = native[twin] === undefined ? undefined : own(native)
  const made: any = function* (this: any, ...args: any[]): Stops {
    const site = pending.place
    pending.place = -1
    if (applies(this, args)) return yield* model(site, this, args)
    if (before !== undefined) {
      if (!quiet) effect()
      return yield* before.apply(this, args)
    }
    const result = Reflect.apply(native, this, args)
    return quiet ? result : effect(result)
  }
  made[nativeMark] = true
  attach(native, made)
}

const givenView = (_: unknown, [first]: any[]): boolean =>
  isTyped(first) || generatorBody(first) !== undefined

/** Methods that change their list. */
const writers = new Set(['set', 'fill', 'reverse', 'copyWithin', 'sort'])

for (const [name, model] of Object.entries(typed)) {
  if (name === '[Symbol.iterator]' || name === 'toString') continue
  if (name === 'set')
    over(
      Typed.prototype,
      name,
      false,
      (self, [first]) => isTyped(self) || (isTyped(first) && kindOf(self) !== undefined),
      model,
    )
  else over(Typed.prototype, name, !writers.has(name), self => isTyped(self), model)
}

over(Array.prototype, 'sort', false, () => false, typed['sort']!)

over(
  Array,
  'from',
  true,
  (_, [items]) => isTyped(items),
  function* (site, maker, [items, fn, self]) {
    return yield* arrayFrom(maker, elements(site, items), fn, self)
  },
)
over(Typed, 'from', true, givenView, function* (site, maker, [items, fn, self]) {
  const values = yield* take(site, items, Infinity)
  const made = new maker(values.length)
  for (let k = 0; k < values.length; k++) {
    const value = fn === undefined ? values[k] : yield* call(fn, self, values[k], k)
    if (isShared(made)) yield* put(site, made, k, value)
    else made[k] = value
  }
  return made
})

over(
  Reflect,
  'get',
  false,
  (_, [view, key]) => isTyped(view) && isIndex(key),
  function* (site, _, [view, key]) {
    return yield op(PLAIN_READ, site, view, Number(key))
  },
)
over(
  Reflect,
  'set',
  false,
  (_, [view, key, , receiver]) =>
    isTyped(view) && isIndex(key) && (receiver === undefined || receiver === view),
  function* (site, _, [view, key, value]) {
    yield op(PLAIN_WRITE, site, view, Number(key), value)
    return true
  },
)
over(Object, 'values', false, givenView, function* (site, _, [view]) {
  return Object.values(yield* fields(site, view, true, []))
})
over(Object, 'entries', false, givenView, function* (site, _, [view]) {
  return Object.entries(yield* fields(site, view, true, []))
})
over(
  Object,
  'assign',
  false,
  (_, args) => args.slice(1).some(isTyped) && !isShared(args[0]),
  function* (site, _, [target, ...sources]) {
    for (const source of sources) Object.assign(target, yield* fields(site, source, true, []))
    effect()
    return target
  },
)
over(JSON, 'stringify', false, givenView, function* (site, _, [view, ...rest]) {
  return JSON.stringify(yield* fields(site, view, true, []), ...rest)
})

const onShared = (_: unknown, [view]: any[]): boolean => isShared(view)

/** What a function of `Atomics` is in a thread. */
function atomic(kind: number): Model {
  return function* (site, _, [view, index, a, b]) {
    return yield op(kind, site, view, index, a, b)
  }
}

for (let kind = LOAD; kind <= WAIT_ASYNC; kind++) {
  over(Atomics, KIND_NAMES[kind]!, KIND_NAMES[kind] === 'load', onShared, atomic(kind))
}

/** Gives what stands in the place of a function of `Atomics` while a check runs the twin of that function. */
export function attachAtomic(fn: Callable, name: string): void {
  const holder = { [name]: fn }
  over(holder, name, name === 'load', onShared, atomic(KIND_NAMES.indexOf(name)))
}

/** The twin of a method of a proxy. */
function twinFor(name: string): Callable | undefined {
  const made: any = function* (this: any, ...args: any[]): Stops {
    const site = pending.place
    pending.place = -1
    const model = modelOf(this, name)
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
