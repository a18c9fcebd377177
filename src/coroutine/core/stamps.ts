/**
 * How closures that can move were made. Each carries its maker and its captured values in a private field,
 * which no program can observe.
 */

const Returned = function (fn: object): object {
  return fn
} as unknown as new (
  fn: object,
) => object

class Stamp extends Returned {
  #made: readonly unknown[]

  constructor(fn: object, made: readonly unknown[]) {
    super(fn)
    this.#made = made
  }

  static of(fn: object): readonly unknown[] | undefined {
    return #made in fn ? fn.#made : undefined
  }
}

/** Says how a closure was made: by this maker, with these captured values. Returns the closure. */
export function stamp<F extends object>(fn: F, made: readonly [maker: object, ...captured: unknown[]]): F {
  return new Stamp(fn, made) as F
}

/** The maker and the captured values, or undefined. */
export function madeBy(fn: object): readonly unknown[] | undefined {
  return Stamp.of(fn)
}
