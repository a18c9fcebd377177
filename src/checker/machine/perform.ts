import { CHANGED, FAILED, MIXED, WOKE, WRITES, WRITES_SECOND } from './eventlog.ts'
import type { Machine } from './machine.ts'
import { ASLEEP, BLOCKED, RUNNABLE } from './threadstates.ts'
import type { CheckedMutex } from './mutex.ts'
import {
  callDataView,
  dataViewBits,
  dataViewBytes,
  native,
  type Numeric,
  type View,
} from '../instrument/natives.ts'
import {
  ADD,
  ALLOCATE,
  AND,
  AWAIT,
  COMPARE_EXCHANGE,
  CRASH,
  DATAVIEW_READ,
  DATAVIEW_WRITE,
  EXCHANGE,
  FREE,
  GROW,
  KIND_NAMES,
  LENGTH,
  LOAD,
  LOCK,
  NOTIFY,
  OR,
  PLAIN_READ,
  PLAIN_WRITE,
  RESUME,
  STORE,
  SUB,
  UNLOCK,
  WAIT,
  WAIT_ASYNC,
  XOR,
} from './operations.ts'
import { pending } from './pending.ts'
import { checkGrowth, currentLength, growing, kindOf, typedArrays } from './views.ts'
import { CheckedPromise, type Sleeper } from './waiters.ts'

/** The thread changed something, or was woken instead of another thread: its turn of a loop is not idle. */
function noteChange(thread: number): void {
  pending.effects[thread]++
  pending.writes[thread]++
}

/** Returned by `perform` when the thread has gone to sleep: the thread is not resumed. */
export const SLEEPS: unique symbol = Symbol('sleeps')

/** Performs the next operation of a thread. Sets `machine.flags`, and `before` and `wrote` of the log. */
export function perform(machine: Machine, thread: number, kind: number, at: number): unknown {
  if (pending.grows && (kind <= NOTIFY || kind === DATAVIEW_READ || kind === DATAVIEW_WRITE)) {
    const beyond = performBeyond(machine, thread, kind)
    if (beyond !== undefined) return beyond.value
  }
  if (kind <= COMPARE_EXCHANGE) {
    if (machine.freedCells.size > 0) checkFreed(machine, thread, kind)
    return access(machine, thread, kind, at)
  }
  return performOther(machine, thread, kind, at)
}

/** Performs an access outside the current length of its view, or throws; undefined when it is inside. */
function performBeyond(machine: Machine, thread: number, kind: number): { value: unknown } | undefined {
  const view = pending.view[thread] as View
  if (growing(view) === undefined) return undefined
  const data = kind === DATAVIEW_READ || kind === DATAVIEW_WRITE
  const size = data ? dataViewBytes((pending.b[thread] as [string])[0]) : 1
  const end = (Math.trunc(Number(pending.index[thread])) || 0) + size
  if (end <= currentLength(view, data ? 'byteLength' : 'length')) return undefined
  if (kind === PLAIN_READ) return { value: undefined }
  // Whether the access writes must not depend on the length: see `Memory.mixed`.
  machine.flags = WRITES
  if (kind === PLAIN_WRITE) return { value: pending.a[thread] }
  if (kind === LOAD || kind === DATAVIEW_READ) machine.flags = 0
  throw new RangeError(data ? 'Offset is outside the bounds of the DataView' : 'Invalid atomic access index')
}

/** Performs an access again, in a replay. Sets `machine.flags` and `wrote` as `perform` does. */
export function accessAgain(machine: Machine, thread: number, kind: number, at: number): unknown {
  machine.flags = 0
  machine.wrote = 0
  return access(machine, thread, kind, at)
}

