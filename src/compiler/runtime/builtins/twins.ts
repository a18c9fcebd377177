/**
 * Gives the built-ins that take callbacks their twins. A call in a resumable function then finds them like
 * any other twin; plain code never sees them.
 */
import { needResched, PREEMPTED, type Twin, twin } from '../../../coroutine/core/coroutine.ts'
import { attach } from '../attach.ts'
import { callsBetween, type Callable, callable, listOf, resumableOf } from './callback.ts'
import { construct, constructsApart } from '../construct.ts'
import { define, part } from '../../../coroutine/core/define.ts'
import { arrayFrom, typedFrom } from './arrayfrom.ts'
import {
  arrays,
  filter,
  flatMap,
  forEach,
  type ListKind,
  map,
  reduce,
  search,
  typedArrays,
} from './arraymethods.ts'
import { LONG_TEXT, PartwiseParser } from '../json/parse.ts'
import { isBriefJson } from '../json/size.ts'
import { PartwiseWriter } from '../json/stringify.ts'
import {
  isLongJoin,
  isLongReplace,
  isLongSplit,
  joinLong,
  plainLength,
  replaceMatches,
  replaceText,
  splitLong,
} from './longtext.ts'
import { comparatorOf } from '../sort/comparator.ts'
import { mergeSort } from '../sort/mergesort.ts'
import { LONG_LIST, defaultSort, defaultSortTyped } from '../sort/defaultsort.ts'
import { insertionMost, timSort } from '../sort/timsort.ts'

type Stops = Generator<number, any, unknown>

const typedPrototype = Object.getPrototypeOf(Int8Array.prototype)
const tagOf = Object.getOwnPropertyDescriptor(typedPrototype, Symbol.toStringTag)!.get!

/**
 * Attaches a twin once: another copy of this module may have done so already. A frozen built-in stays as it
 * is.
 */
function install(holder: any, name: string, make: (original: Callable) => Twin): void {
  const original: (Callable & { [twin]?: Twin }) | undefined = holder[name]
  if (typeof original !== 'function' || original[twin] !== undefined || !Object.isExtensible(original)) return
  attach(original, make(original))
}

/**
 * A method whose first argument is a callback. A wrong call is left to the original, which throws its own
 * error.
 */
function method(
  accepts: (list: unknown) => boolean,
  run: (list: any, fn: Callable, self: unknown, args: unknown[]) => Stops,
): (original: Callable) => Twin {
  return original =>
    function* (this: unknown, ...args: unknown[]): Stops {
      const [fn, self] = args
      if (typeof fn !== 'function' || !accepts(this)) return Reflect.apply(original, this, args)
      return yield* run(Object(this), fn as Callable, self, args)
    }
}

const isList = (list: unknown): boolean => list !== null && list !== undefined
const isTyped = (list: unknown): boolean => Reflect.apply(tagOf, list, []) !== undefined

for (const [holder, kind, accepts] of [
  [Array.prototype, arrays, isList],
  [typedPrototype, typedArrays, isTyped],
] as [any, ListKind, (list: unknown) => boolean][]) {
  install(
    holder,
    'forEach',
    method(accepts, (list, fn, self) => forEach(kind, list, fn, self)),
  )
  install(
    holder,
    'map',
    method(accepts, (list, fn, self) => map(kind, list, fn, self)),
  )
  install(
    holder,
    'filter',
    method(accepts, (list, fn, self) => filter(kind, list, fn, self)),
  )
  for (const what of ['some', 'every', 'find', 'findIndex', 'findLast', 'findLastIndex'] as const) {
    install(
      holder,
      what,
      method(accepts, (list, fn, self) => search(kind, list, fn, self, what)),
    )
  }
  install(
    holder,
    'reduce',
    method(accepts, (list, fn, _, args) => reduce(kind, list, fn, args, false)),
  )
  install(
    holder,
    'reduceRight',
    method(accepts, (list, fn, _, args) => reduce(kind, list, fn, args, true)),
  )
}

install(Array.prototype, 'flatMap', method(isList, flatMap))
install(Array.prototype, 'sort', sorting(isList, plainLength, sortArray))
install(Array.prototype, 'toSorted', sorting(isList, plainLength, toSortedArray))
install(typedPrototype, 'sort', sorting(isTyped, typedLength, sortTyped))
install(typedPrototype, 'toSorted', sorting(isTyped, typedLength, toSortedTyped))

