import { CheckError } from '../errors.ts'
import type { Machine } from './machine.ts'
import { ASLEEP, BLOCKED, RUNNABLE } from './threadstates.ts'
import type { CheckedMutex } from './mutex.ts'
import { callDataView, dataViewBytes, native, type Numeric, type View } from '../instrument/natives.ts'
import {
  ALLOCATE,
  AWAIT,
  COMPARE_EXCHANGE,
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  FREE,
  GROW,
  LENGTH,
  KIND_NAMES,
  LOAD,
  LOCK,
  NOTIFY,
  PAUSE,
  PLAIN_READ,
  UNLOCK,
  WAIT,
  WAIT_ASYNC,
} from './operations.ts'
import { pending } from './pending.ts'
import { growing, kindOf } from './views.ts'
import { CheckedPromise } from './waiters.ts'

/** The result of an operation that turned out not to be a shared access. */
export interface Immediate {
  readonly value: unknown
  readonly failed: boolean
}

/**
 * Finds the cells of the operation that a thread has just recorded, and whether the thread can perform it
 * now. Returns a result instead when the operation is not a shared access: an index out of range, or an
 * `await` of a plain value.
 */
export function locate(machine: Machine, thread: number): Immediate | undefined {
  const kind = pending.kind[thread]
  if (kind <= COMPARE_EXCHANGE) {
    const view = pending.view[thread] as View
    const index = pending.index[thread]
    if (typeof index === 'number' && index >= 0 && index < view.length && (index | 0) === index) {
      const { memory } = machine
      const bytes = view.BYTES_PER_ELEMENT
      const base = memory.addressOf(view as unknown as ArrayBufferView)
      if (kind >= LOAD && !memory.lastInteger) return refuse(thread, kind)
      if (kind < LOAD) machine.plainSeen = true
      const address = base + index * bytes
      const { shift } = memory
      if (((address | bytes) & ((1 << shift) - 1)) !== 0) memory.requireGranule(address, bytes)
      const from = address >> shift
      const to = (address + bytes) >> shift
      memory.note(from, to, 0)
      machine.from[thread] = from
      machine.to[thread] = to
      machine.from2[thread] = 0
      machine.to2[thread] = 0
      if (pending.grows) followLength(machine, thread)
      machine.status[thread] = RUNNABLE
      machine.enabled |= 1 << thread
      return undefined
    }
    return locateOddIndex(machine, thread, kind)
  }
  return locateOther(machine, thread, kind)
}

/** An access to a view that grows with its buffer also reads the length of the buffer. */
function followLength(machine: Machine, thread: number): void {
  const view = pending.view[thread] as ArrayBufferView<SharedArrayBuffer>
  if (growing(view) === undefined) return
  const cell = machine.memory.lengthCell(machine.memory.stretchOf(view.buffer))
  machine.from2[thread] = cell
  machine.to2[thread] = cell + 1
}

function refuse(thread: number, kind: number): Immediate {
  try {
    native[KIND_NAMES[kind]](
      pending.view[thread],
      pending.index[thread],
      pending.a[thread],
      pending.b[thread],
    )
  } catch (error) {
    return { value: error, failed: true }
  }
  throw new Error('Atomics refuses views that do not hold integers')
}

function locateOddIndex(machine: Machine, thread: number, kind: number): Immediate | undefined {
  const view = pending.view[thread] as View
  const index = pending.index[thread]
  if (kind >= LOAD) {
    const number = Math.trunc(Number(index)) || 0
    if (number < 0 || number >= view.length) return refuse(thread, kind)
    pending.index[thread] = number
    return locate(machine, thread)
  }
  if (typeof index === 'string' && String(Number(index)) === index) {
    pending.index[thread] = Number(index)
    const number = pending.index[thread] as number
    if (Number.isInteger(number) && number >= 0 && number < view.length) return locate(machine, thread)
  }
  try {
    if (kind === PLAIN_READ) return { value: view[index as number], failed: false }
    view[index as number] = pending.a[thread] as Numeric
    return { value: pending.a[thread], failed: false }
  } catch (error) {
    return { value: error, failed: true }
  }
}

