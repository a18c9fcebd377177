const mark = Symbol.for('heddle.workerpool.transfer')

/** Wraps the result of a method, or the payload of `workerEmit`, to move objects instead of copying them. */
export class Transfer {
  readonly message: unknown
  readonly transfer: readonly object[]

  constructor(message: unknown, transfer: readonly object[]) {
    this.message = message
    this.transfer = transfer
    Object.defineProperty(this, mark, { value: true })
  }
}

/** True for a Transfer of any copy of this module: a thread may have two. */
export function isTransfer(value: unknown): value is Transfer {
  return typeof value === 'object' && value !== null && mark in value
}
