/** One access to shared memory, in the terms of the language's memory model. */
export interface Access {
  /** The kind of operation: see operations.ts. */
  readonly kind: number
  readonly site: number
  readonly index: number
  /** Whether it reads, and whether it may write: a compare-exchange that fails writes nothing. */
  readonly reads: boolean
  readonly writes: boolean
  /** [[Order]] is seq-cst: by a function of `Atomics`. */
  readonly atomic: boolean
  /** [[NoTear]]: by an integer typed array; of 64 bits, by `Atomics` alone. */
  readonly whole: boolean
  readonly address: number
  readonly size: number
  /**
   * The result that the thread gets, and the bytes that the operation writes, when it finds these bytes
   * (undefined where it reads none).
   */
  apply(found: Uint8Array | undefined): { readonly value: unknown; readonly wrote: Uint8Array | undefined }
}

/** The set-up as a write: it writes all memory, before all events. */
export const SETUP = -1

export interface WeakEvent {
  readonly thread: number
  /** How many events of its thread come before it. */
  readonly at: number
  readonly access: Access
  /** For each byte, the write that the byte comes from: a key, or SETUP. */
  readonly sources: readonly number[] | undefined
  readonly found: Uint8Array | undefined
  readonly wrote: Uint8Array | undefined
  readonly value: unknown
}

/** The identity of an event in all executions: its thread and its position there. */
export function keyOf(thread: number, at: number): number {
  return thread * EVENTS_MAX + at
}

/** How many events a thread may have. */
const EVENTS_MAX: number = 1 << 16

export function sameRange(a: Access, b: Access): boolean {
  return a.address === b.address && a.size === b.size
}

export function covers(access: Access, byte: number): boolean {
  return byte >= access.address && byte < access.address + access.size
}

export function sameBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
