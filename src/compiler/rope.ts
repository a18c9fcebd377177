/**
 * Output text that remembers where it comes from. A lowering composes ropes of new text and of ranges of the source,
 * in any order and as often as it needs them; at the end they become edits of magic-string, and so a source map.
 */
import { Bundle, MagicString } from 'magic-string'

type Part = string | { start: number; end: number }

export class Rope {
  readonly parts: Part[]

  constructor(parts: Part[] = []) {
    this.parts = parts
  }

  add(piece: Piece): this {
    if (piece instanceof Rope) {
      for (const part of piece.parts) this.#push(part)
    } else this.#push(piece)
    return this
  }

  #push(part: Part): void {
    const { parts } = this
    const last = parts[parts.length - 1]
    if (typeof part === 'string') {
      if (part === '') return
      if (typeof last === 'string') parts[parts.length - 1] = last + part
      else parts.push(part)
      return
    }
    if (part.start >= part.end) return
    if (typeof last === 'object' && last.end === part.start) {
      parts[parts.length - 1] = { start: last.start, end: part.end }
    } else parts.push(part)
  }

  text(source: string): string {
    let text = ''
    for (const part of this.parts)
      text += typeof part === 'string' ? part : source.slice(part.start, part.end)
    return text
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

/** The rope as text with its map: each stretch that runs forward through the source is one edited copy of it. */
export function print(
  output: Rope,
  source: string,
  file: string,
  sourcemap: boolean,
): { code: string; map: object | null } {
  const code = output.text(source)
  if (!sourcemap) return { code, map: null }
  const bundle = new Bundle({ separator: '' })
  let copy: MagicString | null = null
  let reached = 0
  let pending = ''
  let intro = ''
  const close = (): void => {
    if (copy === null) return
    if (pending !== '') copy.append(pending)
    if (reached < source.length) copy.remove(reached, source.length)
    bundle.addSource({ filename: file, content: copy, separator: '' } as never)
    copy = null
    pending = ''
  }
  for (const part of output.parts) {
    if (typeof part === 'string') {
      if (copy === null) intro += part
      else pending += part
      continue
    }
    if (copy !== null && part.start < reached) {
      const carried: string = pending
      pending = ''
      close()
      intro = carried
    }
    if (copy === null) {
      copy = new MagicString(source)
      if (part.start > 0) copy.remove(0, part.start)
      if (intro !== '') copy.prependRight(part.start, intro)
      intro = ''
    } else if (part.start > reached) {
      copy.remove(reached, part.start)
      if (pending !== '') copy.prependRight(part.start, pending)
    } else if (pending !== '') copy.appendLeft(part.start, pending)
    pending = ''
    reached = part.end
  }
  close()
  if (intro !== '') bundle.append(intro)
  const map = bundle.generateMap({ hires: 'boundary', includeContent: true, source: file } as never)
  return { code: bundle.toString(), map: { ...map, sources: [file], sourcesContent: [source] } }
}
