/** Names for the output that conflict with no name of the source. */

export class Names {
  readonly prefix: string
  /**
   * The prefix of names that no stack trace shows. It is short if the source allows it, since these names are
   * a large part of the output.
   */
  readonly short: string
  readonly #used = new Map<string, string>()
  #count = 0

  constructor(source: string, isShort = false) {
    let prefix = '$h_'
    while (source.includes(prefix)) prefix = `$${prefix}`
    this.prefix = prefix
    this.short = (isShort && shortPrefix(source)) || prefix
  }

  /** The local name of a runtime export, which will be imported. */
  runtime(name: string): string {
    let local = this.#used.get(name)
    if (local === undefined) {
      local = `${this.short}${named.get(name) ?? shortName(this.#used.size)}`
      this.#used.set(name, local)
    }
    return local
  }

  /** The name of a captured value, always the same. */
  capture(name: 'this' | 'arguments' | 'target' | 'super'): string {
    return `${this.prefix}of_${name}`
  }

  fresh(hint: string): string {
    return `${hint.replace(/[^\w$]/g, '')}${this.prefix}${this.#count++}`
  }

  /** A unique small integer. */
  number(): number {
    return this.#count++
  }

  imports(): [name: string, local: string][] {
    return [...this.#used]
  }
}

/** Names that are the same in every output. */
const named: ReadonlyMap<string, string> = new Map([
  ['save', 's'],
  ['take', 't'],
])

/**
 * A short prefix that no name of the source contains before another letter or digit; null if there is none.
 */
function shortPrefix(source: string): string | null {
  // A name may be written with escapes.
  if (/\\u(?:\{?0*24|[\da-f]{4}\$|\{[\da-f]+\}\$)|\$\\u/i.test(source)) return null
  if (!/\$\w/.test(source)) return '$'
  if (!/_\$\w/.test(source)) return '_$'
  return /\$_\w/.test(source) ? null : '$_'
}

/** Upper-case letters for a number. They conflict with none of the names that forms use. */
function shortName(number: number): string {
  const letter = String.fromCharCode(65 + (number % 26))
  return number < 26 ? letter : `${letter}${Math.trunc(number / 26)}`
}
