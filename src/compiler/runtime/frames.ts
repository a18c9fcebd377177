/**
 * What functions that unwind import: how they are told apart, and how they call what is not of their kind.
 */
import { frames, run } from '../../coroutine/core/frames.ts'
import { itself, twin } from '../../coroutine/core/coroutine.ts'
import { blocks, plainFace } from '../../coroutine/core/faces.ts'
import { own, refuse, unwinding } from './attach.ts'
import { collect, generatorBody } from './generator.ts'
import { listed } from './notiterable.ts'

/** Nothing given, nothing saved. */
export const nothing: readonly unknown[] = []

/** On a twin: the form of a built-in that unwinds. */
export const form: unique symbol = Symbol('heddle.form')

/** What is bound is resumable as its function is, also where nothing may unwind. */
const { bind } = Function.prototype

/** Calls what carries a twin that is not itself, or has a `call` of its own. */
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

/** The function that was last made where it is given to a built-in: it unwinds, and bears no mark yet. */
let made: unknown = null

export function isMade(fn: unknown): boolean {
  return fn === made
}

/**
 * A call that is given a function made on the spot. To mark it costs more than to make it, so it is marked
 * only when somebody but a built-in gets it.
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
 * Puts a function that unwinds where the callee finds it that it is given to. See lowering/frames/unmarkedarguments.ts.
 */
export function vouch<F>(fn: F): F {
  frames.made = fn
  return fn
}

/** What a template is tagged with: called at once, with the values alone in between. */
export function tagging(ok: unknown, fn: any, text: string): unknown {
  if (typeof fn !== 'function') return refuse(text)
  if (fn[itself] === fn) frames.ok = ok ? 1 : 0
  else if (ok && fn[twin] !== undefined)
    return (...args: unknown[]) => run(Reflect.apply(own(fn), undefined, args))
  return fn
}

/** What is spread: a generator that stops inside is run to its end first. */
export function spreads(ok: unknown, iterable: unknown, text: string): unknown {
  return ok && generatorBody(iterable) !== undefined ? run(collect(iterable)) : listed(iterable, text)
}

/** What a template is tagged with, where it is a method. */
export function taggingBy(fn: any, self: unknown, text: string): unknown {
  if (typeof fn !== 'function') return refuse(text)
  return (...args: unknown[]) => Reflect.apply(fn, self, args)
}

/** The name of a property, worked out where it stands. */
export function keyOf(value: unknown): PropertyKey {
  if (typeof value === 'symbol' || typeof value === 'string') return value
  return Reflect.ownKeys({ [value as string]: 0 })[0]!
}
