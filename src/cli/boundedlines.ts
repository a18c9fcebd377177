/**
 * Passes lines on, at most so many a second. Of the others it says how many there were, by kind: a worker may
 * do thousands of small runs in a second.
 */
export class BoundedLines {
  private readonly most: number
  private readonly write: (line: string) => void
  private readonly more: (kinds: Readonly<Record<string, number>>) => string
  private count = 0
  private left: Record<string, number> = {}
  private timer: NodeJS.Timeout | undefined

  /** `more` makes the line about those that were left out. */
  constructor(
    most: number,
    write: (line: string) => void,
    more: (kinds: Readonly<Record<string, number>>) => string,
  ) {
    this.most = most
    this.write = write
    this.more = more
  }

  add(kind: string, line: string): void {
    this.timer ??= setTimeout(() => this.flush(), 1000).unref()
    if (++this.count <= this.most) this.write(line)
    else this.left[kind] = (this.left[kind] ?? 0) + 1
  }

  /** Writes what is left, and begins another second. */
  flush(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.count = 0
    const { left } = this
    this.left = {}
    if (Object.keys(left).length > 0) this.write(this.more(left))
  }
}