/** `sort` with a comparator, or of a long list without one. */
function sorting(
  accepts: (list: unknown) => boolean,
  lengthOf: (list: any) => number,
  run: (list: any, fn: Callable | undefined) => Stops,
): (original: Callable) => Twin {
  return original =>
    function* (this: any, ...args: unknown[]): Stops {
      const [fn] = args
      if (typeof fn === 'function' && accepts(this)) return yield* run(Object(this), fn as Callable)
      if (fn !== undefined || lengthOf(this) < LONG_LIST) return Reflect.apply(original, this, args)
      return yield* run(this, undefined)
    }
}

function typedLength(list: unknown): number {
  return isTyped(list) ? typedArrays.length(list) : 0
}

/** The sorted values: by the comparator, or in the engine's default order. */
function* ordered(values: unknown[], fn: Callable | undefined, insertions: number): Stops {
  if (fn === undefined) return yield* defaultSort(values)
  yield* timSort(values, comparatorOf(fn), insertions)
  return values
}

let insertionInSort: number | undefined
let insertionInToSorted: number | undefined
/** How many elements are copied between two safepoints, as a mask. */
const copiesBetween = 4095

function* sortArray(list: any, fn: Callable | undefined): Stops {
  const length = arrays.length(list)
  const values: unknown[] = []
  let undefinedCount = 0
  for (let k = 0; k < length; k++) {
    if ((k & copiesBetween) === copiesBetween && needResched()) yield PREEMPTED
    if (!(k in list)) continue
    const value = list[k]
    if (value === undefined) undefinedCount++
    else define(values, values.length, value)
  }
  insertionInSort ??= insertionMost('sort')
  const sorted = yield* ordered(values, fn, insertionInSort)
  let at = 0
  for (; at < sorted.length; at++) list[at] = sorted[at]
  for (let k = 0; k < undefinedCount; k++) list[at++] = undefined
  for (; at < length; at++) if (at in list) delete list[at]
  return list
}

function* toSortedArray(list: any, fn: Callable | undefined): Stops {
  const length = arrays.length(list)
  if (length > 2 ** 32 - 1) throw new RangeError(`Invalid array length`)
  const values: unknown[] = []
  for (let k = 0; k < length; k++) {
    if ((k & copiesBetween) === copiesBetween && needResched()) yield PREEMPTED
    const value = list[k]
    if (value !== undefined) define(values, values.length, value)
  }
  const undefinedCount = length - values.length
  insertionInToSorted ??= insertionMost('toSorted')
  const sorted = yield* ordered(values, fn, insertionInToSorted)
  for (let k = 0; k < undefinedCount; k++) define(sorted, sorted.length, undefined)
  return sorted
}

function* sortTyped(list: any, fn: Callable | undefined): Stops {
  const sorted: any =
    fn === undefined
      ? yield* defaultSortTyped(copyOf(list))
      : yield* mergeSort(elementsOf(list), comparatorOf(fn))
  const length = Math.min(sorted.length, typedArrays.length(list))
  for (let k = 0; k < length; k++) list[k] = sorted[k]
  return list
}

function* toSortedTyped(list: any, fn: Callable | undefined): Stops {
  if (fn === undefined) return yield* defaultSortTyped(copyOf(list))
  const sorted = yield* mergeSort(elementsOf(list), comparatorOf(fn))
  const made = new (globalThis as any)[Reflect.apply(tagOf, list, []) as string](sorted.length)
  for (let k = 0; k < sorted.length; k++) made[k] = sorted[k]
  return made
}

/** The elements of a typed array, without its iterator. */
function elementsOf(list: any): unknown[] {
  return part(list, 0, typedArrays.length(list))
}

/** A typed array of the same type, without its constructor. */
function copyOf(list: any): any {
  return new (globalThis as any)[Reflect.apply(tagOf, list, []) as string](list)
}

install(
  Array,
  'from',
  original =>
    function* (this: any, ...args: unknown[]): Stops {
      const [items, fn, self] = args
      if (!isList(items) || (fn !== undefined && typeof fn !== 'function'))
        return Reflect.apply(original, this, args)
      return yield* arrayFrom(this, items, fn as Callable | undefined, self)
    },
)

install(
  Object.getPrototypeOf(Int8Array),
  'from',
  original =>
    function* (this: any, ...args: unknown[]): Stops {
      const [items, fn, self] = args
      if (!isList(items) || typeof fn !== 'function') return Reflect.apply(original, this, args)
      return yield* typedFrom(this, items, fn as Callable, self)
    },
)

