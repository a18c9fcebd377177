/** The registration of compiled modules whose functions can move. */
import type { Reenter } from '../../coroutine/core/frames.ts'
import { type MovableFunction, type MovableVariables, registerMovable } from '../../coroutine/core/movable.ts'

export { moduleLoaded } from '../../coroutine/core/movable.ts'
export { stamp } from '../../coroutine/core/stamps.ts'

/** One function, as the compiler writes it: key, hash, slots, live slots, second form, maker. */
type Entry = readonly [string, string, string, string, Reenter | 0, ((...captured: any[]) => object) | 0]

/**
 * Called once for the module, and once for each class with movable members. `imports`: the names of the
 * variables that other modules set.
 */
export function movable(
  module: string,
  url: string,
  entries: readonly Entry[],
  variables: object | null = null,
  imports = '',
  hash = '',
  awaitsEnd = 0,
): void {
  const all: MovableVariables | null = variables && {
    all: variables,
    imports: imports === '' ? [] : imports.split(','),
    hash,
    awaitsEnd: awaitsEnd === 1,
  }
  registerMovable(
    module,
    url,
    entries.map(entry => new CompiledFunction(entry)),
    all,
  )
}

class CompiledFunction implements MovableFunction {
  readonly key: string
  readonly hash: string
  readonly reenter: Reenter | null
  readonly make: ((...captured: any[]) => object) | null
  readonly #slots: string
  readonly #live: string
  #bits: readonly bigint[] | null = null

  constructor([key, hash, slots, live, reenter, make]: Entry) {
    this.key = key
    this.hash = hash
    this.#slots = slots
    this.#live = live
    this.reenter = reenter === 0 ? null : reenter
    this.make = make === 0 ? null : make
    // A stack shows the second form by the function's own name.
    if (reenter !== 0) {
      const name = key.replace(/~\d+$/, '').replace(/^.*\./s, '')
      Object.defineProperty(reenter, 'name', { value: name, configurable: true })
    }
  }

  get slots(): readonly string[] {
    return this.#slots.split(',')
  }

  get places(): number {
    return this.#live.split(';').length - 1
  }

  readonly isLive = (place: number, index: number): boolean => {
    this.#bits ??= this.#live.split(';').map(bits => BigInt(`0x${bits}`))
    const bits = this.#bits[place]
    return bits === undefined || ((bits >> BigInt(index)) & 1n) === 1n
  }
}
