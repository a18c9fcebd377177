/**
 * `JSON.stringify` of a large value, in parts: the steps of the specification, in order, with its own stack.
 * Between two parts the task may be preempted. Code of the program (`toJSON`, a replacer, getters, traps of
 * proxies) is called as the original calls it, once. The original writes small objects that run no code, and
 * sequences of numbers and strings.
 */
import { part, put } from '../../../coroutine/core/define.ts'
import { inspectors } from '../builtins/inspectors.ts'
import { partsMost, partsOf } from './size.ts'

const quoteOriginal = JSON.stringify
const isRawJson = (JSON as { isRawJSON?: (value: unknown) => boolean }).isRawJSON ?? ((): boolean => false)

/** How many values are written between two safepoints. */
const STEP = 1_000
/** Plain elements of a list that the engine writes in one call. */
const BATCH = 256
/** Characters after which a piece of the text is flattened. */
const PIECE = 16 * 1024
/** More than the engine's stack holds: an infinite nesting ends here with the engine's error. */
const DEPTH_MOST = 100_000
/** How many quoted keys are cached. */
const KEYS_MOST = 4096

/** Characters that the engine may have to escape. */
// oxlint-disable-next-line no-control-regex
const isOdd = /["\\\u0000-\u001f\ud800-\udfff]/

/** An object or array that is being written. */
interface Open {
  readonly holder: any
  /** Null for an array. */
  readonly keys: readonly string[] | null
  readonly length: number
  /** The next key or index. */
  at: number
  isEmpty: boolean
  /** Its key in the object around it. */
  readonly name: string
  readonly around: Open | null
  readonly depth: number
}

type Replacer = (this: unknown, key: string, value: unknown) => unknown

export class PartwiseWriter {
  readonly #replacer: Replacer | null = null
  readonly #only: readonly string[] | null = null
  readonly #gap: string
  readonly #step: number
  readonly #most: number
  readonly #inside = new Set<object>()
  readonly #quoted = new Map<string, string>()
  readonly #pieces: string[] = []
  /** Whether `toJSON` can be read twice from objects with these prototypes. */
  readonly #prototypes = new Map<object | null, boolean>()
  readonly #batch: unknown[] = []
  #open: Open | null = null
  #text = ''
  #indent = ''
  #left = 0
  #isUndefined = false

  /** `atOnce`: how many objects and properties the original may write in one call. */
  constructor(
    value: unknown,
    replacer: unknown,
    space: unknown,
    step: number = STEP,
    atOnce: number = partsMost,
  ) {
    this.#step = step
    this.#most = atOnce
    if (typeof replacer === 'function') this.#replacer = replacer as Replacer
    else if (Array.isArray(replacer)) this.#only = namesIn(replacer)
    this.#gap = gapOf(space)
    if (!this.#value({ '': value }, '', value, '')) this.#isUndefined = true
  }

  /** The text; undefined if the value has none. */
  get result(): string | undefined {
    if (this.#isUndefined) return undefined
    return this.#pieces.length === 0 ? this.#text : this.#pieces.join('') + this.#text
  }

  /** Writes some more values. Returns true at the end. */
  advance(): boolean {
    for (this.#left = this.#step; this.#left > 0; this.#left--) {
      const top = this.#open
      if (top === null) return true
      if (top.at === top.length) this.#close(top)
      else if (top.keys === null) this.#element(top)
      else this.#member(top, top.keys[top.at++]!)
    }
    if (this.#text.length > PIECE) {
      // Flattens the string that was concatenated so far, instead of all of it at the end.
      this.#text.charCodeAt(0)
      define(this.#pieces, this.#text)
      this.#text = ''
    }
    return this.#open === null
  }

  #element(top: Open): void {
    const { holder } = top
    const batch = this.#batch
    let count = 0
    let value: any
    let isAll = false
    const most = this.#replacer === null && this.#gap === '' && !('toJSON' in batch) ? BATCH : 0
    for (;;) {
      value = holder[top.at++]
      const isPlain = typeof value === 'number' || typeof value === 'string' || value === null
      if (!isPlain || count === most) break
      put(batch, count++, value)
      isAll = top.at === top.length || count === most
      if (isAll) break
    }
    if (count > 0) {
      this.#left -= count >> 2
      this.#text +=
        this.#before(top) + quoteOriginal(count === batch.length ? batch : part(batch, 0, count)).slice(1, -1)
      top.isEmpty = false
      if (isAll) return
    }
    const before = this.#before(top)
    top.isEmpty = false
    if (!this.#value(holder, String(top.at - 1), value, before)) this.#text += `${before}null`
  }

  #member(top: Open, key: string): void {
    const colon = this.#gap === '' ? ':' : ': '
    const before = this.#before(top)
    if (this.#value(top.holder, key, top.holder[key], before, colon)) top.isEmpty = false
  }

  #before({ isEmpty }: Open): string {
    const comma = isEmpty ? '' : ','
    return this.#gap === '' ? comma : `${comma}\n${this.#indent}`
  }

  #close({ holder, keys, isEmpty, around }: Open): void {
    this.#open = around
    this.#inside.delete(holder)
    if (this.#gap !== '') {
      this.#indent = this.#indent.slice(this.#gap.length)
      if (!isEmpty) this.#text += `\n${this.#indent}`
    }
    this.#text += keys === null ? ']' : '}'
  }

  /**
   * Writes a property after `before` and, if `colon` is given, its name. Returns false, and writes nothing,
   * if the value has no text.
   */
  #value(holder: any, key: string, read: unknown, before: string, colon = ''): boolean {
    let value: any = read
    let isAsItWas = this.#replacer === null
    if (
      (typeof value === 'object' && value !== null) ||
      typeof value === 'function' ||
      typeof value === 'bigint'
    ) {
      const { toJSON } = value
      if (typeof toJSON === 'function') {
        value = Reflect.apply(toJSON, value, [key])
        isAsItWas = false
      }
    }
    if (this.#replacer !== null) value = Reflect.apply(this.#replacer, holder, [key, value])
    let text: string | null = null
    if (typeof value === 'object' && value !== null) {
      if (isRawJson(value)) text = value.rawJSON as string
      else if (inspectors!.isBoxedPrimitive(value)) value = unboxed(value)
    }
    switch (typeof value) {
      case 'string':
        text = isOdd.test(value) ? quoteOriginal(value) : `"${value}"`
        break
      case 'number':
        text = Number.isFinite(value) ? `${value}` : 'null'
        break
      case 'boolean':
        text = value ? 'true' : 'false'
        break
      case 'bigint':
        throw new TypeError('Do not know how to serialize a BigInt')
      case 'object':
        if (value === null) text = 'null'
        break
      default:
        return false
    }
    const name = colon === '' ? before : `${before}${this.#quote(key)}${colon}`
    if (text === null && isAsItWas && this.#open !== null) text = this.#atOnce(value)
    if (text === null) this.#begin(value, key, name)
    else this.#text += name + text
    return true
  }

  /** The text of a small object, as the original writes it; null if it must be written in parts. */
  #atOnce(value: object): string | null {
    if (this.#inside.has(value) || inspectors!.isProxy(value)) return null
    const prototype = Object.getPrototypeOf(value) as object | null
    let isPlain = this.#prototypes.get(prototype)
    if (isPlain === undefined) {
      isPlain = !runsCode(prototype)
      this.#prototypes.set(prototype, isPlain)
    }
    const parts = isPlain ? partsOf(value, this.#inside, this.#most) : 0
    if (parts === 0 || this.#gap.includes('\n')) return null
    this.#left -= parts
    const text = quoteOriginal(value, this.#only as string[] | null, this.#gap)
    return this.#gap === '' ? text : text.replaceAll('\n', `\n${this.#indent}`)
  }

  #begin(value: any, key: string, before: string): void {
    if (this.#inside.has(value)) this.#refuseCycle(value, key)
    this.#inside.add(value)
    const isList = Array.isArray(value)
    const keys = isList ? null : (this.#only ?? Object.keys(value))
    const length = isList ? lengthOf(value) : keys!.length
    this.#text += before + (isList ? '[' : '{')
    this.#indent += this.#gap
    const around = this.#open
    const depth = around === null ? 1 : around.depth + 1
    if (depth > DEPTH_MOST) throw new RangeError('Maximum call stack size exceeded')
    this.#open = { holder: value, keys, length, at: 0, isEmpty: true, name: key, around, depth }
  }

  #quote(key: string): string {
    let quoted = this.#quoted.get(key)
    if (quoted === undefined) {
      quoted = quoteOriginal(key)
      if (this.#quoted.size < KEYS_MOST) this.#quoted.set(key, quoted)
    }
    return quoted
  }

  /** Lets the engine throw its own error for a circular structure of the same shape. */
  #refuseCycle(start: object, key: string): never {
    const circle: Open[] = []
    for (let at = this.#open; at !== null; at = at.holder === start ? null : at.around) circle.unshift(at)
    const made = circle.map(({ holder }) => likeness(holder))
    for (const [index, one] of made.entries()) {
      const isLast = index === made.length - 1
      const name = isLast ? key : circle[index + 1]!.name
      Object.defineProperty(one, name, {
        value: isLast ? made[0] : made[index + 1],
        enumerable: true,
        configurable: true,
      })
    }
    quoteOriginal(made[0])
    throw new TypeError('Converting circular structure to JSON')
  }
}

/** True if reading `toJSON` of an object with this prototype may run code. */
function runsCode(prototype: object | null): boolean {
  for (let at = prototype; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    if (inspectors!.isProxy(at) || Object.getOwnPropertyDescriptor(at, 'toJSON')?.get !== undefined)
      return true
  }
  return false
}

/** An empty object that has the same name in an error message. */
function likeness(object: object): object {
  const prototype = Object.getPrototypeOf(object) as object | null
  const made = Array.isArray(object) ? Object.setPrototypeOf([], prototype) : Object.create(prototype)
  return Object.defineProperty(made, 'toJSON', { value: undefined, enumerable: false })
}

/** `push` that ignores setters on prototypes. */
function define(list: unknown[], value: unknown): void {
  Object.defineProperty(list, list.length, { value, writable: true, enumerable: true, configurable: true })
}

/** `LengthOfArrayLike`. */
function lengthOf(list: { length: unknown }): number {
  const length = Math.trunc(Number(list.length)) || 0
  return Math.min(Math.max(length, 0), Number.MAX_SAFE_INTEGER)
}

const numberOf = Number.prototype.valueOf
const textOf = String.prototype.valueOf
const booleanOf = Boolean.prototype.valueOf
const bigOf = BigInt.prototype.valueOf

function is(of: () => unknown, value: unknown): boolean {
  try {
    Reflect.apply(of, value, [])
    return true
  } catch {
    return false
  }
}

/** The primitive in a wrapper object; for a symbol's wrapper, the wrapper. */
function unboxed(value: any): unknown {
  if (is(numberOf, value)) return Number(value)
  if (is(textOf, value)) return String(value)
  if (is(booleanOf, value)) return Reflect.apply(booleanOf, value, [])
  return is(bigOf, value) ? Reflect.apply(bigOf, value, []) : value
}

/** The property names that a replacer array selects. */
function namesIn(list: readonly unknown[]): string[] {
  const names = new Set<string>()
  const length = lengthOf(list)
  for (let at = 0; at < length; at++) {
    const name: any = list[at]
    if (typeof name === 'string') names.add(name)
    else if (typeof name === 'number') names.add(String(name))
    else if (inspectors!.isBoxedPrimitive(name) && (is(numberOf, name) || is(textOf, name)))
      names.add(String(name))
  }
  return [...names]
}

/** The indentation of each level. */
function gapOf(given: unknown): string {
  let space: any = given
  if (typeof space === 'object' && space !== null && inspectors!.isBoxedPrimitive(space)) {
    if (is(numberOf, space)) space = Number(space)
    else if (is(textOf, space)) space = String(space)
  }
  if (typeof space === 'number') return ' '.repeat(Math.max(0, Math.min(10, Math.trunc(space) || 0)))
  return typeof space === 'string' ? space.slice(0, 10) : ''
}
