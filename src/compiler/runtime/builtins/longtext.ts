/**
 * `join` of long lists, `split`, `replace` and `replaceAll` of long texts, in parts: the steps of the
 * specification, with a safepoint between elements and between matches. One match, and one element's
 * `toString`, run to their end. A replacer that can be suspended is suspended inside `replace` and
 * `replaceAll`.
 */
import { needResched, PREEMPTED } from '../../../coroutine/core/coroutine.ts'
import { define } from '../../../coroutine/core/define.ts'
import { type Callable, resumableOf } from './callback.ts'
import { inspectors } from './inspectors.ts'
import { LONG_LIST } from '../sort/defaultsort.ts'

type Stops<T> = Generator<number, T, unknown>

/** Shorter texts are split and searched in one call. */
export const LONG_SPLIT: number = 65_536
/** Elements, pieces or matches between two safepoints, as a mask. */
const stepsBetween = 1023

const { join } = Array.prototype
const { indexOf, slice } = String.prototype
const { exec } = RegExp.prototype
const textOf = String

/** `list.join(separator)`. */
export function* joinLong(list: any, length: number, separator: string): Stops<string> {
  let text = ''
  let part: unknown[] = []
  let held = 0
  for (let k = 0; k < length; k++) {
    const value = list[k]
    if (
      (typeof value === 'object' && value !== null) ||
      typeof value === 'function' ||
      typeof value === 'symbol'
    ) {
      if (held > 0) text += Reflect.apply(join, part, [separator]) + separator
      return text + Reflect.apply(join, tailOf(list, k, length, value), [separator])
    }
    define(part, held++, value)
    if ((k & stepsBetween) === stepsBetween || k === length - 1) {
      text += Reflect.apply(join, part, [separator])
      if (k < length - 1) text += separator
      part = []
      held = 0
      if (needResched()) yield PREEMPTED
    }
  }
  return text
}

/** The rest of a list from the element `at`, which has been read already. */
function tailOf(list: any, at: number, length: number, value: unknown): object {
  return new Proxy([], {
    get: (_, key) => {
      if (key === 'length') return length - at
      return key === '0' ? value : list[at + Number(key)]
    },
  })
}

/** `text.split(separator)` by a string. */
export function* splitLong(text: string, separator: string): Stops<string[]> {
  const pieces: string[] = []
  let count = 0
  const step = separator.length
  if (step === 0) {
    for (; count < text.length; count++) {
      define(pieces, count, text[count])
      if ((count & stepsBetween) === stepsBetween && needResched()) yield PREEMPTED
    }
    return pieces
  }
  let from = 0
  for (;;) {
    const at = Reflect.apply(indexOf, text, [separator, from]) as number
    define(pieces, count++, Reflect.apply(slice, text, at < 0 ? [from] : [from, at]))
    if (at < 0) return pieces
    from = at + step
    if ((count & stepsBetween) === 0 && needResched()) yield PREEMPTED
  }
}

/** A match to replace. */
interface Match {
  readonly text: string
  readonly at: number
  /** The arguments for a replacer. */
  readonly args: unknown[]
}

/** `text.replaceAll(search, replacement)` of a string, or `replace` if only the first match counts. */
export function* replaceText(
  text: string,
  search: string,
  replacement: string | Callable,
  all: boolean,
): Stops<string> {
  const matches: Match[] = []
  const step = Math.max(1, search.length)
  let at = Reflect.apply(indexOf, text, [search, 0]) as number
  while (at >= 0) {
    define(matches, matches.length, { text: search, at, args: [search, at, text] })
    if (!all || at + step > text.length) break
    at = Reflect.apply(indexOf, text, [search, at + step]) as number
    if ((matches.length & stepsBetween) === 0 && needResched()) yield PREEMPTED
  }
  return yield* replaced(text, matches, replacement)
}

