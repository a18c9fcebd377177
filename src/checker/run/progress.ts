import { count } from '../report/report.ts'
import type { CheckResult } from '../search/search.ts'

export interface RunnerOutput {
  out(text: string): void
  err(text: string): void
  /** Whether `err` is a terminal, where a line can be overwritten. */
  readonly live: boolean
}

const PROGRESS_MS = 1000

/**
 * A line about the progress of a long run: on a terminal one that is overwritten each second, otherwise a new
 * one now and then.
 */
export class ProgressLine {
  private readonly output: RunnerOutput
  private last = performance.now()
  private shown = false

  constructor(output: RunnerOutput) {
    this.output = output
  }

  /** Shows the text if the last one is old enough. */
  show(text: () => string): void {
    const now = performance.now()
    const pause = this.output.live ? PROGRESS_MS : this.shown ? 10 * PROGRESS_MS : 3 * PROGRESS_MS
    if (now - this.last < pause) return
    this.last = now
    this.shown = true
    this.output.err(this.output.live ? `\r\u001b[K${text()}` : `${text()}\n`)
  }

  /** Clears the line, so that something else can be printed. */
  clear(): void {
    if (this.shown && this.output.live) this.output.err('\r\u001b[K')
  }
}

/** Shows the progress of a long search; undefined: the search is over. */
export type Show = (result: CheckResult | undefined) => void

export function showSearch(output: RunnerOutput, label: string): Show {
  const line = new ProgressLine(output)
  return result => {
    if (result === undefined) line.clear()
    else line.show(() => `${label}: ${searchState(result)}`)
  }
}

function searchState({ executions, seconds, fraction, depth }: CheckResult): string {
  const rate = Math.round(executions / Math.max(seconds, 1e-3))
  const left = fraction > 0.001 ? `, about ${formatSeconds((seconds / fraction) * (1 - fraction))} left` : ''
  return `${count(executions)} executions, ${count(rate)}/s, depth ${depth}, about ${(100 * fraction).toPrecision(3)} % done${left}`
}

export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.ceil(seconds)} s`
  if (seconds < 7200) return `${Math.ceil(seconds / 60)} min`
  return `${(seconds / 3600).toPrecision(2)} h`
}
