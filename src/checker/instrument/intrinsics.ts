/**
 * The functions of the language itself. They reach an object through its properties, which calls a trap of a
 * proxy, or through its internal slots, which a proxy does not have: then they throw. Functions of the host
 * may do anything.
 */
const names: readonly string[] = [
  'Object Function Boolean Symbol Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError',
  'Number BigInt Math Date String RegExp Array Map Set WeakMap WeakSet WeakRef FinalizationRegistry JSON Promise Proxy Reflect',
  'Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array BigInt64Array BigUint64Array',
  'Float16Array Float32Array Float64Array ArrayBuffer SharedArrayBuffer DataView Atomics Iterator Intl Temporal',
  'parseInt parseFloat isNaN isFinite encodeURIComponent decodeURIComponent encodeURI decodeURI escape unescape',
  'SuppressedError DisposableStack AsyncDisposableStack',
].flatMap(line => line.split(' '))

/** Shared by every copy of this module in the process. */
const key = Symbol.for('heddle.checker.intrinsics')
const holder = globalThis as unknown as Record<symbol, Set<unknown> | undefined>
const found: Set<unknown> = (holder[key] ??= new Set())
function walk(x: unknown, depth: number): void {
  if ((typeof x !== 'object' && typeof x !== 'function') || x === null || found.has(x)) return
  found.add(x)
  if (depth === 0) return
  for (const name of Reflect.ownKeys(x)) {
    const { value, get, set } = Object.getOwnPropertyDescriptor(x, name)!
    for (const part of [value, get, set]) walk(part, depth - 1)
  }
  walk(Object.getPrototypeOf(x), depth - 1)
}

for (const name of names) walk((globalThis as unknown as Record<string, unknown>)[name], 6)
for (const made of [
  function* (): Generator {},
  async function* (): AsyncGenerator {},
  async () => undefined,
  [].values(),
  new Map().values(),
  new Set().values(),
  ''[Symbol.iterator](),
  'a'.matchAll(/a/g),
]) {
  walk(Object.getPrototypeOf(made), 6)
}

/** Whether this is an object or a function of the language. */
export function isIntrinsic(x: unknown): boolean {
  return found.has(x)
}

/** From this call on `x` counts as a part of the language: it handles shared memory itself. */
export function trust(x: unknown): void {
  found.add(x)
}
