/**
 * Functions of the language that get shared memory as an argument (`Array.from(view)`,
 * `Reflect.get(view, 0)`), and those that call other functions. Each gets a twin, which takes the steps and
 * reports other effects.
 */
import { attach, own } from '../../compiler/runtime.ts'
import { resumableOf } from '../../compiler/runtime/builtins/callback.ts'
import { generatorBody } from '../../compiler/runtime/generator.ts'
import { arrayFrom } from '../../compiler/runtime/builtins/arrayfrom.ts'
import { type Twin, twin } from '../../coroutine/core/coroutine.ts'
import { call, put, type Stops } from './elementwise.ts'
import { isMemory, ownAt, plain, watched } from './foreign.ts'
import { elements, type Model, typed } from './models.ts'
import { KIND_NAMES, LOAD, PLAIN_READ, PLAIN_WRITE, WAIT_ASYNC } from '../machine/operations.ts'
import { fields, isIndex, isTyped, take } from './patterns.ts'
import { effect, isShared, op, pending, vouchFor } from '../machine/pending.ts'
import { isInstrumented } from './marks.ts'
import { isQuietList } from './quiet.ts'
import { isUnseen } from './unseen.ts'
import { kindOf, nativeMark } from '../machine/views.ts'

type Callable = (...args: any[]) => any

const Typed: any = Object.getPrototypeOf(Int8Array)

/**
 * Gives a function of the language a twin. With shared memory the twin runs the model. Otherwise it calls the
 * function, which is an effect unless the call is `quiet`.
 */
function over(
  holder: any,
  name: string,
  quiet: (self: any, args: any[]) => boolean,
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
    if (!quiet(this, args)) effect()
    if (before === undefined || isMemory(this) || args.some(isMemory))
      return watched(native, this, args, name)
    return yield* before.apply(this, args.map(callback))
  }
  made[nativeMark] = true
  attach(native, made)
}

const never = (): boolean => false
/** Whether a method of an ordinary list runs only code of the check. */
const ofQuietList = (self: unknown, args: unknown[]): boolean =>
  (ArrayBuffer.isView(self) || isQuietList(self)) &&
  args.every(x => (typeof x === 'function' ? resumableOf(x as never) !== undefined : Object(x) !== x))

/** The callback as the twin calls it: one that is not instrumented is called as such. */
function callback(fn: unknown): unknown {
  if (typeof fn !== 'function' || (resumableOf(fn as never) !== undefined && !isUnseen(fn))) return fn
  return function (this: unknown, ...args: unknown[]) {
    return plain(fn, this, args, fn.name)
  }
}

const givenView = (_: unknown, [first]: any[]): boolean =>
  isTyped(first) || generatorBody(first) !== undefined

/** Methods that only read their list. */
const lookers = new Set(
  'at every find findIndex findLast findLastIndex forEach includes indexOf join lastIndexOf reduce reduceRight some'.split(
    ' ',
  ),
)

for (const [name, model] of Object.entries(typed)) {
  if (name === '[Symbol.iterator]' || name === 'toString') continue
  if (name === 'set')
    over(
      Typed.prototype,
      name,
      never,
      (self, [first]) => isTyped(self) || (isTyped(first) && kindOf(self) !== undefined),
      model,
    )
  else over(Typed.prototype, name, lookers.has(name) ? ofQuietList : never, self => isTyped(self), model)
}

for (const name of [...lookers, 'map', 'filter', 'flatMap', 'sort', 'toSorted'])
  over(Array.prototype, name, lookers.has(name) ? ofQuietList : never, never, typed['sort']!)
for (const holder of [Map.prototype, Set.prototype]) over(holder, 'forEach', never, never, typed['sort']!)

