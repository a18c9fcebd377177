import { LINE_WORDS, roundUp } from '../../arena/memory/record.ts'
import type { Kinds } from '../../coroutine/core/knownoptions.ts'
import { attach, currentFutexes, domainHandle } from '../../futex/core/currentfutexes.ts'
import type { DomainHandle } from '../../futex/core/domain.ts'
import { requireSharedMemory } from '../../machine/web/isolation.ts'

/**
 * The words of an object in a SharedArrayBuffer. All objects begin alike:
 *
 *   0  state   the word that the fast paths compare and exchange. Each type defines its bits; the sign bit
 *              is always HAS_WAITERS: there are waiters, or the object was disposed of, so the call must
 *              take the slow path
 *   1  id      by which the object's queues are found: the first waiter claims it, 0 until then
 *   2  domain  the tag of the domain that the id is from; DISPOSED when the object is disposed of
 *   3  extra   the type's own
 *
 * Two threads hold different JavaScript objects for one SharedArrayBuffer, and the language cannot tell that
 * they are the same memory. So the id by which they find each other's waiters is in the memory itself. All
 * zero is a free object that has had no waiter.
 */
export const ID = 1
export const DOMAIN = 2
export const EXTRA = 3
export const OBJECT_WORDS = 4

export const DISPOSED = -1
/** The sign bit of a state word. */
export const HAS_WAITERS: number = 0x8000_0000 | 0

export interface ObjectWords {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
}

/**
 * Memory of the caller for an object: a SharedArrayBuffer, or a view of one, and the index of the first
 * 32-bit word.
 */
export interface OwnPlace {
  readonly buffer?: SharedArrayBuffer
  readonly view?: Int32Array | Uint32Array
  readonly index?: number
}

/** An object in a message: structured clone copies the handle, and its buffer stays the same memory. */
export interface SyncHandle {
  readonly heddle: string
  readonly buffer: SharedArrayBuffer
  readonly at: number
  readonly options: Readonly<Record<string, unknown>>
  readonly domain?: DomainHandle | undefined
}

/** For checkOptions: `placeFor` checks them. */
export const ownPlaceKinds: Kinds<OwnPlace> = { buffer: 'checked', view: 'checked', index: 'checked' }

const PAGE_WORDS = 16_384

let page: Int32Array<SharedArrayBuffer> | null = null
let used = 0

/**
 * Words of this thread's page, on a cache line of their own. The JavaScript engine frees a page when no
 * object in it is reachable.
 */
function allocateWords(words: number): ObjectWords {
  const size = roundUp(words, LINE_WORDS)
  if (size > PAGE_WORDS / 4) return { i32: new Int32Array(new SharedArrayBuffer(size * 4)), at: 0 }
  if (page === null || used + size > PAGE_WORDS) {
    page = new Int32Array(new SharedArrayBuffer(PAGE_WORDS * 4))
    used = 0
  }
  const at = used
  used += size
  return { i32: page, at }
}

/** The words that the options name, or new ones. */
export function wordsFor(what: string, words: number, { buffer, view, index: first }: OwnPlace): ObjectWords {
  if (typeof SharedArrayBuffer === 'undefined') requireSharedMemory(`new ${what}`)
  if (buffer === undefined && view === undefined) {
    if (first === undefined) return allocateWords(words)
    throw new TypeError(
      `new ${what}({ index: ${String(first)} }): an index needs a buffer or a view; give one`,
    )
  }
  if (buffer !== undefined && view !== undefined)
    throw new TypeError(`new ${what}({ buffer, view }): give one of them; the index counts from its start`)
  const index = first ?? 0
  const memory: unknown = buffer ?? (ArrayBuffer.isView(view) ? view.buffer : undefined)
  if (!(memory instanceof SharedArrayBuffer)) {
    throw new TypeError(
      `new ${what}({ ${buffer ? 'buffer' : 'view'} }): it must be, or be a view of, a SharedArrayBuffer`,
    )
  }
  if (view !== undefined && !(view instanceof Int32Array) && !(view instanceof Uint32Array)) {
    const kind = (view as { readonly [Symbol.toStringTag]: string })[Symbol.toStringTag]
    throw new TypeError(`new ${what}({ view }): got a ${kind}; give an Int32Array over the same buffer`)
  }
  const at = index + (view === undefined ? 0 : view.byteOffset / 4)
  const i32 = viewOf(memory)
  const end = view === undefined ? i32.length : at - index + view.length
  if (!Number.isInteger(index) || index < 0 || at + words > end) {
    throw new RangeError(
      `new ${what}({ index: ${index} }): it needs ${words} words from there, and there are ${Math.max(0, end - at)}`,
    )
  }
  return { i32, at }
}

const views = new WeakMap<SharedArrayBuffer, Int32Array<SharedArrayBuffer>>()

/** This thread's view of a buffer, shared by all objects in it, until the buffer grows. */
export function viewOf(buffer: SharedArrayBuffer): Int32Array<SharedArrayBuffer> {
  const length = Math.floor(buffer.byteLength / 4)
  let view = views.get(buffer)
  if (view === undefined || view.length < length) {
    view = new Int32Array(buffer, 0, length)
    views.set(buffer, view)
  }
  return view
}

/**
 * The handle for `postMessage`. The receiver's `from` joins the domain, so that the two can wait for each
 * other.
 */
export function handleOf(
  name: string,
  { i32, at }: ObjectWords,
  options: Readonly<Record<string, unknown>> = {},
): SyncHandle {
  currentFutexes()
  return { heddle: name, buffer: i32.buffer, at, options, domain: domainHandle() }
}

/** The words that a handle names. This thread joins the sender's domain. */
export function openHandle(
  name: string,
  handle: SyncHandle,
): { place: ObjectWords; options: Record<string, unknown> } {
  if (handle?.heddle !== name || !(handle.buffer instanceof SharedArrayBuffer)) {
    throw new TypeError(`${name}.from(handle): this is not the handle of a ${name}; send its \`handle\``)
  }
  if (!Number.isInteger(handle.at) || handle.at < 0 || handle.at >= handle.buffer.byteLength / 4) {
    throw new TypeError(
      `${name}.from(handle): at: ${String(handle.at)} is no word of its buffer; send the \`handle\` as it is`,
    )
  }
  if (handle.domain !== undefined) attach(handle.domain)
  return { place: { i32: viewOf(handle.buffer), at: handle.at }, options: { ...handle.options } }
}
