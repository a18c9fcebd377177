/**
 * Output text that knows its source positions. A lowering composes ropes of new text and of source ranges, in
 * any order and as often as needed. At the end they become text and a source map.
 */
import { SourceMap, type SourceMapSegment } from 'magic-string'
import { Lines } from './lines.ts'

type Part = string | { start: number; end: number }

export class Rope {
  readonly #pieces: Piece[] = []

  /** Adds a piece. An added rope must not grow any more. */
  add(piece: Piece): this {
    if (piece !== '') this.#pieces.push(piece)
    return this
  }

  get isEmpty(): boolean {
    return this.#pieces.every(piece => (piece instanceof Rope ? piece.isEmpty : isAnchor(piece)))
  }

  /** True if the rope is exactly this range of the source. */
  isRange({ start, end }: { start: number; end: number }): boolean {
    const [piece] = this.#pieces
    if (this.#pieces.length !== 1 || typeof piece === 'string' || piece instanceof Rope) return false
    return piece!.start === start && piece!.end === end
  }

  /** The rope's text if it is a single piece of new text, else null. */
  get only(): string | null {
    let pieces = this.#pieces
    for (;;) {
      const [piece] = pieces
      if (pieces.length !== 1) return null
      if (typeof piece === 'string') return piece
      if (!(piece instanceof Rope)) return null
      pieces = piece.#pieces
    }
  }

  /** Texts and ranges in order, neighbours joined. */
  get parts(): Part[] {
    return this.anchored.filter(part => !isAnchor(part))
  }

  /** The same with anchors: empty ranges that give the position of the text after them. */
  get anchored(): Part[] {
    const parts: Part[] = []
    this.#each(piece => append(parts, piece))
    return parts
  }

  /** The text, without the parts from these source ranges, which are in order. */
  text(source: string, without: readonly { start: number; end: number }[] = []): string {
    let text = ''
    let tail = ''
    this.#each(piece => {
      const next =
        typeof piece === 'string'
          ? piece
          : without.length === 0
            ? source.slice(piece.start, piece.end)
            : outside(source, piece, without)
      text += joinsWords(tail, next, typeof piece !== 'string') ? ` ${next}` : next
      tail = tailOf(tail, next)
    })
    return text
  }

  /** Visits the pieces that are no ropes, in order. It uses no recursion: ropes may be nested very deeply. */
  #each(visit: (piece: Part) => void): void {
    const open: { pieces: Piece[]; at: number }[] = [{ pieces: this.#pieces, at: 0 }]
    for (let level = open.pop(); level !== undefined; level = open.pop()) {
      const { pieces } = level
      while (level.at < pieces.length) {
        const piece = pieces[level.at++]!
        if (piece instanceof Rope) {
          open.push(level)
          level = { pieces: piece.#pieces, at: 0 }
          open.push(level)
          break
        }
        visit(piece)
      }
    }
  }
}

/** The part of a range that is in none of the others. */
function outside(
  source: string,
  { start, end }: { start: number; end: number },
  without: readonly { start: number; end: number }[],
): string {
  let text = ''
  let from = start
  for (const range of without) {
    if (range.end <= from || range.start >= end) continue
    text += source.slice(from, Math.max(from, range.start))
    from = range.end
  }
  return text + source.slice(Math.min(from, end), end)
}

function append(parts: Part[], part: Part): void {
  const last = parts[parts.length - 1]
  if (typeof part === 'string') {
    if (typeof last === 'string') parts[parts.length - 1] = last + part
    else parts.push(part)
  } else {
    if (typeof last === 'object' && last.end === part.start && !isAnchor(part)) {
      parts[parts.length - 1] = { start: last.start, end: part.end }
    } else parts.push({ start: part.start, end: part.end })
  }
}

function isAnchor(part: Piece): boolean {
  return typeof part === 'object' && !(part instanceof Rope) && part.start === part.end
}

/** New text, a rope, or a range of the source (such as a node). */
export type Piece = string | Rope | { start: number; end: number }

/** Composes a rope as a template. */
export function rope(strings: TemplateStringsArray, ...pieces: Piece[]): Rope {
  const made = new Rope()
  for (let index = 0; index < strings.length; index++) {
    made.add(strings[index]!)
    if (index < pieces.length) made.add(pieces[index]!)
  }
  return made
}

export function join(pieces: Piece[], separator: string): Rope {
  const made = new Rope()
  for (let index = 0; index < pieces.length; index++) {
    if (index > 0) made.add(separator)
    made.add(pieces[index]!)
  }
  return made
}

/** The rope as text with its map. */
export function print(
  output: Rope,
  source: string,
  file: string,
  sourcemap: boolean,
): { code: string; map: object | null } {
  if (!sourcemap) return { code: output.text(source), map: null }
  const parts = output.anchored
  const map = new Mapping(source)
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!
    if (typeof part === 'string') map.added(part, parts[at + 1] as Range | undefined)
    else if (isAnchor(part)) map.anchor(part.start)
    else map.copied(part)
  }
  const { code, mappings } = map
  return {
    code,
    map: { ...new SourceMap({ sources: [file], sourcesContent: [source], names: [], mappings }) },
  }
}

type Range = Exclude<Part, string>

/** The growing output, and the source position of each part. */
class Mapping {
  code = ''
  readonly mappings: SourceMapSegment[][] = [[]]
  readonly #source: string
  readonly #lines: Lines
  #column = 0
  /** The last characters of the output. */
  #tail = ''
  /** The source line of the last position. */
  #line = 0
  /** The position of the next statement. */
  #anchor: { line: number; column: number } | null = null

