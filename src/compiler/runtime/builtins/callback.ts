/** A callback of a built-in: called through its twin if it has one. */
import { type Twin, twin, unwinds } from '../../../coroutine/core/coroutine.ts'
import { call, own } from '../attach.ts'

export type Callable = (...args: any[]) => any

/** The callback's own twin, or undefined. */
export function resumableOf(fn: Callable & { [twin]?: Twin }): Twin | undefined {
  return fn[twin] === undefined && !unwinds(fn) ? undefined : own(fn)
}

/** The callback, in a form whose `call` is the built-in one. */
export function callable(fn: Callable): Callable {
  if (fn.call === call) return fn
  return function (this: unknown, ...args: unknown[]) {
    return Reflect.apply(fn, this, args)
  }
}

/** How many calls of a plain callback run between two safepoints, as a mask. */
export const callsBetween = 15

/** `CreateListFromArrayLike`: by index, without the list's iterator. */
export function listOf(list: any): unknown[] {
  return Reflect.apply(gathered, undefined, list) as unknown[]
}

function gathered(...all: unknown[]): unknown[] {
  return all
}
