import { isStaying } from './staying.ts'
import { ofAnotherCopy, onRegister, travellingOf } from './travelling.ts'

/**
 * The kind of an object, by its internal slots as in structured clone: `Object.create(Date.prototype)` is a
 * plain object, and a Map of another realm is a Map. JavaScript cannot read slots, but some methods throw
 * without them. The prototype says which method to call; the result for each prototype is cached.
 */
export const PLAIN = 0
export const ARRAY = 1
export const MAP = 2
export const SET = 3
export const DATE = 4
export const REGEXP = 5
export const ERROR = 6
export const DOM_EXCEPTION = 7
export const VIEW = 8
export const ARRAY_BUFFER = 9
export const BOXED = 10
/**
 * A published object: a SharedArrayBuffer, or an object that only the platform can copy (a compiled
 * WebAssembly module).
 */
export const PUBLISHED = 11
export const TRAVELLING = 12
const UNTRAVELABLE = 13

type SlotCheck = (value: object) => unknown

function getter(prototype: object, name: PropertyKey): SlotCheck {
  const get = Object.getOwnPropertyDescriptor(prototype, name)?.get
  if (get === undefined) return () => undefined
  return value => get.call(value) as unknown
}

const mapSize: SlotCheck = getter(Map.prototype, 'size')
const setSize: SlotCheck = getter(Set.prototype, 'size')
export const regexpSource: SlotCheck = getter(RegExp.prototype, 'source')
export const regexpFlags: SlotCheck = getter(RegExp.prototype, 'flags')
export const dateTime = (value: object): number => Date.prototype.getTime.call(value)
const arrayBufferLength: SlotCheck = getter(ArrayBuffer.prototype, 'byteLength')
const sharedLength: SlotCheck =
  typeof SharedArrayBuffer === 'undefined' ? fails : getter(SharedArrayBuffer.prototype, 'byteLength')
const domCode: SlotCheck =
  typeof DOMException === 'undefined' ? fails : getter(DOMException.prototype, 'code')
const typedArrayPrototype = Object.getPrototypeOf(Uint8Array.prototype) as object
/** 'Uint8Array' and so on; undefined for anything else. */
export const typedArrayName: SlotCheck = getter(typedArrayPrototype, Symbol.toStringTag)

function fails(): never {
  throw new TypeError('not on this platform')
}

const isErrorByPlatform = (Error as unknown as { isError?: (value: unknown) => boolean }).isError

function errorOrThrow(value: object): void {
  const is =
    isErrorByPlatform === undefined
      ? Object.prototype.toString.call(value) === '[object Error]'
      : isErrorByPlatform(value)
  if (!is) fails()
}

/**
 * Returns the primitive of a boxed Number, String, Boolean or BigInt. Throws for any other object, also for a
 * boxed symbol.
 */
export function unbox(value: object): number | string | boolean | bigint {
  switch (Object.prototype.toString.call(value)) {
    case '[object Number]':
      return Number.prototype.valueOf.call(value)
    case '[object String]':
      return String.prototype.valueOf.call(value)
    case '[object Boolean]':
      return Boolean.prototype.valueOf.call(value)
    case '[object BigInt]':
      return BigInt.prototype.valueOf.call(value)
    default:
      return fails()
  }
}

const brands: Partial<Record<number, SlotCheck>> = {
  [MAP]: mapSize,
  [SET]: setSize,
  [DATE]: dateTime,
  [REGEXP]: regexpSource,
  [ERROR]: errorOrThrow,
  [DOM_EXCEPTION]: domCode,
  [VIEW]: value => ArrayBuffer.isView(value) || fails(),
  [ARRAY_BUFFER]: arrayBufferLength,
  [BOXED]: unbox,
  [PUBLISHED]: value => {
    if (Object.prototype.toString.call(value) === '[object SharedArrayBuffer]') sharedLength(value)
  },
}

