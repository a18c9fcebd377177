/**
 * `bind` in plain code of a compiled module: what is bound passes the permission on, so it unwinds as its
 * function does.
 */
import { type Twin, unwinds } from '../../coroutine/core/coroutine.ts'
import { attach, refuse, unwinding } from './attach.ts'
import { type Callable, resumableOf } from './builtins/callback.ts'

const { bind } = Function.prototype

/** What is called with the arguments of `fn.bind(…)`. `text` is how the source names the method. */
export function binder(fn: any, text: string): Callable {
  const method = fn.bind
  return (...args) => {
    if (typeof method !== 'function') return refuse(text)
    const made = Reflect.apply(method, fn, args)
    if (method !== bind || typeof fn !== 'function') return made
    if (unwinds(fn)) return unwinding(made as Callable)
    const resumable = resumableOf(fn as Callable)
    return resumable === undefined
      ? made
      : attach(made as Callable, Reflect.apply(bind, resumable, args) as Twin)
  }
}