function locateOther(machine: Machine, thread: number, kind: number): Immediate | undefined {
  const { memory } = machine
  switch (kind) {
    case WAIT:
    case WAIT_ASYNC:
    case NOTIFY: {
      const view = pending.view[thread] as Int32Array
      const index = Math.trunc(Number(pending.index[thread])) || 0
      const fit = isWaitable(view)
      if (!fit || index < 0 || index >= view.length) return refuseWait(thread, kind)
      const bytes = view.BYTES_PER_ELEMENT
      const address = memory.addressOf(view) + index * bytes
      memory.requireGranule(address, bytes)
      pending.index[thread] = index
      const list = memory.listCell(view, address)
      if (kind === NOTIFY) machine.setRange(thread, 0, 0)
      else {
        machine.setRange(thread, address >> memory.shift, (address + bytes) >> memory.shift)
        memory.note(machine.from[thread], machine.to[thread], 0)
      }
      machine.from2[thread] = list
      machine.to2[thread] = list + 1
      break
    }
    case AWAIT: {
      const awaited = pending.view[thread]
      if (!(awaited instanceof CheckedPromise)) return awaitPlain(awaited)
      const { sleeper } = awaited
      machine.setRange(thread, 0, 0)
      machine.from2[thread] = sleeper.cell
      machine.to2[thread] = sleeper.cell + 1
      machine.sleepers[thread] = sleeper
      if (!sleeper.finite) {
        machine.enabledBy[thread] = sleeper.wokenAt
        if (sleeper.state === 'asleep') {
          machine.setEnabled(thread, ASLEEP)
          return undefined
        }
      }
      break
    }
    case DATAVIEW_READ:
    case DATAVIEW_WRITE: {
      const view = pending.view[thread] as DataView
      const [method] = pending.b[thread] as [string, boolean]
      const bytes = dataViewBytes(method)
      const index = Math.trunc(Number(pending.index[thread])) || 0
      if (index < 0 || index + bytes > view.byteLength) {
        try {
          return { value: callDataView(thread), failed: false }
        } catch (error) {
          return { value: error, failed: true }
        }
      }
      const address = memory.addressOf(view) + index
      memory.requireGranule(address, bytes)
      machine.plainSeen = true
      machine.setRange(thread, address >> memory.shift, (address + bytes) >> memory.shift)
      memory.note(machine.from[thread], machine.to[thread], 1)
      if (pending.grows) followLength(machine, thread)
      break
    }
    case LENGTH:
    case GROW: {
      const behind = pending.view[thread] as SharedArrayBuffer | ArrayBufferView<SharedArrayBuffer>
      const stretch = memory.stretchOf('buffer' in behind ? behind.buffer : behind)
      const cell = memory.lengthCell(stretch)
      machine.setRange(thread, cell, cell + 1)
      break
    }
    case FREE:
    case ALLOCATE: {
      const view = pending.view[thread] as Int32Array
      const bytes = view.BYTES_PER_ELEMENT
      const address = memory.addressOf(view) + (pending.index[thread] as number) * bytes
      const length = (pending.a[thread] as number) * bytes
      memory.requireGranule(address, bytes)
      machine.setRange(thread, address >> memory.shift, (address + length) >> memory.shift)
      break
    }
    case LOCK:
    case UNLOCK: {
      const mutex = pending.view[thread] as CheckedMutex
      const cell = memory.mutexCell(mutex)
      machine.setRange(thread, 0, 0)
      machine.from2[thread] = cell
      machine.to2[thread] = cell + 1
      if (kind === LOCK && mutex.owner >= 0) {
        machine.setEnabled(thread, BLOCKED)
        return undefined
      }
      break
    }
    case PAUSE:
      return { value: undefined, failed: false }
    default:
      throw new Error(`instrumented code asked for an operation of unknown kind ${kind}`)
  }
  machine.setEnabled(thread, RUNNABLE)
  return undefined
}

function isWaitable(view: unknown): boolean {
  const kind = kindOf(view)
  return kind === 'Int32Array' || kind === 'BigInt64Array'
}

function refuseWait(thread: number, kind: number): Immediate {
  const name = kind === NOTIFY ? 'notify' : kind === WAIT ? 'wait' : 'waitAsync'
  try {
    const { view, index, a, b } = pending
    return { value: native[name](view[thread], index[thread], a[thread], b[thread] ?? 0), failed: false }
  } catch (error) {
    return { value: error, failed: true }
  }
}

function awaitPlain(awaited: unknown): Immediate {
  if (awaited instanceof Promise || typeof (awaited as { then?: unknown } | null)?.then === 'function') {
    return {
      value: new CheckError(
        'ERR_CHECK_PROMISE',
        'a thread body awaits a promise that the checker did not make, so nothing in the check can settle it; await `Atomics.waitAsync` or an instrumented async function, or move the `await` out of the check',
      ),
      failed: true,
    }
  }
  return { value: awaited, failed: false }
}
