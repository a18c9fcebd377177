/** The diagnostics of a file: position, reason, and the lines around. */
import type { Diagnostic } from '../compile.ts'
import type { Lines } from './lines.ts'

/** Collects diagnostics for one file. */
export class Reporter {
  readonly found: Diagnostic[] = []
  readonly #file: string
  readonly #lines: Lines

  constructor(file: string, lines: Lines) {
    this.#file = file
    this.#lines = lines
  }

  report(
    severity: Diagnostic['severity'],
    code: string,
    message: string,
    place: { start: number; end: number },
  ): void {
    const { line, column } = this.#lines.at(place.start)
    if (this.found.some(other => other.code === code && other.line === line && other.column === column))
      return
    const frame = this.#lines.frame(place.start, place.end)
    this.found.push({ severity, message, file: this.#file, line, column, frame, code })
  }

  warn(code: string, message: string, place: { start: number; end: number }): void {
    this.report('warning', code, message, place)
  }

  sorted(): Diagnostic[] {
    return this.found.sort((left, right) => left.line - right.line || left.column - right.column)
  }
}