for (const holder of [Map.prototype, Set.prototype] as any[]) {
  const entries: Callable = holder.entries
  install(
    holder,
    'forEach',
    original =>
      function* (this: any, ...args: unknown[]): Stops {
        const [fn, self] = args
        if (typeof fn !== 'function') return Reflect.apply(original, this, args)
        const resumable = resumableOf(fn as Callable)
        const plain = callable(fn as Callable)
        let turn = 0
        // The iterator sees elements that are added and deleted while it runs, as in the original.
        for (const [key, value] of Reflect.apply(entries, this, [])) {
          if (resumable !== undefined) yield* resumable.call(self, value, key, this)
          else plain.call(self, value, key, this)
          if ((turn++ & callsBetween) === 0 && needResched()) yield PREEMPTED
        }
        return undefined
      },
  )
}

install(
  Function.prototype,
  'call',
  () =>
    function* (this: Callable, self: unknown, ...args: unknown[]): Stops {
      const resumable = typeof this === 'function' ? resumableOf(this) : undefined
      return resumable === undefined
        ? Reflect.apply(this, self, args)
        : yield* Reflect.apply(resumable, self, args)
    },
)

install(
  Function.prototype,
  'apply',
  original =>
    function* (this: Callable, self: unknown, args: any): Stops {
      const resumable = typeof this === 'function' ? resumableOf(this) : undefined
      if (resumable === undefined) return Reflect.apply(original, this, [self, args])
      return yield* Reflect.apply(resumable, self, args ?? [])
    },
)

install(
  Reflect,
  'apply',
  original =>
    function* (...all: any[]): Stops {
      const [fn, self, args] = all
      const resumable = typeof fn === 'function' ? resumableOf(fn) : undefined
      return resumable === undefined ? original(...all) : yield* Reflect.apply(resumable, self, args)
    },
)

install(
  Function.prototype,
  'bind',
  original =>
    // oxlint-disable-next-line require-yield
    function* (this: Callable, ...args: unknown[]): Stops {
      const bound = Reflect.apply(original, this, args) as Callable
      const resumable = resumableOf(this)
      if (resumable === undefined) return bound
      return attach(bound, Reflect.apply(original, resumable, args) as Twin)
    },
)

install(
  Reflect,
  'construct',
  original =>
    function* (this: unknown, ...args: unknown[]): Stops {
      const [fn, list] = args
      const target = args.length > 2 ? args[2] : fn
      if (!constructsApart(fn, target)) return Reflect.apply(original, this, args)
      return yield* construct(fn, listOf(list), target)
    },
)

install(
  JSON,
  'parse',
  original =>
    function* (this: unknown, ...args: unknown[]): Stops {
      const [text, reviver] = args
      if (typeof text !== 'string' || text.length < LONG_TEXT || typeof reviver === 'function')
        return Reflect.apply(original, this, args)
      if (!PartwiseParser.isUsable) return Reflect.apply(original, this, args)
      const parser = new PartwiseParser(text)
      while (!parser.isRead) {
        if (!parser.advance()) return Reflect.apply(original, this, args)
        if (needResched()) yield PREEMPTED
      }
      return parser.result
    },
)

install(
  JSON,
  'stringify',
  original =>
    function* (this: unknown, ...args: unknown[]): Stops {
      const [value, replacer, space] = args
      if (isBriefJson(value)) return Reflect.apply(original, this, args)
      const writer = new PartwiseWriter(value, replacer, space)
      while (!writer.advance()) if (needResched()) yield PREEMPTED
      return writer.result
    },
)

install(
  Array.prototype,
  'join',
  original =>
    function* (this: any, ...args: unknown[]): Stops {
      if (!isLongJoin(this, args[0])) return Reflect.apply(original, this, args)
      return yield* joinLong(this, this.length, (args[0] as string | undefined) ?? ',')
    },
)

install(
  String.prototype,
  'split',
  original =>
    function* (this: any, ...args: unknown[]): Stops {
      if (!isLongSplit(this, args[0], args[1])) return Reflect.apply(original, this, args)
      return yield* splitLong(this, args[0] as string)
    },
)

for (const name of ['replace', 'replaceAll']) {
  install(
    String.prototype,
    name,
    original =>
      function* (this: any, ...args: unknown[]): Stops {
        const all = name === 'replaceAll'
        if (!isLongReplace(this, args[0], args[1], all)) return Reflect.apply(original, this, args)
        const [search, replacement] = args as [string | RegExp, string | Callable]
        return yield* typeof search === 'string'
          ? replaceText(this, search, replacement, all)
          : replaceMatches(this, search, replacement)
      },
  )
}
