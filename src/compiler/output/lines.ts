/** Lines and columns of a source. */

/** Finds the line and column of an offset, both 1-based. */
export class Lines {
  readonly #source: string
  readonly #starts: number[] = [0]

  constructor(source: string) {
    this.#source = source
    for (let at = source.indexOf('\n'); at !== -1; at = source.indexOf('\n', at + 1))
      this.#starts.push(at + 1)
  }

  at(offset: number): { line: number; column: number } {
    let low = 0
    let high = this.#starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#starts[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: offset - this.#starts[low]! + 1 }
  }

  /** Two lines before and one after, numbered, with carets under the range. */
  frame(start: number, end: number): string {
    const { line, column } = this.at(start)
    const first = Math.max(1, line - 2)
    const last = Math.min(this.#starts.length, line + 1)
    const width = String(last).length
    const rows: string[] = []
    for (let row = first; row <= last; row++) {
      const from = this.#starts[row - 1]!
      const to = row < this.#starts.length ? this.#starts[row]! - 1 : this.#source.length
      const text = this.#source.slice(from, to).replace(/\r$/, '')
      rows.push(`${row === line ? '>' : ' '} ${String(row).padStart(width)} | ${text}`)
      if (row === line) {
        const length = Math.max(1, Math.min(end - start, text.length - column + 1))
        const indent = text.slice(0, column - 1).replace(/[^\t]/g, ' ')
        rows.push(`  ${' '.repeat(width)} | ${indent}${'^'.repeat(length)}`)
      }
    }
    return rows.join('\n')
  }
}
