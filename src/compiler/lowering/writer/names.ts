/** Names for the output that nothing in the source can meet. */

export class Names {
  readonly prefix: string
  /**
   * What names begin with that no stack shows: shorter where the source allows it, since they are a large
   * part of the output.
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

  /** The local name of something that the runtime exports; it will be imported. */
  runtime(name: string): string {
    let local = this.#used.get(name)
    if (local === undefined) {
      local = `${this.short}${named.get(name) ?? shortName(this.#used.size)}`
      this.#used.set(name, local)
    }
    return local
  }

  /** A name for this purpose, the same each time. */
  capture(name: 'this' | 'arguments' | 'target' | 'super'): string {
    return `${this.prefix}of_${name}`
  }

  fresh(hint: string): string {
    return `${hint.replace(/[^\w$]/g, '')}${this.prefix}${this.#count++}`
  }

  /** A small integer, never the same twice. */
  number(): number {
    return this.#count++
  }

  imports(): [name: string, local: string][] {
    return [...this.#used]
  }
}

/** What goes by the same name in every output. */
const named: ReadonlyMap<string, string> = new Map([
  ['save', 's'],
  ['take', 't'],
])

/**
 * A short beginning that no name of the source contains before another letter or digit; null: it has all of
 * them.
 */
function shortPrefix(source: string): string | null {
  // A name may be written with escapes.
  if (/\\u(?:\{?0*24|[\da-f]{4}\$|\{[\da-f]+\}\$)|\$\\u/i.test(source)) return null
  if (!/\$\w/.test(source)) return '$'
  if (!/_\$\w/.test(source)) return '_$'
  return /\$_\w/.test(source) ? null : '$_'
}

/**
 * Upper-case letters for a number: they meet none of the names that forms use. What is written at each call
 * is short.
 */
function shortName(number: number): string {
  const letter = String.fromCharCode(65 + (number % 26))
  return number < 26 ? letter : `${letter}${Math.trunc(number / 26)}`
}
