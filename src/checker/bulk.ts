import { CHANGED, WRITES } from './eventlog.ts'
import type { Machine } from './machine.ts'
import { ITERATE } from './operations.ts'
import { isShared, pending } from './runtime.ts'

type AnyView = Int32Array & Record<string, (...args: unknown[]) => unknown>

/** Methods of a view that write it. All others only read. */
const WRITERS: ReadonlySet<string> = new Set(['set', 'fill', 'copyWithin', 'reverse', 'sort'])

/**
 * Places an operation on many elements at once: one event over all the cells that it may touch. The language does
 * not promise that it is whole, so a conflicting access that is not ordered with it is a data race.
 */
export function locateBulk(machine: Machine, thread: number): void {
  const { memory } = machine
  const view = pending.view[thread] as AnyView
  const args = (pending.b[thread] ?? []) as unknown[]
  const bytes = view.BYTES_PER_ELEMENT ?? 1
  const address = memory.addressOf(view)
  memory.requireGranule(address, bytes)
  let start = 0
  let end = view.length ?? view.byteLength
  const method = pending.a[thread] as string
  if (method === 'fill') {
    start = clampIndex(args[1], 0, end)
    end = clampIndex(args[2], end, end)
  } else if (method === 'slice') {
    start = clampIndex(args[0], 0, end)
    end = clampIndex(args[1], end, end)
  } else if (method === 'set') {
    start = clampIndex(args[1], 0, end)
    end = Math.min(end, start + ((args[0] as ArrayLike<unknown>).length ?? 0))
  }
  const { shift } = memory
  if (end <= start) machine.place(thread, 0, 0)
  else machine.place(thread, (address + start * bytes) >> shift, (address + end * bytes) >> shift)
  if (end > start) memory.note(machine.from[thread], machine.to[thread], 1)
  const source = method === 'set' ? args[0] : undefined
  if (isShared(source) && (source as unknown as AnyView).length > 0) {
    const from = memory.addressOf(source)
    const length = source.byteLength
    memory.requireGranule(from, (source as unknown as AnyView).BYTES_PER_ELEMENT)
    machine.from2[thread] = from >> shift
    machine.to2[thread] = (from + length) >> shift
    memory.note(machine.from2[thread], machine.to2[thread], 1)
  }
}

export function performBulk(machine: Machine, thread: number): unknown {
  const view = pending.view[thread] as AnyView
  if (pending.kind[thread] === ITERATE) return Array.from(view)
  const method = pending.a[thread] as string
  const args = (pending.b[thread] ?? []) as unknown[]
  if (!WRITERS.has(method)) return view[method](...args)
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  const before = hash(bytes)
  const result = view[method](...args)
  const after = hash(bytes)
  machine.flags = before === after ? WRITES : WRITES | CHANGED
  machine.wrote = after
  return result
}

function clampIndex(value: unknown, otherwise: number, length: number): number {
  if (value === undefined) return otherwise
  const index = Math.trunc(Number(value)) || 0
  return index < 0 ? Math.max(0, length + index) : Math.min(index, length)
}

function hash(bytes: Uint8Array): number {
  let value = 0x811c9dc5
  for (const byte of bytes) value = Math.imul(value ^ byte, 0x01000193)
  return value
}
