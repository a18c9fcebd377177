/** A callback that a built-in was given: called through its twin where it has one. */
import { type Twin, twin, unwinds } from '../../../coroutine/core/coroutine.ts'
import { call, own } from '../attach.ts'

export type Callable = (...args: any[]) => any

/** The callback's own twin, or undefined. */
export function resumableOf(fn: Callable & { [twin]?: Twin }): Twin | undefined {
  return fn[twin] === undefined && !unwinds(fn) ? undefined : own(fn)
}

/** The callback in a form whose `call` is the language's own. */
export function callable(fn: Callable): Callable {
  if (fn.call === call) return fn
  return function (this: unknown, ...args: unknown[]) {
    return Reflect.apply(fn, this, args)
  }
}

/** How many calls of a plain callback stand between two looks at the safepoint, as a mask. */
export const callsBetween = 15

/** `CreateListFromArrayLike`: by its indices, whatever iterator the list has. */
export function listOf(list: any): unknown[] {
  return Reflect.apply(gathered, undefined, list) as unknown[]
}

function gathered(...all: unknown[]): unknown[] {
  return all
}
