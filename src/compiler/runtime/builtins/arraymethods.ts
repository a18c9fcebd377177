/**
 * The array methods that take a callback, as generators. They follow the specification step by step, and call
 * the callback through its twin. They handle arrays, typed arrays and array-likes, as the originals do.
 */
import { needResched, PREEMPTED } from '../../../coroutine/core/coroutine.ts'
import { define } from '../../../coroutine/core/define.ts'
import { callsBetween, type Callable, callable, resumableOf } from './callback.ts'

type Stops = Generator<number, any, unknown>

/** The differences between kinds of lists: the length, and which indices have an element. */
export interface ListKind {
  length(list: any): number
  has(list: any, index: number): boolean
}

/** `ToLength(list.length)`. */
function lengthOf(list: any): number {
  const length = Math.trunc(Number(list.length))
  return length > 0 ? Math.min(length, Number.MAX_SAFE_INTEGER) : 0
}

export const arrays: ListKind = { length: lengthOf, has: (list, index) => index in list }

const typedPrototype = Object.getPrototypeOf(Int8Array.prototype) as object
const typedLength = Object.getOwnPropertyDescriptor(typedPrototype, 'length')!.get!

export const typedArrays: ListKind = { length: list => Reflect.apply(typedLength, list, []), has: () => true }

export function* forEach(kind: ListKind, list: any, fn: Callable, self: unknown): Stops {
  const length = kind.length(list)
  const resumable = resumableOf(fn)
  const plain = callable(fn)
  for (let k = 0; k < length; k++) {
    if (!kind.has(list, k)) continue
    if (resumable !== undefined) yield* resumable.call(self, list[k], k, list)
    else plain.call(self, list[k], k, list)
    if ((k & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
}

export function* map(kind: ListKind, list: any, fn: Callable, self: unknown): Stops {
  const length = kind.length(list)
  const made = kind === arrays ? speciesArray(list, length) : speciesTyped(list, length)
  const resumable = resumableOf(fn)
  const plain = callable(fn)
  for (let k = 0; k < length; k++) {
    if (!kind.has(list, k)) continue
    const value =
      resumable !== undefined
        ? yield* resumable.call(self, list[k], k, list)
        : plain.call(self, list[k], k, list)
    if (kind === arrays) define(made, k, value)
    else made[k] = value
    if ((k & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
  return made
}

export function* filter(kind: ListKind, list: any, fn: Callable, self: unknown): Stops {
  const length = kind.length(list)
  const kept: any = kind === arrays ? speciesArray(list, 0) : []
  const resumable = resumableOf(fn)
  const plain = callable(fn)
  let count = 0
  for (let k = 0; k < length; k++) {
    if (!kind.has(list, k)) continue
    const value = list[k]
    const keep =
      resumable !== undefined ? yield* resumable.call(self, value, k, list) : plain.call(self, value, k, list)
    if (keep) define(kept, count++, value)
    if ((k & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
  if (kind === arrays) return kept
  const made = speciesTyped(list, count)
  for (let k = 0; k < count; k++) made[k] = kept[k]
  return made
}

/** `some`, `every` and the `find` family: they end at the first result that they search for. */
export function* search(
  kind: ListKind,
  list: any,
  fn: Callable,
  self: unknown,
  what: 'some' | 'every' | 'find' | 'findIndex' | 'findLast' | 'findLastIndex',
): Stops {
  const length = kind.length(list)
  const resumable = resumableOf(fn)
  const plain = callable(fn)
  const skipsHoles = what === 'some' || what === 'every'
  const backwards = what === 'findLast' || what === 'findLastIndex'
  for (let turn = 0; turn < length; turn++) {
    const k = backwards ? length - 1 - turn : turn
    if (skipsHoles && !kind.has(list, k)) continue
    const value = list[k]
    const answer =
      resumable !== undefined ? yield* resumable.call(self, value, k, list) : plain.call(self, value, k, list)
    if (what === 'every' ? !answer : answer) {
      if (what === 'some') return true
      if (what === 'every') return false
      return what === 'find' || what === 'findLast' ? value : k
    }
    if ((turn & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
  if (what === 'some') return false
  if (what === 'every') return true
  return what === 'find' || what === 'findLast' ? undefined : -1
}

export function* reduce(kind: ListKind, list: any, fn: Callable, args: unknown[], backwards: boolean): Stops {
  const length = kind.length(list)
  const resumable = resumableOf(fn)
  let turn = 0
  let held: unknown
  const at = (turn: number): number => (backwards ? length - 1 - turn : turn)
  if (args.length > 1) held = args[1]
  else {
    while (turn < length && !kind.has(list, at(turn))) turn++
    if (turn === length) throw new TypeError('Reduce of empty array with no initial value')
    held = list[at(turn++)]
  }
  for (; turn < length; turn++) {
    const k = at(turn)
    if (!kind.has(list, k)) continue
    held = resumable !== undefined ? yield* resumable(held, list[k], k, list) : fn(held, list[k], k, list)
    if ((turn & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
  return held
}

export function* flatMap(list: any, fn: Callable, self: unknown): Stops {
  const length = lengthOf(list)
  const made: any = speciesArray(list, 0)
  const resumable = resumableOf(fn)
  const plain = callable(fn)
  let count = 0
  for (let k = 0; k < length; k++) {
    if (!(k in list)) continue
    const value =
      resumable !== undefined
        ? yield* resumable.call(self, list[k], k, list)
        : plain.call(self, list[k], k, list)
    if (Array.isArray(value)) {
      const inner = lengthOf(value)
      for (let j = 0; j < inner; j++) if (j in value) define(made, count++, value[j])
    } else define(made, count++, value)
    if ((k & callsBetween) === 0 && needResched()) yield PREEMPTED
  }
  return made
}

/** An array of holes. */
export function emptyArray(length: number): unknown[] {
  // oxlint-disable-next-line no-new-array
  return new Array(length)
}

/** True for the `Array` of another realm: in each realm, `Array.prototype` is an array. */
function isArrayOfAnotherRealm(maker: unknown): boolean {
  if (typeof maker !== 'function' || maker === Array) return false
  const found = Object.getOwnPropertyDescriptor(maker, 'prototype')
  return found?.writable === false && found.value !== Array.prototype && Array.isArray(found.value)
}

/** `ArraySpeciesCreate`. */
export function speciesArray(original: any, length: number): any {
  if (!Array.isArray(original)) return emptyArray(length)
  let maker: any = original.constructor
  if (isArrayOfAnotherRealm(maker)) return emptyArray(length)
  if (maker === Array) maker = (Array as any)[Symbol.species]
  else if (maker !== null && (typeof maker === 'object' || typeof maker === 'function')) {
    maker = maker[Symbol.species] ?? undefined
  }
  if (maker === undefined || maker === Array) return emptyArray(length)
  return new maker(length)
}

/** `TypedArraySpeciesCreate`. */
function speciesTyped(original: any, length: number): any {
  const own = Object.getOwnPropertyDescriptor(typedPrototype, Symbol.toStringTag)!.get!.call(
    original,
  ) as string
  const standard = (globalThis as any)[own]
  const { constructor } = original
  if (constructor === undefined) return new standard(length)
  const maker = constructor[Symbol.species] ?? standard
  const made = new maker(length)
  if (!ArrayBuffer.isView(made) || typedLength.call(made) < length) {
    throw new TypeError('species constructor did not return a typed array that is long enough')
  }
  return made
}