const isFunction = (x: unknown): boolean => typeof x === 'function'
const always = (): boolean => true
over(Function.prototype, 'call', always, isFunction, function* (_site, fn, [self, ...args]) {
  return yield* run(fn, self, args)
})
over(
  Function.prototype,
  'apply',
  always,
  (fn, [, args]) => isFunction(fn) && isPlainList(args),
  function* (_site, fn, [self, args]) {
    return yield* run(fn, self, args ?? [])
  },
)
over(
  Reflect,
  'apply',
  always,
  (_, [fn, , args]) => isFunction(fn) && Array.isArray(args) && isPlainList(args),
  function* (_site, _, [fn, self, args]) {
    return yield* run(fn, self, args)
  },
)

const { bind } = Function.prototype
// oxlint-disable-next-line require-yield
over(Function.prototype, 'bind', never, isKnownFunction, function* (_site, fn, args) {
  effect()
  const made = vouchFor(Reflect.apply(bind, fn, args) as Callable)
  const resumable = resumableOf(fn)
  return resumable === undefined ? made : attach(made, Reflect.apply(bind, resumable, args) as Twin)
})

function isKnownFunction(fn: unknown): boolean {
  return typeof fn === 'function' && isInstrumented(fn)
}

const isPlainList = (list: unknown): boolean => list === undefined || list === null || isQuietList(list)

/** Calls a function through its twin, if it has one. */
function* run(fn: any, self: unknown, args: unknown[]): Stops {
  return resumableOf(fn) === undefined
    ? plain(fn, self, args, fn.name)
    : yield* ownAt(fn, pending.place).apply(self, args)
}

over(
  Array,
  'from',
  never,
  (_, [items]) => isTyped(items),
  function* (site, maker, [items, fn, self]) {
    return yield* arrayFrom(maker, elements(site, items), fn, self)
  },
)
over(Typed, 'from', never, givenView, function* (site, maker, [items, fn, self]) {
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
  never,
  (_, [view, key]) => isTyped(view) && isIndex(key),
  function* (site, _, [view, key]) {
    return yield op(PLAIN_READ, site, view, Number(key))
  },
)
over(
  Reflect,
  'set',
  never,
  (_, [view, key, , receiver]) =>
    isTyped(view) && isIndex(key) && (receiver === undefined || receiver === view),
  function* (site, _, [view, key, value]) {
    yield op(PLAIN_WRITE, site, view, Number(key), value)
    return true
  },
)
over(Object, 'values', never, givenView, function* (site, _, [view]) {
  return Object.values(yield* fields(site, view, true, []))
})
over(Object, 'entries', never, givenView, function* (site, _, [view]) {
  return Object.entries(yield* fields(site, view, true, []))
})
over(
  Object,
  'assign',
  never,
  (_, args) => args.slice(1).some(isTyped) && !isShared(args[0]),
  function* (site, _, [target, ...sources]) {
    for (const source of sources) Object.assign(target, yield* fields(site, source, true, []))
    effect()
    return target
  },
)
over(JSON, 'stringify', never, givenView, function* (site, _, [view, ...rest]) {
  return JSON.stringify(yield* fields(site, view, true, []), ...rest)
})

/** Of the calls on memory of the thread's own, only a load changes nothing. */
function quietAtomic(name: string): (self: unknown, args: unknown[]) => boolean {
  return name === 'load' ? (_, [, index]) => Object(index) !== index : never
}

const onShared = (_: unknown, [view]: any[]): boolean => isShared(view)

/** The model of a function of `Atomics`. */
function atomic(kind: number): Model {
  return function* (site, _, [view, index, a, b]) {
    return yield op(kind, site, view, index, a, b)
  }
}

for (let kind = LOAD; kind <= WAIT_ASYNC; kind++) {
  over(Atomics, KIND_NAMES[kind]!, quietAtomic(KIND_NAMES[kind]!), onShared, atomic(kind))
}

/** Gives `fn`, which replaces a function of `Atomics` during a check, the twin of that function. */
export function attachAtomic(fn: Callable, name: string): void {
  const holder = { [name]: fn }
  over(holder, name, quietAtomic(name), onShared, atomic(KIND_NAMES.indexOf(name)))
}
