import { pending } from '../machine/pending.ts'

export type Numeric = number | bigint
export type View = Record<number, Numeric> & { readonly length: number; readonly BYTES_PER_ELEMENT: number }

/** The functions of `Atomics` without the checker's guards. */
export const native: Record<string, (...args: any[]) => unknown> = { ...bind(Atomics) }

function bind(atomics: Atomics): Record<string, (...args: any[]) => unknown> {
  const bound: Record<string, (...args: any[]) => unknown> = {}
  for (const name of Object.getOwnPropertyNames(atomics)) {
    const value = (atomics as unknown as Record<string, unknown>)[name]
    if (typeof value === 'function') bound[name] = value as (...args: any[]) => unknown
  }
  return bound
}

export function dataViewBytes(method: string): number {
  if (method.endsWith('64')) return 8
  if (method.endsWith('32')) return 4
  if (method.endsWith('16')) return 2
  return 1
}

export function callDataView(thread: number): unknown {
  const view = pending.view[thread] as unknown as Record<string, (...args: unknown[]) => unknown>
  const [method, littleEndian] = pending.b[thread] as [string, unknown]
  return method.startsWith('get')
    ? view[method](pending.index[thread], littleEndian)
    : view[method](pending.index[thread], pending.a[thread], littleEndian)
}

export function dataViewBits(view: DataView, index: number, bytes: number): number {
  let bits = 0
  for (let i = 0; i < bytes; i++) bits = bits * 256 + view.getUint8(index + i)
  return bits
}
