/**
 * Output text that remembers where it comes from. A lowering composes ropes of new text and of ranges of the
 * source, in any order and as often as it needs them; at the end they become text and a source map.
 */
import { SourceMap, type SourceMapSegment } from 'magic-string'
import { Lines } from './lines.ts'

type Part = string | { start: number; end: number }

export class Rope {
  readonly #pieces: Piece[] = []

  /** A rope that is added is added as it is: it must not grow any more. */
  add(piece: Piece): this {
    if (piece !== '') this.#pieces.push(piece)
    return this
  }

  get isEmpty(): boolean {
    return this.#pieces.every(piece => (piece instanceof Rope ? piece.isEmpty : isAnchor(piece)))
  }

  /** True when the rope is this range of the source, and nothing else. */
  isRange({ start, end }: { start: number; end: number }): boolean {
    const [piece] = this.#pieces
    if (this.#pieces.length !== 1 || typeof piece === 'string' || piece instanceof Rope) return false
    return piece!.start === start && piece!.end === end
  }

  /** The new text that the rope is, where it is one and nothing else; null for any other. */
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

  /** Texts and ranges in their order, neighbours joined. */
  get parts(): Part[] {
    return this.anchored.filter(part => !isAnchor(part))
  }

  /** The same with anchors: empty ranges, which say where the text after them belongs. */
  get anchored(): Part[] {
    const parts: Part[] = []
    this.#each(piece => append(parts, piece))
    return parts
  }

  /** The text, without what comes from these ranges of the source, which follow each other. */
  text(source: string, without: readonly { start: number; end: number }[] = []): string {
    let text = ''
    this.#each(piece => {
      if (typeof piece === 'string') text += piece
      else if (without.length === 0) text += source.slice(piece.start, piece.end)
      else text += outside(source, piece, without)
    })
    return text
  }

  /** Visits what is no rope itself, in order. Ropes may be nested deeper than the stack is. */
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

/** The part of the source that is in none of the ranges. */
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

/** New text, a rope, or a range of the source (a node is one). */
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

/** The output as it grows, and where each of its places comes from. */
class Mapping {
  code = ''
  readonly mappings: SourceMapSegment[][] = [[]]
  readonly #source: string
  readonly #lines: Lines
  #column = 0
  /** The last characters of the output. To read them from `code` would copy the whole of it each time. */
  #tail = ''
  /** The line of the source that the last place came from. */
  #line = 0
  /** Where the statement stands that comes next. */
  #anchor: { line: number; column: number } | null = null

  constructor(source: string) {
    this.#source = source
    this.#lines = new Lines(source)
  }

  /**
   * New text. What closes the statement before it stays with that one; from where the next statement begins,
   * it belongs to the source that follows: there a debugger stops. One of another line of the source begins a
   * line, because profiles count by lines.
   */
  added(text: string, next: Range | undefined): void {
    if (this.#anchor !== null) {
      const { line, column } = this.#anchor
      this.#anchor = null
      if (line !== this.#line && /[;{}] *$/.test(this.#tail)) this.#append('\n')
      this.#segment(this.#column, line, column)
      this.#append(text)
      return
    }
    // What leads to a statement that is marked is no part of it: it runs also where the statement is passed
    // by.
    const head = next === undefined || isAnchor(next) ? text.length : headOf(text)
    this.#append(text.slice(0, head))
    if (head === text.length) return
    const { line, column } = this.#lines.at(next!.start)
    if (line !== this.#line && isBetween(text, head)) this.#append('\n')
    this.#segment(this.#column, line, column)
    this.#append(text.slice(head))
  }

  /**
   * A statement of the source begins here: new text that comes next belongs to it, and comes from the space
   * before it. That is where a breakpoint on the line is looked for, and its first word may come later in the
   * output.
   */
  anchor(offset: number): void {
    const { line, column } = this.#lines.at(offset)
    this.#anchor = { line, column: Math.max(1, column - 1) }
  }

  /** Text of the source: each of its words, and each of its lines, has its place. */
  copied({ start, end }: Range): void {
    this.#anchor = null
    const source = this.#source
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

  /** The place `generated` of the output's last line comes from this line and column, both from 1. */
  #segment(generated: number, line: number, column: number): void {
    this.#line = line
    const row = this.mappings[this.mappings.length - 1]!
    const last = row[row.length - 1]
    // Two for one place: the later one counts.
    if (last !== undefined && last[0] === generated) row.pop()
    row.push([generated, 0, line - 1, column - 1])
  }

  #append(text: string): void {
    this.code += text
    this.#tail = (text.length < 8 ? this.#tail + text : text).slice(-8)
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

/**
 * Where, in new text, the statement begins that what follows the text stands in: the outermost one that the
 * text opens, else the one after its last end. The length of the text: it ends with a statement.
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

/** Whether a line may begin at this place of the text: between two statements. */
function isBetween(text: string, at: number): boolean {
  return /[;{}] *$/.test(text.slice(Math.max(0, at - 8), at)) && !text.includes('`')
}

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== text[start]) at += text[at] === '\\' ? 2 : 1
  return at
}
