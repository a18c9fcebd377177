/** On the prototype of a class whose objects stay on their thread: what to send instead. */
const stays: unique symbol = Symbol.for('heddle.stays')

/**
 * From now on an object of the class is refused under its own name, with this advice. Otherwise it would be
 * read as a plain object, down to the memory of its kernel, and some part of that would be refused.
 */
export function staysHere(Class: { readonly prototype: object }, advice: string): void {
  Object.defineProperty(Class.prototype, stays, { value: advice, configurable: true })
}

/** Whether objects with this prototype stay on their thread. */
export function isStaying(prototype: object): boolean {
  return Object.hasOwn(prototype, stays)
}

/** What to send instead of such an object; undefined: it is none. */
export function insteadOf(value: object): string | undefined {
  return (value as { readonly [stays]?: string })[stays]
}
