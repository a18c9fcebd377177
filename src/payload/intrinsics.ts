/**
 * The objects and functions of the platform, by name: `Math.floor`, `Array.prototype.push`. The frames of a
 * task hold them: a method is read before its arguments are evaluated. Every realm has its own, so an image
 * names them.
 */

/** The roots of the walk. One that the platform lacks is left out. */
const roots = [
  'Object Function Array String Number Boolean Symbol BigInt Math JSON Reflect Map Set WeakMap WeakSet WeakRef',
  'FinalizationRegistry Promise Proxy Date RegExp Error EvalError RangeError ReferenceError SyntaxError TypeError',
  'URIError AggregateError ArrayBuffer SharedArrayBuffer DataView Int8Array Uint8Array Uint8ClampedArray Int16Array',
  'Uint16Array Int32Array Uint32Array Float16Array Float32Array Float64Array BigInt64Array BigUint64Array Atomics',
  'Iterator Intl Temporal WebAssembly DOMException TextEncoder TextDecoder URL URLSearchParams AbortController',
  'AbortSignal Event EventTarget Blob Buffer console performance crypto parseInt parseFloat isNaN isFinite',
  'encodeURIComponent decodeURIComponent encodeURI decodeURI escape unescape structuredClone queueMicrotask',
  'setTimeout clearTimeout setInterval clearInterval setImmediate clearImmediate atob btoa fetch',
].join(' ')

/** Objects that no global names. */
const hidden: Record<string, () => object | null> = {
  '%ArrayIterator%': () => prototypeOf([][Symbol.iterator]()),
  '%MapIterator%': () => prototypeOf(new Map().entries()),
  '%SetIterator%': () => prototypeOf(new Set().values()),
  '%StringIterator%': () => prototypeOf(''[Symbol.iterator]()),
  '%RegExpStringIterator%': () => prototypeOf('a'.matchAll(/a/g)),
  '%Iterator%': () => prototypeOf(prototypeOf([][Symbol.iterator]()) as object),
  '%TypedArray%': () => prototypeOf(Uint8Array),
  '%Generator%': () => prototypeOf(function* () {}),
  '%AsyncFunction%': () => prototypeOf(async function () {}),
}

function prototypeOf(value: object): object | null {
  return Object.getPrototypeOf(value) as object | null
}

interface Intrinsics {
  readonly names: Map<object, string>
  readonly objects: Map<string, object>
}

let known: Intrinsics | null = null

function intrinsics(): Intrinsics {
  if (known !== null) return known
  known = { names: new Map(), objects: new Map() }
  add('globalThis', globalThis, 0)
  for (const name of roots.split(' ')) {
    const value = (globalThis as Record<string, unknown>)[name]
    if (isObject(value)) add(name, value, 2)
  }
  for (const [name, find] of Object.entries(hidden)) {
    const value = find()
    if (value !== null) add(name, value, 2)
  }
  return known
}

/** Adds an object and, `levels` deep, its functions and prototypes. Calls no getter. */
function add(name: string, value: object, levels: number): void {
  const { names, objects } = known!
  objects.set(name, value)
  if (names.has(value)) return
  names.set(value, name)
  if (levels === 0) return
  for (const key of Reflect.ownKeys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key)!
    const step = typeof key === 'symbol' ? `[${String(key.description)}]` : `.${key}`
    if (typeof property.value === 'function') add(name + step, property.value as object, levels - 1)
    else if (key === 'prototype' && isObject(property.value)) add(name + step, property.value, levels)
    if (property.get !== undefined) add(`${name}${step}:get`, property.get, 0)
    if (property.set !== undefined) add(`${name}${step}:set`, property.set, 0)
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null)
}

/** The name of an object of the platform, or undefined. */
export function intrinsicName(value: object): string | undefined {
  return intrinsics().names.get(value)
}

/** Classes that are not those of the language. An instance has a state that only the platform can copy. */
const hosts: ReadonlySet<string> = new Set(
  'TextEncoder TextDecoder URL URLSearchParams AbortController AbortSignal Event EventTarget Blob'.split(' '),
)

export function isHostClass(value: object): boolean {
  const name = intrinsicName(value)
  return name !== undefined && hosts.has(name)
}

export function intrinsicByName(name: string): object | undefined {
  return intrinsics().objects.get(name)
}

const wellKnown: ReadonlyMap<symbol, string> = new Map(
  Object.getOwnPropertyNames(Symbol)
    .map(name => [(Symbol as unknown as Record<string, unknown>)[name], name] as const)
    .filter((entry): entry is [symbol, string] => typeof entry[0] === 'symbol'),
)

/** The name of a symbol that every realm has; the key of one that `Symbol.for` returned; or undefined. */
export function symbolName(value: symbol): { name: string; isRegistered: boolean } | undefined {
  const known = wellKnown.get(value)
  if (known !== undefined) return { name: known, isRegistered: false }
  const key = Symbol.keyFor(value)
  return key === undefined ? undefined : { name: key, isRegistered: true }
}

export function symbolByName(name: string, isRegistered: boolean): symbol | undefined {
  if (isRegistered) return Symbol.for(name)
  const found = (Symbol as unknown as Record<string, unknown>)[name]
  return typeof found === 'symbol' ? found : undefined
}
