import { CheckError } from '../errors.ts'
import { type Immediate, locate } from '../machine/locate.ts'
import type { Machine } from '../machine/machine.ts'
import { BeginAgain } from '../machine/memory.ts'
import { dataViewBytes, native, type View } from '../instrument/natives.ts'
import {
  AWAIT,
  COMPARE_EXCHANGE,
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  KIND_NAMES,
  LOAD,
  PAUSE,
  PLAIN_READ,
  PLAIN_WRITE,
  STORE,
} from '../machine/operations.ts'
import { pending, siteName } from '../machine/pending.ts'
import { kindOf, typedArrays } from '../machine/views.ts'
import { type Access, sameBytes } from './event.ts'

/**
 * The next action of a thread: an access, or the result of an operation that turned out not to be an access.
 */
export type Next = { readonly access: Access } | { readonly immediate: Immediate }

/**
 * Reads the operation that a thread has just yielded. Throws a CheckError for an operation that the weak
 * memory model of this search does not support.
 */
export function nextOf(machine: Machine, thread: number): Next {
  const kind = pending.kind[thread]
  const isAccess = kind <= COMPARE_EXCHANGE || kind === DATAVIEW_READ || kind === DATAVIEW_WRITE
  if (!isAccess && kind !== PAUSE && kind !== AWAIT) refuse(thread, KIND_NAMES[kind])
  if (pending.grows) refuse(thread, 'a buffer that can grow')
  // The clock of the history would order events that the program leaves unordered.
  if (pending.clocks.has(pending.view[thread] as object)) refuse(thread, 'a call that a History writes down')
  const immediate = place(machine, thread)
  if (immediate !== undefined) return { immediate }
  if (!isAccess) refuse(thread, KIND_NAMES[kind])
  try {
    return { access: accessOf(machine, thread, kind) }
  } catch (error) {
    // A conversion of the language threw before the operation touched memory.
    return { immediate: { value: error, failed: true } }
  }
}

function place(machine: Machine, thread: number): Immediate | undefined {
  for (;;) {
    try {
      return locate(machine, thread)
    } catch (error) {
      // Partly overlapping ranges make no difference here: each byte is a cell.
      if (!(error instanceof BeginAgain)) throw error
    }
  }
}

function refuse(thread: number, what: string): never {
  const site = pending.site[thread]
  throw new CheckError(
    'ERR_CHECK_WEAK',
    `${what}${site < 0 ? '' : ` at ${siteName(site)}`}, in ${pending.names[thread]}: a check with \`memory: 'weak'\` explores plain accesses and Atomics, on buffers of a fixed length, without histories; wait for a change with a loop that loads, or leave the option out`,
  )
}

function accessOf(machine: Machine, thread: number, kind: number): Access {
  const address = machine.from[thread]
  const size = machine.to[thread] - address
  const index = Number(pending.index[thread])
  const isData = kind === DATAVIEW_READ || kind === DATAVIEW_WRITE
  const atomic = !isData && kind >= LOAD
  const writesOnly = kind === PLAIN_WRITE || kind === STORE || kind === DATAVIEW_WRITE
  return {
    kind,
    site: pending.site[thread],
    index,
    reads: !writesOnly,
    writes: kind !== PLAIN_READ && kind !== LOAD && kind !== DATAVIEW_READ,
    atomic,
    whole: !isData && isWhole(kindOf(pending.view[thread])!, atomic),
    address,
    size,
    apply: isData ? throughData(thread) : throughView(thread, kind),
  }
}

/** `IsNoTearConfiguration`. */
function isWhole(type: string, atomic: boolean): boolean {
  return type.startsWith('Big') ? atomic : /^(?:Int|Uint)\d+Array$/.test(type)
}

/** Private memory in which single operations are computed. */
const scratch = new ArrayBuffer(8)
const scratchBytes = new Uint8Array(scratch)
const scratchData = new DataView(scratch)
const scratchViews = new Map<string, View>()

function scratchView(type: string): View {
  let view = scratchViews.get(type)
  if (view === undefined) {
    view = new typedArrays[type]!(scratch, 0, 1) as View
    scratchViews.set(type, view)
  }
  return view
}

function throughView(thread: number, kind: number): Access['apply'] {
  const type = kindOf(pending.view[thread])!
  const view = scratchView(type)
  const size = view.BYTES_PER_ELEMENT
  const [a, b] = [pending.a[thread], pending.b[thread]]
  if (kind === PLAIN_READ || kind === LOAD) {
    return found => {
      scratchBytes.set(found!)
      return { value: view[0], wrote: undefined }
    }
  }
  if (kind === PLAIN_WRITE || kind === STORE) {
    const value = kind === STORE ? native.store(view, 0, a) : ((view[0] = a as number), a)
    const wrote = scratchBytes.slice(0, size)
    return () => ({ value, wrote })
  }
  let expected: Uint8Array | undefined
  if (kind === COMPARE_EXCHANGE) {
    native.store(view, 0, b)
    native.store(view, 0, a)
    expected = scratchBytes.slice(0, size)
  } else {
    native.exchange(view, 0, a)
  }
  return found => {
    scratchBytes.set(found!)
    const fails = expected !== undefined && !sameBytes(expected, found)
    const value = native[KIND_NAMES[kind]](view, 0, a, b)
    return { value, wrote: fails ? undefined : scratchBytes.slice(0, size) }
  }
}

function throughData(thread: number): Access['apply'] {
  const [method, little] = pending.b[thread] as [string, unknown]
  const data = scratchData as unknown as Record<string, (...args: unknown[]) => unknown>
  const size = dataViewBytes(method)
  if (method.startsWith('get')) {
    return found => {
      scratchBytes.set(found!)
      return { value: data[method](0, little), wrote: undefined }
    }
  }
  data[method](0, pending.a[thread], little)
  const wrote = scratchBytes.slice(0, size)
  return () => ({ value: undefined, wrote })
}