  constructor(source: string) {
    this.#source = source
    this.#lines = new Lines(source)
  }

  /**
   * Adds new text. The part that closes the previous statement keeps its position. From the start of the next
   * statement, the text has the position of the source that follows, where a debugger stops. A statement of
   * another source line begins a new line, because profiles count by lines.
   */
  added(text: string, next: Range | undefined): void {
    if (joinsWords(this.#tail, text, false)) this.#append(' ')
    if (this.#anchor !== null) {
      const { line, column } = this.#anchor
      this.#anchor = null
      if (line !== this.#line && /[;{}] *$/.test(this.#tail)) this.#append('\n')
      this.#segment(this.#column, line, column)
      this.#append(text)
      return
    }
    // Text before an anchored statement is no part of it: it also runs if the statement is skipped.
    const head = next === undefined || isAnchor(next) ? text.length : headOf(text)
    this.#append(text.slice(0, head))
    if (head === text.length) return
    const { line, column } = this.#lines.at(next!.start)
    if (line !== this.#line && isBetween(text, head)) this.#append('\n')
    this.#segment(this.#column, line, column)
    this.#append(text.slice(head))
  }

  /**
   * A source statement begins here. The new text that follows belongs to it, and maps to the space before it:
   * debuggers look for a breakpoint there, and the statement's first word may come later in the output.
   */
  anchor(offset: number): void {
    const { line, column } = this.#lines.at(offset)
    this.#anchor = { line, column: Math.max(1, column - 1) }
  }

  /** Adds source text: each word and each line gets a position. */
  copied({ start, end }: Range): void {
    this.#anchor = null
    const source = this.#source
    const head = source.slice(start, Math.min(end, start + tail_most))
    if (joinsWords(this.#tail, head, true)) this.#append(' ')
    let from = start
    let wasWord = false
    let { line, column } = this.#lines.at(start)
    for (let at = start; at < end; at++) {
      const code = source.charCodeAt(at)
      const isWord = isWordCode(code)
      if (at === from || isWord !== wasWord) {
        this.#segment(this.#column + at - from, line, column)
        wasWord = isWord
      }
      column++
      if (code !== NEWLINE) continue
      this.#append(source.slice(from, at + 1))
      from = at + 1
      line++
      column = 1
    }
    this.#append(source.slice(from, end))
  }

  /** Maps the offset `generated` of the output's last line to this line and column, both 1-based. */
  #segment(generated: number, line: number, column: number): void {
    this.#line = line
    const row = this.mappings[this.mappings.length - 1]!
    const last = row[row.length - 1]
    // The later of two segments at one position wins.
    if (last !== undefined && last[0] === generated) row.pop()
    row.push([generated, 0, line - 1, column - 1])
  }

  #append(text: string): void {
    this.code += text
    this.#tail = tailOf(this.#tail, text)
    let from = 0
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      this.mappings.push([])
      this.#column = 0
      from = at + 1
    }
    this.#column += text.length - from
  }
}

const NEWLINE = 10

function isWordCode(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    (code >= 48 && code <= 57) ||
    code === 95 ||
    code === 36
  )
}

/** More than the longest keyword. */
const tail_most = 16

/** The end of the output after new text. Reading it from the output would copy the whole string each time. */
function tailOf(before: string, text: string): string {
  return (text.length < tail_most ? before + text : text).slice(-tail_most)
}

const endsWithKeyword =
  /(?:^|[^\w$.#])(?:await|case|default|delete|do|else|extends|in|instanceof|new|of|return|throw|typeof|void|yield)$/
const beginsWithKeyword = /^(?:extends|in|instanceof|of)(?![\w$])/

/**
 * True if a keyword of the source would become part of the new text beside it. In minified source, brackets
 * and quotes separate words: `return{…}`, `"a"in b`.
 */
function joinsWords(before: string, after: string, isSource: boolean): boolean {
  if (!isWordCode(after.charCodeAt(0)) || !isWordCode(before.charCodeAt(before.length - 1))) return false
  return endsWithKeyword.test(before) || (isSource && beginsWithKeyword.test(after))
}

/**
 * The offset in new text at which the statement begins that contains the text after it: the outermost
 * statement that the text opens, else the one after its last end. The length of the text if it ends with a
 * statement.
 */
function headOf(text: string): number {
  const opened: { isBlock: boolean; head: number }[] = []
  let head = 0
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"':
      case "'":
      case '`':
        at = endOfString(text, at)
        break
      case '{':
      case '(':
      case '[':
        opened.push({ isBlock: text[at] === '{', head })
        if (text[at] === '{') head = at + 1
        break
      case '}':
      case ')':
      case ']':
        opened.pop()
        if (text[at] === '}') head = at + 1
        break
      case ';':
        if (opened.length === 0 || opened[opened.length - 1]!.isBlock) head = at + 1
        break
    }
  }
  head = opened.length > 0 ? opened[0]!.head : head
  while (head < text.length && text[head] === ' ') head++
  return head
}

/** True if a new line may begin at this offset of the text: between two statements. */
function isBetween(text: string, at: number): boolean {
  return /[;{}] *$/.test(text.slice(Math.max(0, at - 8), at)) && !text.includes('`')
}

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== text[start]) at += text[at] === '\\' ? 2 : 1
  return at
}
