/**
 * Code that runs without a call: a getter, a trap of a proxy, the conversion of an object. Such code may
 * change something of its own. So a turn of a loop in which it ran is not useless, unless the code is known
 * to change nothing.
 *
 *     spinner                                     other
 *     -------                                     -----
 *     turn 1: load x → 0, counted.value → 1
 *     turn 2: load x → 0, counted.value → 2       (`value` has a getter that counts: turn 2 is not turn 1)
 *
 * Conversions of objects count as effects where they happen. Properties are read all the time, so a thread
 * only notes its reads (`peek`). Its notes of a turn are checked when the turn seems useless. Quiet are a
 * data property, an accessor of the language, and an accessor of the check's own code, which reports its
 * effects itself; other accessors are not.
 */
import { inspectors } from '../../compiler/runtime/builtins/inspectors.ts'
import { resumableOf } from '../../compiler/runtime/builtins/callback.ts'
import { isIntrinsic } from './intrinsics.ts'
import { effect, NOTED_MAX, pending } from '../machine/pending.ts'
import {
  noteAccessor,
  noteCallbacks,
  noteConversion,
  noteGiven,
  noteIteration,
  noteSetter,
} from './unseen.ts'

const isProxy = (x: object): boolean => inspectors === null || inspectors.isProxy(x)
const { getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const { noted, notedKeys } = pending

function isObject(x: unknown): x is object {
  return (typeof x === 'object' && x !== null) || typeof x === 'function'
}

/** `holder`, of which the property `key` is read next. */
export function peek<T>(holder: T, key: unknown): T {
  const thread = pending.current
  if (thread >= 0 && isObject(holder)) {
    const at = thread * NOTED_MAX + (pending.propertiesRead[thread]++ & (NOTED_MAX - 1))
    noted[at] = holder
    notedKeys[at] = key
    if (isObject(key)) primitive(key)
    else noteAccessor(holder, key as PropertyKey)
  }
  return holder
}

/** `value`, which is converted next. */
export function primitive<T>(value: T): T {
  if (isObject(value)) {
    effect()
    if (pending.current >= 0) noteConversion(value)
  }
  return value
}

/** The right side of `in`: a proxy has a trap for it. */
export function within<T>(value: T): T {
  if (isObject(value)) {
    for (let holder: object | null = value; holder !== null; holder = getPrototypeOf(holder)) {
      if (pending.reals.has(holder)) break
      if (!isProxy(holder)) continue
      effect()
      if (pending.current >= 0) noteAccessor(holder, '')
      break
    }
  }
  return value
}

/** The left side of `instanceof`: a proxy has a trap for its prototype. */
export function unproxied<T>(value: T): T {
  if (isObject(value) && !pending.reals.has(value) && isProxy(value)) effect()
  return value
}

/** The right side of `instanceof`. */
export function kind<T>(value: T): T {
  if (typeof value !== 'function' || !isQuiet(value, Symbol.hasInstance) || !isQuiet(value, 'prototype'))
    effect()
  else if ((value as never as Record<symbol, unknown>)[Symbol.hasInstance] !== hasInstance) {
    effect()
    if (pending.current >= 0) noteCallbacks([(value as never as Record<symbol, unknown>)[Symbol.hasInstance]])
  }
  return value
}

const hasInstance = Function.prototype[Symbol.hasInstance]

/** `holder`, of which a property is written next. `key` is undefined if it is computed. */
export function poke<T>(holder: T, key: PropertyKey | undefined): T {
  if (pending.current >= 0 && isObject(holder)) noteSetter(holder, key)
  return holder
}

/** The source of a `for…of` loop that is not a view. */
export function through<T>(list: T): T {
  if (pending.current >= 0 && isObject(list)) noteIteration(list)
  return list
}

/** Whether reading a property runs no code that may change something unseen. */
function isQuiet(value: object, key: PropertyKey): boolean {
  if (pending.reals.has(value)) return true
  for (let holder: object | null = value; holder !== null; holder = getPrototypeOf(holder)) {
    if (pending.reals.has(holder)) return true
    if (isProxy(holder)) return isIntrinsic(holder)
    const found = getOwnPropertyDescriptor(holder, key)
    if (found !== undefined)
      return found.get === undefined || isIntrinsic(found.get) || resumableOf(found.get) !== undefined
  }
  return true
}

/** Whether all notes of a thread from `since` on are quiet. */
function wasQuiet(thread: number, since: number): boolean {
  const count = (pending.propertiesRead[thread] - since) | 0
  if (count < 0 || count > NOTED_MAX) return false
  for (let look = since; look !== pending.propertiesRead[thread]; look = (look + 1) | 0) {
    const at = thread * NOTED_MAX + (look & (NOTED_MAX - 1))
    const key = notedKeys[at]
    if (isObject(key) || !isQuiet(noted[at] as object, key as PropertyKey)) return false
  }
  return true
}
pending.wasQuiet = wasQuiet

const arrayIterator = Array.prototype[Symbol.iterator]
const nextOfArray: { next: unknown } = getPrototypeOf([][Symbol.iterator]()) as never
const { next } = nextOfArray

/** True for an array whose elements can all be read without running code that may change something. */
export function isQuietList(list: unknown): boolean {
  if (!Array.isArray(list) || isProxy(list)) return false
  for (let i = 0; i < list.length; i++) if (!isQuiet(list, String(i))) return false
  return true
}

/** The source of a spread or an array pattern that is not a view: anything but a plain array may run code. */
export function listed<T>(list: T): T {
  if (pending.current < 0 || typeof list === 'string') return list
  const plain =
    isQuietList(list) &&
    (list as never as unknown[])[Symbol.iterator] === arrayIterator &&
    nextOfArray.next === next
  if (!plain) {
    effect()
    if (isObject(list)) noteIteration(list)
  }
  return list
}

/** The source of an object pattern; `names` is null for all its own properties. */
export function parts<T>(value: T, names: readonly string[] | null): T {
  if (pending.current < 0 || !isObject(value)) return value
  if (names === null) noteGiven([value])
  else for (const name of names) noteAccessor(value, name)
  if (names === null && isProxy(value) && !pending.reals.has(value)) effect()
  else for (const name of names ?? Reflect.ownKeys(value)) if (!isQuiet(value, name)) effect()
  return value
}