/** The same for a regular expression that `isOrdinary`. */
export function* replaceMatches(text: string, search: RegExp, replacement: string | Callable): Stops<string> {
  const { global, unicode, unicodeSets } = search as RegExp & { unicodeSets?: boolean }
  const matches: Match[] = []
  if (global) search.lastIndex = 0
  for (;;) {
    const found = Reflect.apply(exec, search, [text]) as RegExpExecArray | null
    if (found === null) break
    define(matches, matches.length, { text: found[0], at: found.index, args: argumentsOf(found, text) })
    if (!global) break
    if (found[0] === '')
      search.lastIndex = advanceIndex(text, search.lastIndex, unicode || unicodeSets === true)
    if ((matches.length & stepsBetween) === 0 && needResched()) yield PREEMPTED
  }
  return yield* replaced(text, matches, replacement)
}

function argumentsOf(found: RegExpExecArray, text: string): unknown[] {
  const args: unknown[] = []
  for (let k = 0; k < found.length; k++) define(args, k, found[k])
  define(args, args.length, found.index)
  define(args, args.length, text)
  if (found.groups !== undefined) define(args, args.length, found.groups)
  return args
}

/** `AdvanceStringIndex`. */
function advanceIndex(text: string, index: number, unicode: boolean): number {
  return unicode && (text.codePointAt(index) ?? 0) > 0xffff ? index + 2 : index + 1
}

function* replaced(text: string, matches: readonly Match[], replacement: string | Callable): Stops<string> {
  if (matches.length === 0) return text
  const resumable = typeof replacement === 'function' ? resumableOf(replacement) : undefined
  let made = ''
  let end = 0
  for (let k = 0; k < matches.length; k++) {
    const { text: matched, at, args } = matches[k]!
    let by: unknown = replacement
    if (resumable !== undefined) by = yield* Reflect.apply(resumable, undefined, args)
    else if (typeof replacement === 'function') by = Reflect.apply(replacement, undefined, args)
    if (typeof by !== 'string') by = textFrom(by)
    made += (Reflect.apply(slice, text, [end, at]) as string) + (by as string)
    end = at + matched.length
    if ((k & stepsBetween) === stepsBetween && needResched()) yield PREEMPTED
  }
  return made + (Reflect.apply(slice, text, [end]) as string)
}

/** `ToString`: throws for a symbol, as a template does. */
function textFrom(value: unknown): string {
  return typeof value === 'symbol' ? `${value as never}` : textOf(value)
}

const pattern: any = RegExp.prototype
const members = ['exec', 'flags', 'global', 'unicode', 'unicodeSets', 'hasIndices', 'sticky', Symbol.replace]
/** The built-in descriptors. */
const originals = members.map(name => Object.getOwnPropertyDescriptor(pattern, name))

/** True if using this expression runs no code of the program. */
function isOrdinary(search: unknown): search is RegExp {
  if (inspectors?.isRegExp(search) !== true || Object.getPrototypeOf(search) !== pattern) return false
  if (Reflect.ownKeys(search as object).length !== 1 || typeof (search as RegExp).lastIndex !== 'number') {
    return false
  }
  return members.every((name, at) => {
    const found = Object.getOwnPropertyDescriptor(pattern, name)
    const known = originals[at]
    return found?.value === known?.value && found?.get === known?.get
  })
}

/** The length of an array if reading it runs no code, else 0. */
export function plainLength(list: unknown): number {
  return Array.isArray(list) && inspectors?.isProxy(list) === false ? list.length : 0
}

/** The calls that are made in parts: of long lists and texts, with arguments that run no code. */
export function isLongJoin(list: unknown, separator: unknown): boolean {
  return plainLength(list) >= LONG_LIST && (separator === undefined || typeof separator === 'string')
}

export function isLongSplit(text: unknown, separator: unknown, limit: unknown): boolean {
  return (
    typeof text === 'string' &&
    text.length >= LONG_SPLIT &&
    typeof separator === 'string' &&
    limit === undefined &&
    !(Symbol.split in String.prototype)
  )
}

/** A long text, or a replacer that can be suspended. */
export function isLongReplace(text: unknown, search: unknown, replacement: unknown, all: boolean): boolean {
  if (typeof text !== 'string') return false
  if (text.length < LONG_SPLIT) {
    if (typeof replacement !== 'function' || resumableOf(replacement as Callable) === undefined) return false
  } else if (typeof replacement !== 'function') {
    if (typeof replacement !== 'string' || replacement.includes('$')) return false
  }
  if (typeof search === 'string') return !(Symbol.replace in String.prototype)
  return isOrdinary(search) && (search.global || !all)
}
