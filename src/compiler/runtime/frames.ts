/** The imports of functions that unwind: how they call functions of another kind. */
import { frames, run } from '../../coroutine/core/frames.ts'
import { itself, twin } from '../../coroutine/core/coroutine.ts'
import { blocks, plainFace } from '../../coroutine/core/faces.ts'
import { own, refuse, unwinding } from './attach.ts'
import { collect, generatorBody } from './generator.ts'
import { listed } from './notiterable.ts'

/** An empty list: no arguments, no saved values. */
export const nothing: readonly unknown[] = []

/** On a twin: the form of a built-in that unwinds. */
export const form: unique symbol = Symbol('heddle.form')

/** A bound function is resumable if its function is, also where nothing may unwind. */
const { bind } = Function.prototype

/** Calls a function with a separate twin, or with its own `call`. */
export function other(ok: unknown, fn: any, self: unknown, args: unknown[], text: string): unknown {
  if (typeof fn !== 'function') return refuse(text)
  if (ok || fn === bind) {
    const found = fn[twin]
    if (fn[itself] === fn) frames.ok = 1
    else if (found !== undefined) {
      const built = found[form]
      if (built !== undefined && built.of === fn) return Reflect.apply(built, self, args)
      return run(Reflect.apply(own(fn), self, args))
    }
  } else if (fn[twin]?.[blocks] === true) return plainFace(fn, self, args)
  return Reflect.apply(fn, self, args)
}

export function other0(ok: unknown, fn: any, self: unknown, text: string): unknown {
  const built = fn?.[twin]?.[form]
  return (ok || fn === bind) && built !== undefined && built.of === fn
    ? built.call(self)
    : other(ok, fn, self, [], text)
}

export function other1(ok: unknown, fn: any, self: unknown, first: unknown, text: string): unknown {
  const built = fn?.[twin]?.[form]
  return (ok || fn === bind) && built !== undefined && built.of === fn
    ? built.call(self, first)
    : other(ok, fn, self, [first], text)
}

export function other2(
  ok: unknown,
  fn: any,
  self: unknown,
  first: unknown,
  second: unknown,
  text: string,
): unknown {
  const built = fn?.[twin]?.[form]
  return (ok || fn === bind) && built !== undefined && built.of === fn
    ? built.call(self, first, second)
    : other(ok, fn, self, [first, second], text)
}

/** The last function that was made in the argument list of a built-in: it unwinds, and has no mark yet. */
let made: unknown = null

export function isMade(fn: unknown): boolean {
  return fn === made
}

/**
 * A call with a function that is made in its argument list. A mark costs more than the function itself, so
 * only a callee that is no built-in gets it marked.
 */
export function given(
  ok: unknown,
  fn: any,
  self: unknown,
  callback: any,
  rest: readonly unknown[],
  text: string,
): unknown {
  const built = fn?.[twin]?.[form]
  if (ok && built !== undefined && built.of === fn) {
    made = callback
    if (rest.length === 0) return built.call(self, callback)
    return built.call(self, callback, ...rest)
  }
  unwinding(callback)
  return other(ok, fn, self, [callback, ...rest], text)
}

/**
 * Stores a function that unwinds for the callee that gets it as an argument. See
 * lowering/frames/unmarkedarguments.ts.
 */
export function vouch<F>(fn: F): F {
  frames.made = fn
  return fn
}

/** The tag of a template, ready to be called: only the values are evaluated in between. */
export function tagging(ok: unknown, fn: any, text: string): unknown {
  if (typeof fn !== 'function') return refuse(text)
  if (fn[itself] === fn) frames.ok = ok ? 1 : 0
  else if (ok && fn[twin] !== undefined)
    return (...args: unknown[]) => run(Reflect.apply(own(fn), undefined, args))
  return fn
}

/** The tag that returns the array of strings of a template. */
export function template(strings: TemplateStringsArray): TemplateStringsArray {
  return strings
}

/** A spread value. A generator that can suspend inside runs to its end first. */
export function spreads(ok: unknown, iterable: unknown, text: string): unknown {
  return ok && generatorBody(iterable) !== undefined ? run(collect(iterable)) : listed(iterable, text)
}

/** The tag of a template, if it is a method. */
export function taggingBy(fn: any, self: unknown, text: string): unknown {
  if (typeof fn !== 'function') return refuse(text)
  return (...args: unknown[]) => Reflect.apply(fn, self, args)
}

/** Converts a value to a property key. */
export function keyOf(value: unknown): PropertyKey {
  if (typeof value === 'symbol' || typeof value === 'string') return value
  return Reflect.ownKeys({ [value as string]: 0 })[0]!
}
