/** Names for the output that nothing in the source can meet. */

export class Names {
  readonly prefix: string
  readonly #used = new Map<string, string>()
  #count = 0

  constructor(source: string) {
    let prefix = '$h_'
    while (source.includes(prefix)) prefix = `$${prefix}`
    this.prefix = prefix
  }

  /** The local name of something that the runtime exports; it will be imported. */
  runtime(name: string): string {
    let local = this.#used.get(name)
    if (local === undefined) {
      local = `${this.prefix}${named.has(name) ? name : shortName(this.#used.size)}`
      this.#used.set(name, local)
    }
    return local
  }

  /** A name for this purpose, the same each time. */
  lent(name: 'this' | 'arguments' | 'target' | 'super'): string {
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

/** What goes by its own name in the output. */
const named: ReadonlySet<string> = new Set(['save', 'take'])

/** Upper-case letters for a number: they meet none of the names that forms use. What is written at each call is short. */
function shortName(number: number): string {
  const letter = String.fromCharCode(65 + (number % 26))
  return number < 26 ? letter : `${letter}${Math.trunc(number / 26)}`
}
