/** Node, Deno and Bun can tell a Proxy. In a browser one travels as the object that it shows. */
export const isProxy: ((value: unknown) => boolean) | undefined = (
  globalThis as {
    process?: { getBuiltinModule?: (name: string) => { types?: { isProxy(value: unknown): boolean } } }
  }
).process?.getBuiltinModule?.('node:util')?.types?.isProxy
