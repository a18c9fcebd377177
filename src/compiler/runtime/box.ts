/** Variables of functions that unwind, shared by closures. */
import { registerImageKind } from '../../payload/imagekinds.ts'

/** A variable that closures share across suspensions. */
export class Box {
  v: any = undefined
}

/** The same for a variable that a closure may read before its declaration has run. */
class EarlyBox {
  name: string

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

/** The target of a pattern that declares such a variable. */
export function declaring(box: object): { v: unknown } {
  return {
    get v() {
      return undefined
    },
    set v(value) {
      declared(box, value)
    },
  }
}

registerImageKind<Box>(Box.prototype, {
  name: 'box',
  isVariable: true,
  parts: ({ v }) => [v],
  create: () => new Box(),
  fill(box, [v]) {
    box.v = v
  },
  steps: () => [],
})

registerImageKind<EarlyBox>(EarlyBox.prototype, {
  name: 'early box',
  isVariable: true,
  parts: box => (Object.hasOwn(box, 'v') ? [box.name, box.v] : [box.name]),
  create: () => new EarlyBox(''),
  fill(box, parts) {
    box.name = String(parts[0])
    if (parts.length > 1) declared(box, parts[1])
  },
  steps: () => [],
})
