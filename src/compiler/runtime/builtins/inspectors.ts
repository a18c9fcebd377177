/**
 * Facts about an object that the language does not show without running code of the program. Node, Deno and
 * Bun provide them. In browsers, and in Node before 20.16, `inspectors` is null, and the engine's own
 * functions run.
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
