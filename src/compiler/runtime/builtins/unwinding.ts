/**
 * Built-ins that take callbacks, in forms that unwind: the same steps as in arraymethods.ts, with variables
 * instead of a generator. They handle arrays, and callbacks that unwind or are plain; everything else uses
 * the generator of the built-in. They are separate small functions, so that the engine can inline them and
 * the callback into the caller.
 *
 * Each is a loop that can start at any index. If the callback unwinds, the loop saves its state. Later it is
 * entered again after that call, with its result.
 */
import { itself, twin, unwinds } from '../../../coroutine/core/coroutine.ts'
import { frames, look, type Reenter, run, save, take } from '../../../coroutine/core/frames.ts'
import { registerMovable } from '../../../coroutine/core/movable.ts'
import { own, unwinding } from '../attach.ts'
import { listOf } from './callback.ts'
import { begin, built, constructsApart } from '../construct.ts'
import { form, isMade } from '../frames.ts'
import { LONG_TEXT } from '../json/parse.ts'
import { isBriefJson } from '../json/size.ts'
import { isLongJoin, isLongReplace, isLongSplit } from './longtext.ts'
import { define } from '../../../coroutine/core/define.ts'
import { speciesArray } from './arraymethods.ts'

type Callable = (...args: any[]) => any

/**
 * How many calls of a callback run between two safepoints, as a mask. There is no safepoint at the start of a
 * loop, because that is where it continues.
 */
const callsBetween = 63

const prototype: any = Array.prototype
const isArray = Array.isArray
const call = Function.prototype.call

/**
 * The kind of a callback: 1, it unwinds; 0, it is plain; -1, this loop cannot run: the callback has another
 * kind of twin, is no function, or the list is no array.
 */
function kindOf(list: unknown, fn: any): number {
  if (typeof fn !== 'function' || fn.call !== call || !isArray(list)) return -1
  if (fn[itself] === fn || isMade(fn)) return 1
  return fn[twin] === undefined ? 0 : -1
}

/** Any other call of the built-in `fn`. */
function callOriginal(fn: Callable, list: any, args: ArrayLike<any>): unknown {
  if (isMade(args[0])) unwinding(args[0] as Callable)
  if (list === null || list === undefined) return Reflect.apply(fn, list, args)
  return run(Reflect.apply(own(fn), list, args as any[]))
}

/** Gives a built-in its form that unwinds. */
function attachForm(original: any, built: any): void {
  const found = original?.[twin]
  if (found === undefined || found[form] !== undefined) return
  built.of = original
  found[form] = built
}

/** True for a new array whose holes can be written directly, because no prototype has that index. */
function isOwn(made: any): boolean {
  return made.constructor === Array && Object.getPrototypeOf(made) === prototype && Object.isExtensible(made)
}

// forEach

const { forEach } = prototype

attachForm(forEach, function (this: any, fn: any, self: any) {
  const kind = kindOf(this, fn)
  return kind < 0 ? callOriginal(forEach, this, arguments) : forEachFrom(0, this.length, this, fn, self, kind)
})

/** The number of elements for `forEach`, if it is the built-in one and the list an array; else -1. */
export function eachOf(fn: unknown, list: any): number {
  return fn === forEach && isArray(list) ? list.length : -1
}

function forEachFrom(start: number, length: number, list: any, fn: any, self: any, kind: number): undefined {
  for (let k = start; k < length; k++) {
    if (!(k in list)) continue
    const value = list[k]
    frames.ok = kind
    fn.call(self, value, k, list)
    if (frames.u !== 0 || ((k & callsBetween) === callsBetween && look(true))) {
      return save(undefined, k + 1, [length, list, fn, self, kind], forEachAgain as Reenter)
    }
  }
}

function forEachAgain(k: number, [length, list, fn, self, kind]: any[]): undefined {
  take()
  return forEachFrom(k, length, list, fn, self, kind)
}

// map

const { map } = prototype

attachForm(map, function (this: any, fn: any, self: any) {
  const kind = kindOf(this, fn)
  if (kind < 0) return callOriginal(map, this, arguments)
  const { length } = this
  return mapFrom(0, length, this, fn, self, kind, speciesArray(this, length))
})

