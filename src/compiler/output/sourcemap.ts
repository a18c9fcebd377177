/**
 * The part of source maps that the loader needs. It combines a map that came with the input, from an earlier
 * transpiler, with the compiler's own map. So stack traces show the original lines.
 */

export interface SourceMap {
  version: number
  file?: string
  sourceRoot?: string
  sources: (string | null)[]
  sourcesContent?: (string | null)[]
  names: string[]
  mappings: string
}

/** [generated column], or with [source, original line, original column] and perhaps [name] after it. */
type Segment = [number] | [number, number, number, number] | [number, number, number, number, number]

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const valueOf = new Map([...digits].map((digit, value) => [digit.charCodeAt(0), value]))

/** The lines of a `mappings` text, each a list of segments with absolute numbers. */
export function decodeMappings(mappings: string): Segment[][] {
  const running = [0, 0, 0, 0, 0]
  return mappings.split(';').map(line => {
    running[0] = 0
    if (line === '') return []
    return line.split(',').map(text => {
      const fields = decodeNumbers(text)
      for (let i = 0; i < fields.length; i++) running[i]! += fields[i]!
      return running.slice(0, fields.length) as Segment
    })
  })
}

/** The inverse of decodeMappings. */
export function encodeMappings(lines: Segment[][]): string {
  const previous = [0, 0, 0, 0, 0]
  return lines
    .map(line => {
      previous[0] = 0
      return line
        .map(segment => {
          let text = ''
          for (let i = 0; i < segment.length; i++) {
            text += encodeNumber(segment[i]! - previous[i]!)
            previous[i] = segment[i]!
          }
          return text
        })
        .join(',')
    })
    .join(';')
}

/**
 * The map from the generated text of `outer` to the sources of `inner`; `inner` describes the input of
 * `outer`. Positions that `inner` does not know are omitted.
 */
export function composeMaps(outer: SourceMap, inner: SourceMap): SourceMap {
  const innerLines = decodeMappings(inner.mappings)
  const lines = decodeMappings(outer.mappings).map(line => {
    const composed: Segment[] = []
    for (const segment of line) {
      if (segment.length === 1) continue
      const origin = segmentAt(innerLines[segment[2]], segment[3])
      if (origin === undefined || origin.length === 1) continue
      composed.push([segment[0], origin[1], origin[2], origin[3]])
    }
    return composed
  })
  return {
    version: 3,
    sources: inner.sources,
    ...(inner.sourceRoot === undefined ? {} : { sourceRoot: inner.sourceRoot }),
    ...(inner.sourcesContent === undefined ? {} : { sourcesContent: inner.sourcesContent }),
    names: [],
    mappings: encodeMappings(lines),
  }
}

/** The original position of a generated one (line and column 1-based), or null. */
export function originalPosition(
  map: SourceMap,
  line: number,
  column: number,
): { line: number; column: number } | null {
  const segment = segmentAt(decodeMappings(map.mappings)[line - 1], column - 1)
  return segment === undefined || segment.length === 1
    ? null
    : { line: segment[2] + 1, column: segment[3] + 1 }
}

const inlineMap = /^[ \t]*\/\/[#@] sourceMappingURL=data:application\/json[^,\n]*?(;base64)?,(\S+)[ \t]*$/gm

/** The text without its inline map, and that map, or null if it has no readable one. */
export function takeInlineMap(code: string): { code: string; map: SourceMap | null } {
  let last: RegExpExecArray | null = null
  if (code.includes('sourceMappingURL=data:')) for (const match of code.matchAll(inlineMap)) last = match
  if (last === null) return { code, map: null }
  try {
    const text = last[1] ? new TextDecoder().decode(fromBase64(last[2]!)) : decodeURIComponent(last[2]!)
    const map = JSON.parse(text) as SourceMap
    if (typeof map.mappings !== 'string' || !Array.isArray(map.sources)) return { code, map: null }
    return { code: code.slice(0, last.index) + code.slice(last.index + last[0].length), map }
  } catch {
    return { code, map: null }
  }
}

/** A map as a comment at the end of its file. */
export function inlineMapComment(map: SourceMap): string {
  const bytes = new TextEncoder().encode(JSON.stringify(map))
  let binary = ''
  for (let i = 0; i < bytes.length; i += 0x2000)
    binary += String.fromCharCode(...bytes.subarray(i, i + 0x2000))
  return `//# sourceMappingURL=data:application/json;charset=utf-8;base64,${btoa(binary)}`
}

/** The last segment of a line that starts at or before `column`. */
function segmentAt(line: Segment[] | undefined, column: number): Segment | undefined {
  if (line === undefined) return undefined
  let low = 0
  let high = line.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (line[middle]![0] <= column) low = middle + 1
    else high = middle
  }
  return line[low - 1]
}

function decodeNumbers(text: string): number[] {
  const numbers: number[] = []
  let value = 0
  let shift = 0
  for (let i = 0; i < text.length; i++) {
    const digit = valueOf.get(text.charCodeAt(i))
    if (digit === undefined) throw new SyntaxError(`not a source map: ${JSON.stringify(text)}`)
    value += (digit & 31) * 2 ** shift
    shift += 5
    if (digit & 32) continue
    numbers.push(value % 2 === 1 ? -(value - 1) / 2 : value / 2)
    value = 0
    shift = 0
  }
  return numbers
}

function encodeNumber(number: number): string {
  let value = number < 0 ? -number * 2 + 1 : number * 2
  let text = ''
  do {
    const digit = value % 32
    value = Math.floor(value / 32)
    text += digits[value > 0 ? digit | 32 : digit]
  } while (value > 0)
  return text
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text)
  return Uint8Array.from(binary, character => character.charCodeAt(0))
}
