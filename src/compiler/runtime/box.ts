/** Variables of functions that unwind, shared by closures. */

/** A variable that closures share across suspensions. */
export class Box {
  v: any = undefined
}

/** The same for a variable that a closure may read before its declaration has run. */
class EarlyBox {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }

  get v(): any {
    throw new ReferenceError(`Cannot access '${this.name}' before initialization`)
  }

  set v(_value: any) {
    throw new ReferenceError(`Cannot access '${this.name}' before initialization`)
  }
}

export function early(name: string): { v: any } {
  return new EarlyBox(name)
}

/** Ends the early state of a variable: its declaration has run. */
export function declared<T>(box: object, value: T): T {
  Object.defineProperty(box, 'v', { value, writable: true, enumerable: true, configurable: true })
  return value
}