function mapFrom(start: number, length: number, list: any, fn: any, self: any, kind: number, made: any): any {
  const own = isOwn(made)
  for (let k = start; k < length; k++) {
    if ((k & callsBetween) === callsBetween && k !== start && look(true)) {
      return save(undefined, k, [length, list, fn, self, kind, made], mapOn as Reenter)
    }
    if (!(k in list)) continue
    const element = list[k]
    frames.ok = kind
    const value = fn.call(self, element, k, list)
    if (frames.u !== 0) {
      return save(undefined, k, [length, list, fn, self, kind, made], mapAgain as Reenter)
    }
    if (own && !(k in made)) made[k] = value
    else define(made, k, value)
  }
  return made
}

function mapAgain(k: number, [length, list, fn, self, kind, made]: any[]): any {
  define(made, k, take())
  return mapFrom(k + 1, length, list, fn, self, kind, made)
}

function mapOn(k: number, [length, list, fn, self, kind, made]: any[]): any {
  take()
  return mapFrom(k, length, list, fn, self, kind, made)
}

// filter

const { filter } = prototype

attachForm(filter, function (this: any, fn: any, self: any) {
  const kind = kindOf(this, fn)
  if (kind < 0) return callOriginal(filter, this, arguments)
  return filterFrom(0, this.length, this, fn, self, kind, speciesArray(this, 0), 0)
})

function filterFrom(
  start: number,
  length: number,
  list: any,
  fn: any,
  self: any,
  kind: number,
  made: any,
  kept: number,
): any {
  const own = isOwn(made)
  let count = kept
  for (let k = start; k < length; k++) {
    if ((k & callsBetween) === callsBetween && k !== start && look(true)) {
      return save(undefined, k, [length, list, fn, self, kind, made, count], filterOn as Reenter)
    }
    if (!(k in list)) continue
    const value = list[k]
    frames.ok = kind
    const keep = fn.call(self, value, k, list)
    if (frames.u !== 0) {
      return save(undefined, k, [length, list, fn, self, kind, made, count, value], filterAgain as Reenter)
    }
    if (!keep) continue
    if (own && !(count in made)) made[count] = value
    else define(made, count, value)
    count++
  }
  return made
}

function filterAgain(k: number, [length, list, fn, self, kind, made, kept, value]: any[]): any {
  let count = kept
  if (take()) define(made, count++, value)
  return filterFrom(k + 1, length, list, fn, self, kind, made, count)
}

function filterOn(k: number, [length, list, fn, self, kind, made, kept]: any[]): any {
  take()
  return filterFrom(k, length, list, fn, self, kind, made, kept)
}

// some, every

const { some, every } = prototype

attachForm(some, function (this: any, fn: any, self: any) {
  const kind = kindOf(this, fn)
  return kind < 0 ? callOriginal(some, this, arguments) : someFrom(0, this.length, this, fn, self, kind)
})

function someFrom(start: number, length: number, list: any, fn: any, self: any, kind: number): any {
  for (let k = start; k < length; k++) {
    if ((k & callsBetween) === callsBetween && k !== start && look(true)) {
      return save(undefined, k, [length, list, fn, self, kind], someOn as Reenter)
    }
    if (!(k in list)) continue
    const value = list[k]
    frames.ok = kind
    const found = fn.call(self, value, k, list)
    if (frames.u !== 0) return save(undefined, k + 1, [length, list, fn, self, kind], someAgain as Reenter)
    if (found) return true
  }
  return false
}

function someAgain(k: number, [length, list, fn, self, kind]: any[]): any {
  return take() ? true : someFrom(k, length, list, fn, self, kind)
}

function someOn(k: number, [length, list, fn, self, kind]: any[]): any {
  take()
  return someFrom(k, length, list, fn, self, kind)
}

attachForm(every, function (this: any, fn: any, self: any) {
  const kind = kindOf(this, fn)
  return kind < 0 ? callOriginal(every, this, arguments) : everyFrom(0, this.length, this, fn, self, kind)
})

function everyFrom(start: number, length: number, list: any, fn: any, self: any, kind: number): any {
  for (let k = start; k < length; k++) {
    if ((k & callsBetween) === callsBetween && k !== start && look(true)) {
      return save(undefined, k, [length, list, fn, self, kind], everyOn as Reenter)
    }
    if (!(k in list)) continue
    const value = list[k]
    frames.ok = kind
    const holds = fn.call(self, value, k, list)
    if (frames.u !== 0) return save(undefined, k + 1, [length, list, fn, self, kind], everyAgain as Reenter)
    if (!holds) return false
  }
  return true
}

