/**
 * `bind` in plain code of a compiled module: the bound function passes the permission on, so it unwinds if
 * its function does.
 */
import { type Twin, unwinds } from '../../coroutine/core/coroutine.ts'
import { attach, refuse, unwinding } from './attach.ts'
import { type Callable, resumableOf } from './builtins/callback.ts'

const { bind } = Function.prototype

/**
 * Returns the function that is called with the arguments of `fn.bind(…)`. `text` is the method in the source.
 */
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
