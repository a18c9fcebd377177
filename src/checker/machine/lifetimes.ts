import { twin } from '../../coroutine/core/coroutine.ts'
import { ALLOCATE, FREE } from './operations.ts'
import { op, vouchFor } from './pending.ts'

/**
 * Told by an allocator: these elements of a view are given back, and nobody may touch them until they are
 * handed out again. Inside a check an access in between is reported; outside of one nothing happens.
 */
export function markFreed(view: ArrayBufferView, index: number, length: number): void {
  void view
  void index
  void length
}

/** Told by an allocator: these elements are handed out. */
export function markAllocated(view: ArrayBufferView, index: number, length: number): void {
  void view
  void index
  void length
}

function* freed(view: ArrayBufferView, index: number, length: number): Generator<number, void, unknown> {
  yield op(FREE, -1, view, index, length)
}

function* allocated(view: ArrayBufferView, index: number, length: number): Generator<number, void, unknown> {
  yield op(ALLOCATE, -1, view, index, length)
}

vouchFor(markFreed)
vouchFor(markAllocated)
Object.assign(markFreed, { [twin]: freed })
Object.assign(markAllocated, { [twin]: allocated })