function everyAgain(k: number, [length, list, fn, self, kind]: any[]): any {
  return take() ? everyFrom(k, length, list, fn, self, kind) : false
}

function everyOn(k: number, [length, list, fn, self, kind]: any[]): any {
  take()
  return everyFrom(k, length, list, fn, self, kind)
}

// find, findIndex

const { find, findIndex } = prototype

attachForm(find, function (this: any, fn: any, self: any) {
  const kind = kindOf(this, fn)
  return kind < 0 ? callOriginal(find, this, arguments) : findFrom(0, this.length, this, fn, self, kind)
})

function findFrom(start: number, length: number, list: any, fn: any, self: any, kind: number): any {
  for (let k = start; k < length; k++) {
    if ((k & callsBetween) === callsBetween && k !== start && look(true)) {
      return save(undefined, k, [length, list, fn, self, kind], findOn as Reenter)
    }
    const value = list[k]
    frames.ok = kind
    const found = fn.call(self, value, k, list)
    if (frames.u !== 0)
      return save(undefined, k + 1, [length, list, fn, self, kind, value], findAgain as Reenter)
    if (found) return value
  }
}

function findAgain(k: number, [length, list, fn, self, kind, value]: any[]): any {
  return take() ? value : findFrom(k, length, list, fn, self, kind)
}

function findOn(k: number, [length, list, fn, self, kind]: any[]): any {
  take()
  return findFrom(k, length, list, fn, self, kind)
}

attachForm(findIndex, function (this: any, fn: any, self: any) {
  const kind = kindOf(this, fn)
  return kind < 0
    ? callOriginal(findIndex, this, arguments)
    : findIndexFrom(0, this.length, this, fn, self, kind)
})

function findIndexFrom(start: number, length: number, list: any, fn: any, self: any, kind: number): any {
  for (let k = start; k < length; k++) {
    if ((k & callsBetween) === callsBetween && k !== start && look(true)) {
      return save(undefined, k, [length, list, fn, self, kind], findIndexOn as Reenter)
    }
    const value = list[k]
    frames.ok = kind
    const found = fn.call(self, value, k, list)
    if (frames.u !== 0) return save(undefined, k, [length, list, fn, self, kind], findIndexAgain as Reenter)
    if (found) return k
  }
  return -1
}

function findIndexAgain(k: number, [length, list, fn, self, kind]: any[]): any {
  return take() ? k : findIndexFrom(k + 1, length, list, fn, self, kind)
}

function findIndexOn(k: number, [length, list, fn, self, kind]: any[]): any {
  take()
  return findIndexFrom(k, length, list, fn, self, kind)
}

// reduce

const { reduce } = prototype

attachForm(reduce, function (this: any, fn: any, initial: any) {
  const kind = kindOf(this, fn)
  if (kind < 0) return callOriginal(reduce, this, arguments)
  const { length } = this
  if (arguments.length > 1) return reduceFrom(0, length, this, fn, kind, initial)
  let k = 0
  while (k < length && !(k in this)) k++
  if (k === length) throw new TypeError('Reduce of empty array with no initial value')
  return reduceFrom(k + 1, length, this, fn, kind, this[k])
})

function reduceFrom(start: number, length: number, list: any, fn: any, kind: number, initial: any): any {
  let held = initial
  for (let k = start; k < length; k++) {
    if ((k & callsBetween) === callsBetween && k !== start && look(true)) {
      return save(undefined, k, [length, list, fn, kind, held], reduceOn as Reenter)
    }
    if (!(k in list)) continue
    const value = list[k]
    frames.ok = kind
    held = fn(held, value, k, list)
    if (frames.u !== 0) return save(undefined, k + 1, [length, list, fn, kind], reduceAgain as Reenter)
  }
  return held
}

function reduceAgain(k: number, [length, list, fn, kind]: any[]): any {
  return reduceFrom(k, length, list, fn, kind, take())
}

function reduceOn(k: number, [length, list, fn, kind, held]: any[]): any {
  take()
  return reduceFrom(k, length, list, fn, kind, held)
}

