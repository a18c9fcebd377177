/**
 * Output text that remembers where it comes from. A lowering composes ropes of new text and of ranges of the source,
 * in any order and as often as it needs them; at the end they become edits of magic-string, and so a source map.
 */
import { MagicString, SourceMap, type SourceMapSegment } from 'magic-string'
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
    return this.#pieces.every(piece => piece instanceof Rope && piece.isEmpty)
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
    const parts: Part[] = []
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
        append(parts, piece)
      }
    }
    return parts
  }

  /** The text, without what comes from these ranges of the source, which follow each other. */
  text(source: string, without: readonly { start: number; end: number }[] = []): string {
    let text = ''
    for (const part of this.parts) {
      if (typeof part === 'string') text += part
      else if (without.length === 0) text += source.slice(part.start, part.end)
      else text += outside(source, part, without)
    }
    return text
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
  } else if (part.start < part.end) {
    if (typeof last === 'object' && last.end === part.start) {
      parts[parts.length - 1] = { start: last.start, end: part.end }
    } else parts.push({ start: part.start, end: part.end })
  }
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

/** A stretch of the output that runs forward through the source: one edited copy of that part of it. */
interface Stretch {
  start: number
  /** The source from `start` on, edited. */
  copy: MagicString
}

/** The rope as text with its map. */
export function print(
  output: Rope,
  source: string,
  file: string,
  sourcemap: boolean,
): { code: string; map: object | null } {
  if (!sourcemap) return { code: output.text(source), map: null }
  const mappings: SourceMapSegment[][] = [[]]
  const lines = new Lines(source)
  let code = ''
  let column = 0
  let row = 0
  const append = (text: string): void => {
    code += text
    let from = 0
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      row++
      column = 0
      from = at + 1
    }
    while (mappings.length <= row) mappings.push([])
    column += text.length - from
  }
  for (const stretch of stretches(output, source)) {
    if (typeof stretch === 'string') append(stretch)
    else {
      place(mappings, row, column, stretch, lines)
      append(stretch.copy.toString())
    }
  }
  const map = new SourceMap({ sources: [file], sourcesContent: [source], names: [], mappings })
  return { code, map: { ...map } }
}

function* stretches(output: Rope, source: string): Generator<string | Stretch> {
  const { parts } = output
  let at = 0
  while (at < parts.length) {
    const first = parts[at]!
    if (typeof first === 'string') {
      yield first
      at++
      continue
    }
    // As far as the parts go on forward, new text between them or not.
    let end = first.end
    let last = at
    for (let next = at + 1; next < parts.length; next++) {
      const part = parts[next]!
      if (typeof part === 'string') continue
      if (part.start < end || part.start > end + gapMost) break
      end = part.end
      last = next
    }
    yield { start: first.start, copy: edited(parts.slice(at, last + 1), source, first.start, end) }
    at = last + 1
  }
}

/** Text that is left out costs time to copy: a wide gap begins another stretch. */
const gapMost = 2000

function edited(parts: Part[], source: string, start: number, end: number): MagicString {
  const copy = new MagicString(source.slice(start, end))
  let reached = start
  let pending = ''
  for (const part of parts) {
    if (typeof part === 'string') {
      pending += part
      continue
    }
    if (part.start > reached) copy.remove(reached - start, part.start - start)
    if (pending !== '') copy.appendLeft(part.start - start, pending)
    pending = ''
    reached = part.end
  }
  return copy
}

/** Adds the mappings of a stretch that begins at this row and column of the output. */
function place(
  mappings: SourceMapSegment[][],
  first: number,
  column: number,
  { start, copy }: Stretch,
  lines: Lines,
): void {
  const from = lines.at(start)
  const own = copy.generateDecodedMap({ hires: 'boundary' }).mappings
  for (const [row, segments] of own.entries()) {
    while (mappings.length <= first + row) mappings.push([])
    const line = mappings[first + row]!
    for (const segment of segments) {
      if (segment.length < 4) continue
      const [generated, , originalLine, originalColumn] = segment as [number, number, number, number]
      line.push([
        generated + (row === 0 ? column : 0),
        0,
        originalLine + from.line - 1,
        originalColumn + (originalLine === 0 ? from.column - 1 : 0),
      ])
    }
  }
}
