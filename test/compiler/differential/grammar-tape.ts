/**
 * The tape that determines a program of the grammar, the scope at its current position, and the productions
 * used.
 */

/** The current position. */
export interface Place {
  /** Readable names, and those of them that can be assigned. */
  readonly names: readonly string[]
  readonly writable: readonly string[]
  readonly labels: readonly string[]
  readonly loops: number
  readonly inFunction: boolean
  readonly inGenerator: boolean
  readonly inAsync: boolean
  /** `super.m` is allowed. */
  readonly hasSuper: boolean
  /** `#secret` is allowed. */
  readonly hasPrivate: boolean
  readonly hasArguments: boolean
  readonly inSwitch: boolean
}

/** A production: the text that it writes, and where it is allowed. */
export interface Production {
  write: (depth: number) => string
  when?: (place: Place) => boolean
}

export class Tape {
  readonly #tape: readonly number[]
  #at = 0
  #names = 0
  readonly used: Set<string> = new Set()
  place: Place = {
    names: [],
    writable: [],
    labels: [],
    loops: 0,
    inFunction: false,
    inGenerator: false,
    inAsync: false,
    hasSuper: false,
    hasPrivate: false,
    hasArguments: true,
    inSwitch: false,
  }

  constructor(tape: readonly number[]) {
    this.#tape = tape
  }

  get isEmpty(): boolean {
    return this.#at >= this.#tape.length
  }

  /** A number below `count`: the next of the tape, or 0. */
  choose(count: number): number {
    const next = this.#tape[this.#at]
    if (next === undefined) return 0
    this.#at++
    return next % count
  }

  pick<T>(list: readonly T[]): T {
    return list[this.choose(list.length)]!
  }

  /** Writes one of these. Only a written production counts as used. */
  any(...ways: (() => string)[]): string {
    return this.pick(ways)()
  }

  /** A unique name. */
  fresh(prefix: string): string {
    return `${prefix}${++this.#names}`
  }

  /** Writes one of the productions; an empty tape selects the first. */
  produce(table: Record<string, Production>, kind: string, depth: number): string {
    const names = Object.keys(table)
    let name = names[0]!
    for (let attempt = 0; attempt < 8; attempt++) {
      const tried = this.pick(names)
      const { when } = table[tried]!
      if (when !== undefined && !when(this.place)) continue
      name = tried
      break
    }
    this.used.add(`${kind}: ${name}`)
    return table[name]!.write(depth)
  }

  /** Writes at another position. Its declarations are gone afterwards. */
  inside<T>(change: Partial<Place>, write: () => T): T {
    const { place } = this
    this.place = { ...place, ...change }
    try {
      return write()
    } finally {
      this.place = place
    }
  }

  declare(name: string, isWritable = true): string {
    const { names, writable } = this.place
    this.place = {
      ...this.place,
      names: [...names, name],
      writable: isWritable ? [...writable, name] : writable,
    }
    return name
  }

  read(): string {
    return this.pick(this.place.names)
  }

  target(): string {
    return this.pick(this.place.writable)
  }
}
