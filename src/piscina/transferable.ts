import { movableSymbol, transferableSymbol, valueSymbol } from './symbols.ts'

/** A value that names the objects to transfer. */
export interface Transferable {
  readonly [transferableSymbol]: object
  readonly [valueSymbol]: object
}

class Moving implements Transferable {
  readonly #value: object
  readonly #transferable: object

  constructor(value: object, transferable: object) {
    this.#value = value
    this.#transferable = transferable
  }

  get [transferableSymbol](): object {
    return this.#transferable
  }

  get [valueSymbol](): object {
    return this.#value
  }
}

function isTransferable(value: unknown): value is Transferable {
  return typeof value === 'object' && value !== null && transferableSymbol in value && valueSymbol in value
}

/** True for a transferable value that `move` returned. */
export function isMovable(value: unknown): value is Transferable {
  return isTransferable(value) && (value as { [movableSymbol]?: boolean })[movableSymbol] === true
}

function markMovable(value: object): void {
  Object.defineProperty(value, movableSymbol, {
    value: true,
    enumerable: false,
    configurable: true,
    writable: true,
  })
}

/**
 * Marks a value: as a task or a result, it is transferred instead of copied. Primitives are returned
 * unchanged.
 */
export function move(value: any): any {
  if (typeof value !== 'object' || value === null) return value
  const movable = isTransferable(value)
    ? value
    : new Moving(value, ArrayBuffer.isView(value) ? value.buffer : value)
  markMovable(movable)
  return movable
}

/** The objects that a movable value transfers, as a list. */
export function transferListOf(value: Transferable): object[] {
  const transferable = value[transferableSymbol]
  return Array.isArray(transferable) ? transferable : [transferable]
}
