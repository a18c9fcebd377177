/** The name of the method by which `console.log` of Node, Deno and Bun prints an object. */
const printed: unique symbol = Symbol.for('nodejs.util.inspect.custom')

/** `inspect` of the runtime, as it gives itself to that method. */
type Inspect = (value: object, options: object) => string

/**
 * From now on `console.log` prints objects of the class as `Name { field: value }`, with the fields of their
 * `toJSON`. Their own fields lead to the memory of their whole kernel.
 */
export function printsAs(Class: { readonly prototype: { toJSON: () => object } }, name: string): void {
  const { prototype } = Class
  const print = function (
    this: typeof prototype,
    depth: number | null,
    options: object,
    inspect: Inspect,
  ): string {
    return depth !== null && depth < 0 ? `[${name}]` : `${name} ${inspect(this.toJSON(), options)}`
  }
  Object.defineProperty(prototype, printed, { value: print, configurable: true, writable: true })
}
