/** Durable runs as text for people, and as JSON. */
import { bar, fit, formatMs, paint, type Terminal } from './terminal.ts'
import { hasEnded, type RunError, type RunState, type RunStatus } from '../durable/states.ts'

/** The share that is done, if the progress says so: a number from 0 to 1, or `{ done, total }`. */
export function shareOf(progress: unknown): number | null {
  const { done, total } = (progress ?? {}) as { done?: unknown; total?: unknown }
  const share =
    typeof progress === 'number'
      ? progress
      : typeof done === 'number' && typeof total === 'number' && total > 0
        ? done / total
        : Number.NaN
  return share >= 0 && share <= 1 ? share : null
}

/** One line of JSON for any other progress. */
export function progressText(progress: unknown): string {
  if (progress === null || progress === undefined) return ''
  const share = shareOf(progress)
  return share === null ? oneLine(JSON.stringify(progress)) : `${(share * 100).toFixed(0)} %`
}

export function progressBar(terminal: Terminal, progress: unknown, width: number): string {
  const share = shareOf(progress)
  if (share === null) return fit(terminal, progressText(progress), width)
  return `${bar(terminal, share, Math.max(1, width - 6))} ${`${(share * 100).toFixed(0)} %`.padStart(5)}`
}

/** Control characters of a text from outside would move the cursor. */
export function oneLine(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
}

export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1e6) return `${(bytes / 1000).toFixed(1)} kB`
  return `${(bytes / 1e6).toFixed(1)} MB`
}

export function checkpointText({ checkpoint }: RunStatus): string {
  return checkpoint === null ? '' : `${bytesText(checkpoint.bytes)}, ${ageText(checkpoint.age)} ago`
}

/** A duration of any length, in one or two units. */
export function ageText(ms: number): string {
  const s = Math.max(0, ms) / 1000
  if (s < 60) return formatMs(Math.max(0, ms))
  if (s < 3600) return `${Math.floor(s / 60)} min`
  if (s < 86_400) return `${Math.floor(s / 3600)} h`
  return `${Math.floor(s / 86_400)} d`
}

const colours: Readonly<Partial<Record<RunState, 'green' | 'red' | 'yellow' | 'dim'>>> = {
  running: 'green',
  failed: 'red',
  cancelled: 'yellow',
  completed: 'dim',
}

export function stateText(terminal: Terminal, state: RunState): string {
  const colour = colours[state]
  return colour === undefined ? state : paint(terminal, colour, state)
}

/** What a person wants to know of a run in its state. */
export function noteOf(run: RunStatus): string {
  if (run.blocked !== null) return `blocked: ${oneLine(run.blocked)}`
  if (run.state === 'failed') return errorLine(run.error)
  if (run.cancelling) return 'is being cancelled'
  if (run.state === 'waiting') return `for ${oneLine(run.waitsFor ?? '')}`
  if (run.wakesAt !== null) return `until ${timeText(run.wakesAt)}`
  // Not every progress is stored: that of a run that has ended is seldom the last one.
  if (hasEnded(run.state)) return ''
  return progressText(run.progress)
}

export function errorLine(error: RunError | null): string {
  return error === null ? '' : oneLine(`${error.name}: ${error.message}`)
}

/** In the time zone of this machine, and without its name. */
export function timeText(at: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** Values that JSON cannot write become texts or lists; bytes become base64. */
export function jsonOf(value: unknown): unknown {
  const text = JSON.stringify(value, (_, one: unknown) => {
    if (typeof one === 'bigint') return String(one)
    if (one instanceof Map || one instanceof Set) return [...one]
    if (ArrayBuffer.isView(one) && !(one instanceof DataView)) {
      return one instanceof Uint8Array
        ? Buffer.from(one).toString('base64')
        : [...(one as Float64Array)].map(jsonOf)
    }
    if (one instanceof Error) return { name: one.name, message: one.message }
    return one
  })
  return text === undefined ? null : JSON.parse(text)
}
