import { twin } from '../../coroutine/core/coroutine.ts'
import { ALLOCATE, FREE } from './operations.ts'
import { op, vouchFor } from './pending.ts'

/**
 * For allocators: marks these elements of a view as freed. Until they are allocated again, each access to
 * them inside a check is reported. Outside a check this does nothing.
 */
export function markFreed(view: ArrayBufferView, index: number, length: number): void {
  void view
  void index
  void length
}

/** For allocators: marks these elements as allocated. */
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
