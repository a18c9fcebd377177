const mark = Symbol.for('heddle.workerpool.transfer')

/** What a method returns, or `workerEmit` is given, to move objects instead of copying them. */
export class Transfer {
  readonly message: unknown
  readonly transfer: readonly object[]

  constructor(message: unknown, transfer: readonly object[]) {
    this.message = message
    this.transfer = transfer
    Object.defineProperty(this, mark, { value: true })
  }
}

/** Whether it is one, of whichever copy of this module: a thread may have two. */
export function isTransfer(value: unknown): value is Transfer {
  return typeof value === 'object' && value !== null && mark in value
}
