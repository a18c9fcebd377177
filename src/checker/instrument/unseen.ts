/**
 * Code that runs inside a thread and is not instrumented. It may have shared memory of its own, from the
 * set-up or from its own module, and its accesses are not steps:
 *
 *     thread 0                          thread 1
 *     --------                          --------
 *     n = library.count()               n = library.count()
 *     library.set(n + 1)                library.set(n + 1)        (no order of these four is tried)
 *
 * So an execution in which such code ran proves nothing: the result of the check is incomplete, and names the
 * code. Known code is instrumented code, the language, functions of the host that compute and keep nothing
 * (`hosts`), and vitest's `expect`.
 */
import { inspectors } from '../../compiler/runtime/builtins/inspectors.ts'
import { isIntrinsic } from './intrinsics.ts'
import { isInstrumented } from './marks.ts'
import { pending } from '../machine/pending.ts'
import { where } from './refusal.ts'

const { getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect

/** Modules of the host whose functions keep none of their arguments, and call nothing but their arguments. */
const modules: readonly string[] = [
  'assert assert/strict buffer console crypto path querystring string_decoder url util zlib',
].flatMap(line => line.split(' '))
const globals: readonly string[] = [
  'console structuredClone TextEncoder TextDecoder URL URLSearchParams atob btoa Buffer Blob crypto DOMException',
].flatMap(line => line.split(' '))

/** Of these, functions that get a function call it when the thread has gone on. */
const starting = new Set(['crypto', 'zlib'])

const hosts = new Set<unknown>()
const starters = new Set<unknown>()
function walk(x: unknown, depth: number): void {
  if ((typeof x !== 'object' && typeof x !== 'function') || x === null || hosts.has(x) || isIntrinsic(x))
    return
  hosts.add(x)
  if (depth === 0) return
  for (const name of ownKeys(x)) {
    const found = getOwnPropertyDescriptor(x, name)
    for (const part of [found?.value, found?.get, found?.set]) walk(part, depth - 1)
  }
  walk(getPrototypeOf(x), depth - 1)
}

interface Host {
  getBuiltinModule?: (name: string) => unknown
}
const host = (globalThis as { process?: Host }).process
for (const name of modules) {
  const before = new Set(hosts)
  walk(host?.getBuiltinModule?.(`node:${name}`), 3)
  if (starting.has(name)) for (const fn of hosts) if (!before.has(fn)) starters.add(fn)
}
for (const name of globals) walk((globalThis as unknown as Record<string, unknown>)[name], 3)
// A file has the time at which it was made.
hosts.delete((globalThis as { File?: unknown }).File)

/** Vitest's `expect`, if vitest runs the check. */
interface Expect {
  (value: unknown): object
  getState(): { assertionCalls: number }
  setState(state: { assertionCalls: number }): void
}

/**
 * The prototype of the assertions that `expect` returns, each behind a proxy. Null: it is not known yet, or
 * there is no `expect`.
 */
let assertion: object | null = null

/**
 * Assertions compute and throw, so they count as functions of the host. Called only when a thread runs
 * unknown code.
 */
function learnExpect(): void {
  const expect = (globalThis as unknown as Record<symbol, Expect | undefined>)[Symbol.for('expect-global')]
  if (assertion !== null || typeof expect !== 'function') return
  const { assertionCalls } = expect.getState()
  assertion = getPrototypeOf(expect(0))
  expect.setState({ assertionCalls })
  walk(expect, 3)
  walk(assertion, 3)
}

/** Whether this is the target of a proxy that `expect` returned. */
function isAssertion(target: object): boolean {
  learnExpect()
  return assertion !== null && inspectors?.isProxy(target) !== true && getPrototypeOf(target) === assertion
}

/** True for a function that is not known code. */
export function isUnseen(fn: unknown): fn is (...args: never[]) => unknown {
  if (typeof fn !== 'function' || isIntrinsic(fn) || pending.reals.has(fn) || hosts.has(fn)) return false
  if (isInstrumented(fn)) return false
  learnExpect()
  return !hosts.has(fn)
}

/** Whether this call gives a function of the host another one, which it calls later. */
export function startsLater(fn: unknown, args: readonly unknown[]): boolean {
  return starters.has(fn) && args.some(x => typeof x === 'function')
}

/** Notes that unknown code ran. */
export function ran(what: string): void {
  pending.unseen ??= `${what}, ${where()}: it is not instrumented, and what it shares with other threads is not known; name its module in the check: \`{ modules: [...] }\``
}

/** Notes the unknown functions among these values: something will call them. */
export function noteCallbacks(values: readonly unknown[]): void {
  for (const fn of values) {
    pending.refused.get(fn)?.(undefined, false)
    if (isUnseen(fn)) ran(`${fn.name || 'a function'} was called back`)
  }
}

/** Notes a proxy whose traps are unknown code. True for any proxy. */
function noteProxy(holder: object): boolean {
  if (isIntrinsic(holder) || inspectors?.isProxy(holder) !== true) return false
  const made = pending.proxies.get(holder)
  if (made === undefined) ran('a Proxy that was made before the check was used')
  else if (!isAssertion(made.target)) {
    const { handler } = made
    noteCallbacks(ownKeys(handler).map(name => getOwnPropertyDescriptor(handler, name)?.value as unknown))
  }
  return true
}

/** Objects that are neither proxies nor memory of the check, which never changes. */
const ordinary = new WeakSet<object>()

/** Whether the object has traps: those of the checker, or those of a proxy, which is noted. */
function isTrapped(holder: object): boolean {
  if (pending.reals.has(holder) || noteProxy(holder)) return true
  ordinary.add(holder)
  return false
}

/** Before a property is read: notes a getter that is unknown code. */
export function noteAccessor(value: object, key: PropertyKey): void {
  for (let holder: object | null = value; holder !== null; holder = getPrototypeOf(holder)) {
    if (!ordinary.has(holder) && isTrapped(holder)) return
    const found = getOwnPropertyDescriptor(holder, key)
    if (found === undefined) continue
    if (isUnseen(found.get)) ran(`the getter of ${String(key)} was called`)
    return
  }
}

/** Before a method is called: notes one that is unknown code, and returns it, unless a getter makes it. */
export function noteMethod(value: object, key: PropertyKey): unknown {
  for (let holder: object | null = value; holder !== null; holder = getPrototypeOf(holder)) {
    if (!ordinary.has(holder) && isTrapped(holder)) return undefined
    const found = getOwnPropertyDescriptor(holder, key)
    if (found === undefined) continue
    for (const fn of [found.value, found.get] as unknown[]) if (isUnseen(fn)) ran(`${String(key)} was called`)
    return found.value
  }
  return undefined
}

/** Before a value is converted by its own methods. */
export function noteConversion(value: object): void {
  for (const key of [Symbol.toPrimitive, 'valueOf', 'toString']) {
    for (let holder: object | null = value; holder !== null; holder = getPrototypeOf(holder)) {
      if (!ordinary.has(holder) && isTrapped(holder)) return
      const found = getOwnPropertyDescriptor(holder, key)
      if (found === undefined) continue
      for (const fn of [found.value, found.get] as unknown[])
        if (isUnseen(fn)) ran(`${String(key)} of an object was called`)
      break
    }
  }
}

/** Before a value is iterated by its own iterator. */
export function noteIteration(value: object): void {
  for (let holder: object | null = value; holder !== null; holder = getPrototypeOf(holder)) {
    if (!ordinary.has(holder) && isTrapped(holder)) return
    const found = getOwnPropertyDescriptor(holder, Symbol.iterator)
    if (found === undefined) continue
    for (const fn of [found.value, found.get] as unknown[]) if (isUnseen(fn)) ran('an iterator was driven')
    return
  }
}

/** Before the property `key` is written; undefined for a computed key: any property. */
export function noteSetter(value: object, key: PropertyKey | undefined): void {
  for (let holder: object | null = value; holder !== null; holder = getPrototypeOf(holder)) {
    if (!ordinary.has(holder) && isTrapped(holder)) return
    if (isIntrinsic(holder)) continue
    for (const name of key === undefined ? ownKeys(holder) : [key]) {
      const found = getOwnPropertyDescriptor(holder, name)
      if (found === undefined) continue
      if (isUnseen(found.set)) ran(`the setter of ${String(name)} was called`)
      if (key !== undefined) return
    }
  }
}

/**
 * Before a function of the language gets these values: it may call any code of theirs (methods that convert,
 * iterators, accessors, traps).
 */
export function noteGiven(values: readonly unknown[]): void {
  const seen = new Set<unknown>()
  let level: readonly unknown[] = values
  while (level.length > 0 && seen.size < GIVEN_MAX) {
    const deeper: unknown[] = []
    for (const x of level) {
      if (isUnseen(x)) ran(`${x.name || 'a function'} was called back`)
      if (typeof x !== 'object' || x === null || seen.has(x) || isIntrinsic(x) || pending.reals.has(x))
        continue
      seen.add(x)
      if (noteProxy(x)) continue
      noteConversion(x)
      noteIteration(x)
      for (const name of ownKeys(x)) {
        const found = getOwnPropertyDescriptor(x, name)
        if (isUnseen(found?.get)) ran(`the getter of ${String(name)} was called`)
        if (isUnseen(found?.set)) ran(`the setter of ${String(name)} was called`)
        if (typeof found?.value === 'object') deeper.push(found.value)
      }
    }
    level = deeper
  }
}

const GIVEN_MAX = 1000