/** By the tag of the platform's own prototypes, which is the same in every realm. */
const kindByTag: ReadonlyMap<string, number> = new Map([
  ['Map', MAP],
  ['Set', SET],
  ['DOMException', DOM_EXCEPTION],
  ['ArrayBuffer', ARRAY_BUFFER],
  ['DataView', VIEW],
  ['BigInt', BOXED],
  ['SharedArrayBuffer', PUBLISHED],
  ['WebAssembly.Module', PUBLISHED],
  ['WebAssembly.Memory', PUBLISHED],
  ['Blob', PUBLISHED],
  ['File', PUBLISHED],
  ['CryptoKey', PUBLISHED],
  ['KeyObject', PUBLISHED],
  ['Promise', UNTRAVELABLE],
  ['WeakMap', UNTRAVELABLE],
  ['WeakSet', UNTRAVELABLE],
  ['WeakRef', UNTRAVELABLE],
  ['FinalizationRegistry', UNTRAVELABLE],
  ['Symbol', UNTRAVELABLE],
  ['Generator', UNTRAVELABLE],
  ['AsyncGenerator', UNTRAVELABLE],
  ['Array Iterator', UNTRAVELABLE],
  ['Map Iterator', UNTRAVELABLE],
  ['Set Iterator', UNTRAVELABLE],
  ['String Iterator', UNTRAVELABLE],
  ['RegExp String Iterator', UNTRAVELABLE],
  ['Iterator Helper', UNTRAVELABLE],
  ['DisposableStack', UNTRAVELABLE],
  ['AsyncDisposableStack', UNTRAVELABLE],
  ['URL', UNTRAVELABLE],
  ['URLSearchParams', UNTRAVELABLE],
  ['Headers', UNTRAVELABLE],
  ['Request', UNTRAVELABLE],
  ['Response', UNTRAVELABLE],
  ['FormData', UNTRAVELABLE],
  ['MessagePort', UNTRAVELABLE],
  ['BroadcastChannel', UNTRAVELABLE],
  ['ReadableStream', UNTRAVELABLE],
  ['WritableStream', UNTRAVELABLE],
  ['TransformStream', UNTRAVELABLE],
  ['AbortSignal', UNTRAVELABLE],
  ['AbortController', UNTRAVELABLE],
])

/** By constructor name, for classes of the platform that have no tag. The same in every realm. */
const kindByConstructor: ReadonlyMap<string, number> = new Map([
  ['Date', DATE],
  ['RegExp', REGEXP],
  ['Error', ERROR],
  ['MessagePort', UNTRAVELABLE],
  ['Number', BOXED],
  ['String', BOXED],
  ['Boolean', BOXED],
])

let kindByPrototype = new WeakMap<object, number>()
onRegister(() => {
  kindByPrototype = new WeakMap()
})

/** Returns the kind of an object. Runs no code of the object, except that a Proxy sees `getPrototypeOf`. */
export function kindOf(value: object): number {
  if (Array.isArray(value)) return ARRAY
  const prototype = Object.getPrototypeOf(value) as object | null
  if (prototype === Object.prototype || prototype === null) return PLAIN
  let kind = kindByPrototype.get(prototype)
  if (kind === undefined) {
    kind = kindOfPrototype(prototype)
    kindByPrototype.set(prototype, kind)
  }
  if (kind === PLAIN) return PLAIN
  const brand = brands[kind]
  if (brand === undefined) return kind
  try {
    brand(value)
    return kind
  } catch {
    return kind === BOXED && Object.prototype.toString.call(value) === '[object Symbol]'
      ? UNTRAVELABLE
      : PLAIN
  }
}

function kindOfPrototype(prototype: object): number {
  if (travellingOf(prototype) !== undefined) return TRAVELLING
  if (ofAnotherCopy(prototype) !== undefined) return UNTRAVELABLE
  for (let at: object | null = prototype; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const tag = Object.getOwnPropertyDescriptor(at, Symbol.toStringTag)
    if (tag?.get !== undefined && isTypedArrayTag(tag.get)) return VIEW
    const kind = typeof tag?.value === 'string' ? kindOfTag(tag.value, at) : undefined
    if (kind !== undefined) return kind
    if (isStaying(at)) return UNTRAVELABLE
    if (Object.getOwnPropertySymbols(at).some(isCloneSymbol)) return PUBLISHED
    if (Object.hasOwn(at, 'constructor')) {
      const constructor = (at as { constructor: unknown }).constructor
      const isNative = typeof constructor === 'function' && nativeCode.test(constructor.toString())
      if (isNative && kindByConstructor.has(constructor.name))
        return kindByConstructor.get(constructor.name) as number
    }
  }
  return PLAIN
}

/** On the prototypes of Node's own classes that only its messages can copy: BlockList, Histogram. */
function isCloneSymbol(symbol: symbol): boolean {
  return symbol.description?.endsWith('messaging_clone_symbol') === true
}

const nativeCode = /\{\s*\[native code\]\s*\}$/

function isTypedArrayTag(get: () => unknown): boolean {
  return get.name === 'get [Symbol.toStringTag]' && nativeCode.test(get.toString())
}

function kindOfTag(tag: string, prototype: object): number | undefined {
  const kind = kindByTag.get(tag)
  if (kind === undefined) {
    return tag.startsWith('Intl.') || tag.startsWith('Temporal.') ? UNTRAVELABLE : undefined
  }
  if ((kind !== UNTRAVELABLE && kind !== PUBLISHED) || tag === 'SharedArrayBuffer') return kind
  // These classes have no method to call. A class of the program with the same tag is excluded: it is not the
  // global of that name.
  const own = (globalThis as unknown as Record<string, { prototype?: unknown } | undefined>)[tag]
  return own === undefined || own.prototype === prototype ? kind : undefined
}
