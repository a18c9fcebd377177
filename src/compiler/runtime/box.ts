/** Variables of functions that unwind which closures share. */

/** A variable that closures share across suspensions. */
export class Box {
  v: any = undefined
}

/** The same for one that may be looked at before its declaration has run. */
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

/** The declaration of an early variable has run. */
export function declared<T>(box: object, value: T): T {
  Object.defineProperty(box, 'v', { value, writable: true, enumerable: true, configurable: true })
  return value
}