function access(machine: Machine, thread: number, kind: number, at: number): unknown {
  const view = pending.view[thread] as View
  const index = pending.index[thread] as number
  if (kind === PLAIN_READ || kind === LOAD) return view[index]
  const a = pending.a[thread] as Numeric
  const old = view[index]
  const { log } = machine
  log.before[at] = old
  let result: unknown = old
  if (kind === COMPARE_EXCHANGE) {
    const expected = old === a ? a : inView(view, a)
    log.expected[at] = expected
    const mixed = machine.memory.mixed.size > 0 && machine.memory.mixed.has(log.from[at])
    if (old !== expected) {
      if (mixed) machine.flags = WRITES | FAILED | MIXED
      return old
    }
    if (mixed) machine.flags = MIXED
    const b = pending.b[thread] as Numeric
    if (typeof b === typeof old) view[index] = b
    else return native.compareExchange(view, index, a, b)
  } else if (typeof a !== typeof old || (typeof a === 'number' && !Number.isSafeInteger(a))) {
    result = accessConverted(view, index, kind, a)
  } else {
    switch (kind) {
      case PLAIN_WRITE:
      case STORE:
        view[index] = a
        result = a
        break
      case ADD:
        view[index] = ((old as number) + (a as number)) as Numeric
        break
      case SUB:
        view[index] = ((old as number) - (a as number)) as Numeric
        break
      case AND:
        view[index] = ((old as number) & (a as number)) as Numeric
        break
      case OR:
        view[index] = ((old as number) | (a as number)) as Numeric
        break
      case XOR:
        view[index] = ((old as number) ^ (a as number)) as Numeric
        break
      case EXCHANGE:
        view[index] = a
        break
      default:
        throw new Error(`operation ${kind} is not an access`)
    }
  }
  const now = view[index]
  machine.flags |= Object.is(now, old) ? WRITES : WRITES | CHANGED
  machine.wrote = typeof now === 'number' ? now : Number(now)
  return result
}

/** For values that are not integers of the view's type: uses the conversions and errors of the language. */
function accessConverted(view: View, index: number, kind: number, a: unknown): unknown {
  if (kind === PLAIN_WRITE) {
    view[index] = a as Numeric
    return a
  }
  return native[KIND_NAMES[kind]](view, index, a)
}

/** The original constructor, without guards. */
const Words = Int32Array

/** The value after conversion to the element type of this view. */
function inView(view: View, value: unknown): unknown {
  if (typeof value === 'number' && (value | 0) === value && (view as unknown) instanceof Words) return value
  const scratch = new typedArrays[kindOf(view)!]!(1) as View
  native.store(scratch, 0, value)
  return scratch[0]
}

function performOther(machine: Machine, thread: number, kind: number, at: number): unknown {
  switch (kind) {
    case WAIT:
    case WAIT_ASYNC:
      return performWait(machine, thread, kind, at)
    case NOTIFY:
      return performNotify(machine, thread, at)
    case RESUME:
    case AWAIT:
      return performResume(machine, thread, at)
    case DATAVIEW_READ:
      return callDataView(thread)
    case DATAVIEW_WRITE: {
      const view = pending.view[thread] as DataView
      const index = Number(pending.index[thread])
      const [method] = pending.b[thread] as [string, boolean]
      const before = dataViewBits(view, index, dataViewBytes(method))
      callDataView(thread)
      const after = dataViewBits(view, index, dataViewBytes(method))
      machine.log.before[at] = before
      machine.flags = before === after ? WRITES : WRITES | CHANGED
      machine.wrote = after
      return undefined
    }
    case LENGTH:
      return currentLength(pending.view[thread], pending.a[thread] as 'length' | 'byteLength')
    case GROW: {
      const stretch = machine.memory.stretchOf(pending.view[thread] as SharedArrayBuffer)
      checkGrowth(stretch, pending.a[thread])
      const length = Math.trunc(Number(pending.a[thread])) || 0
      machine.log.before[at] = stretch.length
      if (length !== stretch.length) machine.flags = WRITES | CHANGED
      machine.wrote = length
      stretch.length = length
      return undefined
    }
    case LOCK: {
      const mutex = pending.view[thread] as CheckedMutex
      mutex.owner = thread
      noteChange(thread)
      machine.flags = WRITES_SECOND
      for (let other = 0; other < machine.threads; other++) {
        if (other !== thread && standsAt(machine, other, mutex)) machine.setEnabled(other, BLOCKED)
      }
      return undefined
    }
    case UNLOCK: {
      const mutex = pending.view[thread] as CheckedMutex
      if (mutex.owner !== thread) throw new Error('a thread unlocked a mutex that it does not hold')
      mutex.owner = -1
      noteChange(thread)
      machine.flags = WRITES_SECOND
      for (let other = 0; other < machine.threads; other++) {
        if (standsAt(machine, other, mutex)) machine.setEnabled(other, RUNNABLE)
      }
      return undefined
    }
    case FREE:
    case ALLOCATE: {
      const freed = machine.freedCells
      if (kind === FREE && freed.has(machine.from[thread])) {
        machine.fault(
          'use-after-free',
          thread,
          new Error('freed twice'),
          freed.get(machine.from[thread]) as number,
        )
      }
      for (let cell = machine.from[thread]; cell < machine.to[thread]; cell++) {
        if (kind === FREE) freed.set(cell, at)
        else freed.delete(cell)
      }
      noteChange(thread)
      machine.flags = WRITES
      return undefined
    }
    case CRASH: {
      const sleeper = machine.sleepers[thread]
      machine.flags = WRITES_SECOND
      if (sleeper !== undefined && !sleeper.async && sleeper.state === 'asleep') {
        machine.log.before[at] = machine.waiters.count(sleeper.cell)
        machine.waiters.leave(sleeper)
        machine.flags = WRITES_SECOND | WRITES
      }
      return SLEEPS
    }
    default:
      throw new Error(`operation ${kind} cannot be performed`)
  }
}

