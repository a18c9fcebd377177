/**
 * `JSON.parse` of a long text, in parts. A scanner finds the ends of elements, and the engine's own parser
 * reads a batch of whole elements at a time. Between two batches the task may be preempted. An irregular text
 * goes to the original as a whole, which reports the error in its own words.
 *
 * A container that is too long for one batch is opened: its elements are read in batches of their own. So the
 * open containers always form a chain from the outermost inwards, and the engine reads everything else.
 *
 *   [ {…}, {…}, { "rows": [ 1, 2, 3, ‸ …
 *   └ open        └ open   └ open, its batch begins here; the text before has been read
 */

/** Shorter texts are parsed in one call: a few milliseconds. */
export const LONG_TEXT: number = 256 * 1024
/** Characters in a batch. */
const BATCH = 32 * 1024
/** Characters between two safepoints. */
const STEP = 32 * 1024

const QUOTE = 34
const COMMA = 44
const BACKSLASH = 92
const ARRAY = 91
const ARRAY_END = 93
const OBJECT = 123
const OBJECT_END = 125

/** A container of the text that has not ended. */
interface Open {
  readonly isArray: boolean
  /** The container's value while it is read in batches; null if it is part of a batch. */
  value: any
  /** In an object: its key in the container around it. */
  key: string
  /** The start of its first unread element. */
  from: number
  /** The end of its last whole element: a comma. */
  cut: number
}

const parseOriginal = JSON.parse

/** The number of built-in properties of these prototypes. */
const prototypes: readonly { of: object; count: number }[] = [Object.prototype, Array.prototype].map(of => ({
  of,
  count: Object.getOwnPropertyNames(of).length,
}))

/** The text is irregular: the original must parse it. */
class IrregularText extends Error {}

export class PartwiseParser {
  readonly #text: string
  readonly #batch: number
  readonly #open: Open[] = []
  /** How many of the open containers, from the outermost, are read in batches. */
  #parted = 0
  #at = 0
  result: unknown = undefined
  /** True if the outermost container has ended. */
  isDone = false

  /**
   * True if `push` and assignments reach no setter and no read-only property. If a program has added
   * properties to the prototypes, or has frozen them, the original parses.
   */
  static get isUsable(): boolean {
    return prototypes.every(
      ({ of, count }) => Object.isExtensible(of) && Object.getOwnPropertyNames(of).length === count,
    )
  }

  constructor(text: string, batch: number = BATCH) {
    this.#text = text
    this.#batch = batch
  }

  get isRead(): boolean {
    return this.isDone && this.#at >= this.#text.length
  }

  /** Reads `step` more characters. Returns false if the text is irregular. */
  advance(step: number = STEP): boolean {
    try {
      this.#scan(Math.min(this.#text.length, this.#at + step))
      if (this.#at >= this.#text.length && !this.isDone) throw new IrregularText()
      return true
    } catch (error) {
      if (error instanceof IrregularText || error instanceof SyntaxError) return false
      throw error
    }
  }

  #scan(end: number): void {
    const text = this.#text
    const open = this.#open
    let at = this.#at
    while (at < end) {
      const code = text.charCodeAt(at)
      if (this.isDone) {
        if (!isSpace(code)) throw new IrregularText()
        at++
        continue
      }
      switch (code) {
        case QUOTE:
          at = this.#pastString(at)
          continue
        case ARRAY:
        case OBJECT:
          if (open.length === 0 && text.slice(0, at).trim() !== '') throw new IrregularText()
          open.push({ isArray: code === ARRAY, value: null, key: '', from: at + 1, cut: at + 1 })
          if (open.length === 1) this.#part(0)
          break
        case ARRAY_END:
        case OBJECT_END:
          this.#openLong(at)
          this.#close(at, code === ARRAY_END)
          break
        case COMMA: {
          const last = open[open.length - 1]
          if (last === undefined) throw new IrregularText()
          last.cut = at + 1
          if (open.length === this.#parted) {
            if (at - last.from > this.#batch) this.#flush(last, at)
          } else this.#openLong(at)
          break
        }
        default:
          if (open.length === 0 && !isSpace(code)) throw new IrregularText()
      }
      at++
    }
    this.#at = at
  }

  #pastString(from: number): number {
    const text = this.#text
    for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
      if (at < 0) throw new IrregularText()
      let before = at - 1
      while (text.charCodeAt(before) === BACKSLASH) before--
      if ((at - before) % 2 === 1) return at + 1
    }
  }

  /** Opens the element that is too long for one batch, in the innermost container that is read in batches. */
  #openLong(at: number): void {
    const open = this.#open
    const parted = this.#parted
    if (parted === 0 || parted >= open.length) return
    const around = open[parted - 1]!
    const inner = open[parted]!
    if (at - inner.from > this.#batch) {
      const start = inner.from - 1
      if (around.cut > around.from) this.#flush(around, around.cut - 1)
      const before = this.#text.slice(around.from, start)
      if (around.isArray) {
        if (before.trim() !== '') throw new IrregularText()
      } else inner.key = keyIn(before)
      this.#part(parted)
    }
  }

  #part(index: number): void {
    const container = this.#open[index]!
    container.value = container.isArray ? [] : {}
    this.#parted = index + 1
  }

  /** Lets the engine read the elements up to `end`, a comma or the container's end. */
  #flush(container: Open, end: number): void {
    const part = this.#text.slice(container.from, end)
    if (container.isArray) {
      const list = parseOriginal(`[${part}]`) as unknown[]
      if (list.length === 0) throw new IrregularText()
      if (container.value.length === 0) container.value = list
      else for (let k = 0; k < list.length; k++) container.value.push(list[k])
    } else {
      const object = parseOriginal(`{${part}}`) as Record<string, unknown>
      const keys = Object.keys(object)
      if (keys.length === 0) throw new IrregularText()
      for (const key of keys) define(container.value, key, object[key])
    }
    container.from = end + 1
  }

  #close(at: number, isArray: boolean): void {
    const open = this.#open
    const closed = open.pop()
    if (closed === undefined || closed.isArray !== isArray) throw new IrregularText()
    if (open.length >= this.#parted) return
    this.#parted = open.length
    // The rest of the container: nothing if it is empty, or after an element that was opened.
    const rest = this.#text.slice(closed.from, at).trim()
    const follows = this.#text.charCodeAt(closed.from - 1) === COMMA
    if (rest !== '') this.#flush(closed, at)
    else if (follows) throw new IrregularText()
    const around = open[open.length - 1]
    if (around === undefined) {
      this.result = closed.value
      this.isDone = true
      return
    }
    if (around.isArray) around.value.push(closed.value)
    else define(around.value, closed.key, closed.value)
    this.#expectEnd(around, at + 1)
  }

  /** After an element that was opened, only a comma or the end of the container around it may follow. */
  #expectEnd(around: Open, from: number): void {
    const text = this.#text
    let at = from
    while (isSpace(text.charCodeAt(at))) at++
    const code = text.charCodeAt(at)
    if (code === COMMA) {
      around.from = at + 1
      around.cut = at + 1
    } else if (code === (around.isArray ? ARRAY_END : OBJECT_END)) {
      around.from = at
      around.cut = at
    } else throw new IrregularText()
  }
}

function keyIn(text: string): string {
  const found = /^\s*("[^]*")\s*:\s*$/.exec(text)
  if (found === null) throw new IrregularText()
  const key = parseOriginal(found[1]!) as unknown
  if (typeof key !== 'string') throw new IrregularText()
  return key
}

function define(holder: any, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true })
  } else holder[key] = value
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}
