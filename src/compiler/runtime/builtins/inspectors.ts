/**
 * What the language does not tell of an object without running its code. Node, Deno and Bun do; in a browser,
 * and in Node before 20.16, nothing does: `inspectors` is null there, and what needs it is left to the
 * engine's own functions.
 */
interface Inspectors {
  isProxy(value: unknown): boolean
  isRegExp(value: unknown): boolean
  isBoxedPrimitive(value: unknown): boolean
  isMap(value: unknown): value is Map<unknown, unknown>
  isSet(value: unknown): value is Set<unknown>
  isPromise(value: unknown): boolean
  isSharedArrayBuffer(value: unknown): boolean
}

interface Host {
  getBuiltinModule?: (name: string) => { types?: Inspectors } | undefined
}

const host = (globalThis as { process?: Host }).process

export const inspectors: Inspectors | null = host?.getBuiltinModule?.('node:util')?.types ?? null