function standsAt(machine: Machine, thread: number, mutex: CheckedMutex): boolean {
  return (
    pending.kind[thread] === LOCK &&
    pending.view[thread] === mutex &&
    (machine.status[thread] === RUNNABLE || machine.status[thread] === BLOCKED)
  )
}

function checkFreed(machine: Machine, thread: number, kind: number): void {
  for (let cell = machine.from[thread]; cell < machine.to[thread]; cell++) {
    const freedAt = machine.freedCells.get(cell)
    if (freedAt === undefined) continue
    const verb = kind === PLAIN_READ || kind === LOAD ? 'read' : 'written'
    machine.fault('use-after-free', thread, new Error(`memory was ${verb} after it was freed`), freedAt)
    return
  }
}

function performWait(machine: Machine, thread: number, kind: number, at: number): unknown {
  const view = pending.view[thread] as Int32Array
  const index = pending.index[thread] as number
  const wanted = inView(view as unknown as View, pending.a[thread] ?? 0)
  const cell = machine.from2[thread]
  const { log } = machine
  log.expected[at] = wanted
  const asynchronous = kind === WAIT_ASYNC
  const mixed = machine.memory.mixed.has(machine.from[thread])
  if (mixed) machine.flags = MIXED
  if ((view[index] as unknown) !== wanted) {
    joinNoList(machine, at)
    return asynchronous ? { async: false, value: 'not-equal' } : 'not-equal'
  }
  const timeout = Number(pending.b[thread])
  if (timeout <= 0) {
    joinNoList(machine, at)
    return asynchronous ? { async: false, value: 'timed-out' } : 'timed-out'
  }
  const finite = timeout < Number.POSITIVE_INFINITY
  const sleeper: Sleeper = { thread, cell, finite, async: asynchronous, state: 'asleep', wokenAt: -1 }
  log.before[at] = machine.waiters.count(cell)
  machine.waiters.join(sleeper)
  machine.flags |= WRITES_SECOND
  if (asynchronous) {
    noteChange(thread)
    return { async: true, value: new CheckedPromise(sleeper) }
  }
  machine.sleepers[thread] = sleeper
  if (machine.crashAt[thread] === pending.steps[thread]) {
    machine.armCrash(thread)
    machine.from[thread] = cell
    machine.to[thread] = cell + 1
  } else if (finite) {
    pending.kind[thread] = RESUME
    machine.setRange(thread, 0, 0)
    machine.from2[thread] = cell
    machine.to2[thread] = cell + 1
  } else {
    machine.setEnabled(thread, ASLEEP)
  }
  return SLEEPS
}

/** The wait did not join the list. The log keeps the list that it would have joined: see `Optimal`. */
function joinNoList(machine: Machine, at: number): void {
  if ((machine.flags & MIXED) !== 0) machine.flags |= WRITES_SECOND
  else machine.log.to2[at] = 0
}

function performNotify(machine: Machine, thread: number, at: number): unknown {
  const wanted = pending.a[thread]
  const count = wanted === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Math.trunc(Number(wanted)) || 0)
  const cell = machine.from2[thread]
  machine.log.before[at] = machine.waiters.count(cell)
  let woken = 0
  while (woken < count) {
    const sleeper = machine.waiters.shift(cell)
    if (sleeper === undefined) break
    woken++
    sleeper.state = 'woken'
    sleeper.wokenAt = at
    machine.woken.push(sleeper)
  }
  if (woken > 0) {
    machine.flags = WRITES_SECOND | WOKE
    noteChange(thread)
  }
  return woken
}

function performResume(machine: Machine, thread: number, at: number): unknown {
  const sleeper = machine.sleepers[thread] as Sleeper
  machine.log.before[at] = machine.waiters.count(sleeper.cell)
  machine.log.expected[at] = sleeper.wokenAt
  if (sleeper.state === 'woken') {
    noteChange(thread)
    return 'ok'
  }
  if (sleeper.state === 'timed-out') return 'timed-out'
  machine.waiters.leave(sleeper)
  sleeper.state = 'timed-out'
  machine.flags = WRITES_SECOND
  return 'timed-out'
}
