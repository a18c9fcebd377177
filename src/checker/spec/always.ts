import { show } from '../../coroutine/core/knownoptions.ts'
import { CheckError } from '../errors.ts'
import type { Memory } from '../machine/memory.ts'
import { pending, realOf } from '../machine/pending.ts'
import { requireSynchronous } from '../machine/program.ts'
import { kindOf } from '../machine/views.ts'

/** A view whose elements are numbers. */
export type WatchedView =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array

/**
 * An invariant. `words` names words of shared memory. `holds` is called with their values, after the set-up
 * and after each step that has written one of them, and throws or returns false if the values are wrong. It
 * is not a thread and takes no steps. It must read nothing but its argument: only these words are watched.
 */
export interface Always {
  readonly words: Readonly<Record<string, readonly [view: WatchedView, index: number]>>
  readonly holds: (words: Readonly<Record<string, number>>) => unknown
}

/** The watched words of one set-up. */
export class Watch {
  private readonly holds: Always['holds']
  private readonly names: readonly string[]
  private readonly views: WatchedView[] = []
  private readonly indexes: number[] = []
  private readonly values: Record<string, number> = {}
  private cells: Uint8Array

  constructor({ words, holds }: Always, memory: Memory) {
    if (typeof holds !== 'function' || typeof words !== 'object' || words === null) throw wrong('')
    this.holds = holds
    this.names = Object.keys(words)
    if (this.names.length === 0) throw wrong('; there is no word, so `holds` would never be called')
    this.cells = new Uint8Array(memory.cells)
    for (const name of this.names) {
      const [given, index] = words[name] ?? []
      const view = realOf(given)
      if (!isWatchable(view) || !Number.isInteger(index) || index < 0 || index >= view.length) {
        throw wrong(`; ${JSON.stringify(name)} is not`)
      }
      const bytes = view.BYTES_PER_ELEMENT
      const address = memory.addressOf(view) + index * bytes
      memory.requireGranule(address, bytes)
      if (memory.cells > this.cells.length) this.grow(memory.cells)
      this.cells.fill(1, address >> memory.shift, (address + bytes) >> memory.shift)
      this.views.push(view)
      this.indexes.push(index)
      this.values[name] = 0
    }
  }

  /** Whether one of these cells is watched. */
  covers(from: number, to: number): boolean {
    const { cells } = this
    for (let cell = from; cell < to; cell++) if (cells[cell] === 1) return true
    return false
  }

  /** Reads the words and calls `holds`. Throws if the invariant does not hold. */
  look(): void {
    const { names, views, indexes, values } = this
    for (let i = 0; i < names.length; i++) values[names[i]] = views[i][indexes[i]]
    const result = this.judge(values)
    if (result === undefined || result === true) return
    if (!result) throw new Error(`\`holds\` returned ${show(result)}`)
    requireSynchronous('`holds`', result)
  }

  private judge(values: Record<string, number>): unknown {
    pending.judging = true
    try {
      return this.holds(values)
    } finally {
      pending.judging = false
    }
  }

  /** The values that the words had at the last `look`, for a report. */
  describe(): string {
    return this.names.map(name => `${name} ${this.values[name]}`).join(', ')
  }

  private grow(length: number): void {
    const bigger = new Uint8Array(length)
    bigger.set(this.cells)
    this.cells = bigger
  }
}

function isWatchable(view: unknown): view is WatchedView {
  const kind = kindOf(view)
  return kind !== undefined && !kind.startsWith('Big')
}

function wrong(which: string): CheckError {
  return new CheckError(
    'ERR_CHECK_SETUP',
    `\`always\` must be \`{ words: { name: [view, index], … }, holds(words) { … } }\`, each word an element of a typed array over shared memory that holds numbers${which}`,
  )
}
