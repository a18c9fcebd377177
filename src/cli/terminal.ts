/**
 * What the terminal can show. No colours in a pipe, with NO_COLOR or on a dumb terminal; no Unicode on a dumb
 * terminal or in a locale without UTF-8.
 */
export interface Terminal {
  readonly colour: boolean
  readonly unicode: boolean
  readonly columns: number
  readonly rows: number
}

export interface TerminalSource {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

export function terminalOf(stream: TerminalSource, env: Environment = process.env): Terminal {
  const dumb = env.TERM === 'dumb'
  const tty = stream.isTTY === true
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== ''
  const refused = env.NO_COLOR !== undefined && env.NO_COLOR !== ''
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || ''
  return {
    colour: !refused && (forced || (tty && !dumb)),
    unicode: !dumb && /utf-?8/i.test(locale),
    columns: stream.columns ?? 80,
    rows: stream.rows ?? 24,
  }
}

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan' | 'inverse'

const codes: Readonly<Record<Colour, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  inverse: [7, 27],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  cyan: [36, 39],
}

export function paint(terminal: Terminal, colour: Colour, text: string): string {
  if (!terminal.colour) return text
  const [on, off] = codes[colour]
  return `\u001b[${on}m${text}\u001b[${off}m`
}

/** A bar of `width` characters for a share from 0 to 1. */
export function bar(terminal: Terminal, share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8)
  if (!terminal.unicode) {
    const full = Math.round(eighths / 8)
    return '#'.repeat(full) + '.'.repeat(width - full)
  }
  const full = eighths >> 3
  const rest = eighths & 7
  const part = rest === 0 ? '' : String.fromCodePoint(0x2590 - rest)
  return ('█'.repeat(full) + part).padEnd(width, ' ')
}

/** A time in milliseconds, in five characters or so. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return '-'
  if (ms >= 60_000)
    return `${Math.floor(ms / 60_000)}m${String(Math.floor((ms % 60_000) / 1000)).padStart(2, '0')}s`
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms >= 10_000 ? 1 : 2)} s`
  if (ms >= 1) return `${ms.toFixed(ms >= 100 ? 0 : 1)} ms`
  return `${(ms * 1000).toFixed(ms >= 0.01 ? 0 : 1)} µs`
}

/** Cuts a text to a width, with a mark where it was cut. */
export function fit(terminal: Terminal, text: string, width: number): string {
  if (text.length <= width) return text
  const mark = terminal.unicode ? '…' : '~'
  return width < 1 ? '' : text.slice(0, width - 1) + mark
}

/** Rows of cells in columns: text to the left, numbers to the right. */
export function table(rows: readonly (readonly (string | number)[])[], gap = '  '): string[] {
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, String(cell).length)))
  const isText = (at: number): boolean =>
    rows.slice(1).some(row => typeof row[at] === 'string' && !/^[\d.,-]/.test(String(row[at])))
  const left = widths.map((_, at) => isText(at))
  return rows.map(row =>
    row
      .map((cell, at) => (left[at] ? String(cell).padEnd(widths[at]) : String(cell).padStart(widths[at])))
      .join(gap)
      .trimEnd(),
  )
}
