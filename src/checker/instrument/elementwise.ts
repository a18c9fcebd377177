/**
 * The parts of the models of the language's functions: they read and write a view one element at a time, each
 * as a step.
 */
import { callable, resumableOf } from '../../compiler/runtime/builtins/callback.ts'
import { comparatorOf } from '../../compiler/runtime/sort/comparator.ts'
import { mergeSort } from '../../compiler/runtime/sort/mergesort.ts'
import { define } from '../../coroutine/core/define.ts'
import { LENGTH, PLAIN_READ, PLAIN_WRITE } from '../machine/operations.ts'
import { effect, isShared, op, pending, realOf } from '../machine/pending.ts'
import { noteCallbacks } from './unseen.ts'
import { growing, isGuarded, kindOf, typedArrays } from '../machine/views.ts'

export type Stops<T = any> = Generator<number, T, unknown>

export function* get(site: number, view: unknown, index: number): Stops<number> {
  return (yield op(PLAIN_READ, site, view, index)) as number
}

export function* put(site: number, view: unknown, index: number, value: unknown): Stops<void> {
  yield op(PLAIN_WRITE, site, view, index, value)
}

/** How many elements a view has. This is a step if the number can change. */
export function* count(site: number, view: any): Stops<number> {
  if (pending.grows && growing(realOf(view)) !== undefined)
    return (yield op(LENGTH, site, view, undefined, 'length')) as number
  return realOf(view).length as number
}

/** The value of `x.length` or `x.byteLength`. */
export function* lengthOf(site: number, x: any, name: 'length' | 'byteLength'): Stops {
  if (pending.grows && isGuarded(x) && growing(realOf(x)) !== undefined)
    return yield op(LENGTH, site, x, undefined, name)
  return x[name]
}

export function whole(value: unknown): number {
  return Math.trunc(Number(value)) || 0
}

export function clamp(value: unknown, otherwise: number, length: number): number {
  if (value === undefined) return otherwise
  const index = whole(value)
  return index < 0 ? Math.max(0, length + index) : Math.min(index, length)
}

/** As `push`, but it calls no setter of the array prototype. */
export function append(list: any[], value: unknown): void {
  define(list, list.length, value)
}

/** All elements, in order. */
export function* all(site: number, view: any): Stops<any[]> {
  const length = yield* count(site, view)
  const values: any[] = []
  for (let i = 0; i < length; i++) append(values, yield* get(site, view, i))
  return values
}

/** A typed array of the same type, with its own memory. */
export function like(view: any, length: number): any {
  const { constructor } = view
  const kind = typedArrays[kindOf(realOf(view))!]!
  if (constructor === undefined) return new kind(length)
  const maker = constructor[Symbol.species] ?? kind
  return new maker(length)
}

export function* fill(made: any, values: readonly any[]): Stops {
  for (let i = 0; i < values.length; i++) {
    if (isShared(made)) yield* put(-1, made, i, values[i])
    else made[i] = values[i]
  }
  return made
}

export function* call(fn: any, self: unknown, ...args: unknown[]): Stops {
  if (typeof fn !== 'function') throw new TypeError(`${String(fn)} is not a function`)
  const resumable = resumableOf(fn)
  if (resumable !== undefined) return yield* resumable.apply(self, args)
  effect()
  noteCallbacks([fn])
  return callable(fn).apply(self, args)
}

export function* search(
  site: number,
  view: any,
  args: any[],
  forwards: boolean,
  ends: (answer: unknown) => boolean,
): Stops<[number, any] | undefined> {
  const length = yield* count(site, view)
  for (let turn = 0; turn < length; turn++) {
    const k = forwards ? turn : length - 1 - turn
    const value = yield* get(site, view, k)
    if (ends(yield* call(args[0], args[1], value, k, view))) return [k, value]
  }
  return undefined
}

export function* reduce(site: number, view: any, args: any[], forwards: boolean): Stops {
  const length = yield* count(site, view)
  let turn = 0
  let held: any
  const at = (n: number): number => (forwards ? n : length - 1 - n)
  if (args.length > 1) held = args[1]
  else {
    if (length === 0) throw new TypeError('Reduce of empty array with no initial value')
    held = yield* get(site, view, at(turn++))
  }
  for (; turn < length; turn++) {
    held = yield* call(args[0], undefined, held, yield* get(site, view, at(turn)), at(turn), view)
  }
  return held
}

export function* sorted(values: any[], order: any, big: boolean): Stops<any[]> {
  if (order === undefined) {
    if (!big) return Array.from(new typedArrays['Float64Array']!(values).sort())
    return [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  }
  if (typeof order !== 'function')
    throw new TypeError('The comparison function must be either a function or undefined')
  return yield* mergeSort(values, comparatorOf(order))
}

export const truthy: (answer: unknown) => boolean = (answer: unknown): boolean => Boolean(answer)