// call, apply: their callee returns directly to their caller.

const { apply } = Function.prototype

attachForm(call, function (this: any, self: unknown, ...args: unknown[]) {
  if (unwinds(this)) frames.ok = 1
  else if (typeof this === 'function' && this[twin] !== undefined) {
    return run(Reflect.apply(own(this), self, args))
  }
  return Reflect.apply(this, self, args)
})

attachForm(apply, function (this: any, self: unknown, list: any) {
  const isOurs = unwinds(this)
  if (!isOurs && (typeof this !== 'function' || this[twin] === undefined)) {
    return Reflect.apply(apply, this, [self, list])
  }
  const args = list === null || list === undefined ? [] : listOf(list)
  if (!isOurs) return run(Reflect.apply(own(this), self, args))
  frames.ok = 1
  return Reflect.apply(this as Callable, self, args)
})

attachForm(Reflect.apply, function (fn: any, self: unknown, list: any) {
  const isOurs = unwinds(fn)
  if (!isOurs && (typeof fn !== 'function' || fn[twin] === undefined)) {
    return Reflect.apply(Reflect.apply, Reflect, arguments as never)
  }
  const args = listOf(list)
  if (!isOurs) return run(Reflect.apply(own(fn), self, args))
  frames.ok = 1
  return Reflect.apply(fn as Callable, self, args)
})

// Reflect.construct: the unfinished object is saved, as with `new`.

attachForm(Reflect.construct, function (fn: any, list: any, ...rest: unknown[]) {
  const [target] = rest.length > 0 ? rest : [fn]
  if (!constructsApart(fn, target)) return Reflect.apply(Reflect.construct, Reflect, arguments as never)
  const begun = begin(fn, listOf(list), target)
  return frames.u === 0 ? begun : save(undefined, 0, [begun], builtAgain as Reenter)
})

function builtAgain(_: number, [begun]: unknown[]): unknown {
  return built(begun, take())
}

// bind: the bound function passes the permission on, so it unwinds if its function does.

const { bind } = Function.prototype

attachForm(bind, function (this: any, ...args: unknown[]) {
  if (!unwinds(this)) return run(Reflect.apply(own(bind), this, args))
  return unwinding(Reflect.apply(bind, this, args) as Callable)
})

// JSON: a long text is parsed in parts, and a large value is written in parts.

const { parse } = JSON

attachForm(parse, function (this: unknown, ...args: unknown[]) {
  const [text] = args
  return typeof text === 'string' && text.length >= LONG_TEXT
    ? run(Reflect.apply(own(parse), this, args))
    : Reflect.apply(parse, this, args)
})

const { stringify } = JSON

attachForm(stringify, function (this: unknown, ...args: unknown[]) {
  return isBriefJson(args[0])
    ? Reflect.apply(stringify, this, args)
    : run(Reflect.apply(own(stringify), this, args))
})

// Long lists and texts, and replacers that unwind.

const { join } = prototype
const { split, replace, replaceAll } = String.prototype

attachForm(join, function (this: any, separator: any) {
  return isLongJoin(this, separator)
    ? run(Reflect.apply(own(join), this, [separator]))
    : join.call(this, separator)
})

attachForm(split, function (this: any, separator: any, limit: any) {
  return isLongSplit(this, separator, limit)
    ? run(Reflect.apply(own(split), this, [separator, limit]))
    : split.call(this, separator, limit)
})

for (const original of [replace, replaceAll]) {
  const all = original === replaceAll
  attachForm(original, function (this: any, search: any, replacement: any) {
    return isLongReplace(this, search, replacement, all)
      ? run(Reflect.apply(own(original), this, [search, replacement]))
      : original.call(this, search, replacement)
  })
}

// Their frames can move: each second form is found by its name.

registerMovable(
  'heddle',
  '',
  Object.entries({
    forEachAgain,
    mapAgain,
    mapOn,
    filterAgain,
    filterOn,
    someAgain,
    someOn,
    everyAgain,
    everyOn,
    findAgain,
    findOn,
    findIndexAgain,
    findIndexOn,
    reduceAgain,
    reduceOn,
    builtAgain,
  }).map(([key, reenter]) => ({ key, hash: '1', reenter: reenter as Reenter })),
)
