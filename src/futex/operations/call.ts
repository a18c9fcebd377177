import type { FutexContext } from '../core/context.ts'
import { deadlineOf, timeoutLimit, wallLimit } from '../core/deadline.ts'
import { EAGAIN, EFAULT, EINTR, EINVAL, ENOSYS, EPERM } from '../core/errno.ts'
import { idleOwner, lockPi, type LockWait, unlockPi } from '../pi/pi.ts'
import { hadMoved, requeuePi, waitRequeuePi } from '../pi/pirequeue.ts'
import { FUTEX_TID_MASK, holderOf } from '../core/owner.ts'
import { QUEUE_RESTARTED, Waiter, QUEUE_WOKEN } from '../core/records.ts'
import { requeue } from './requeue.ts'
import { finishWait, RESTART } from '../core/sleep.ts'
import type { AddressSpace } from '../core/space.ts'
import { FutexWord } from '../core/space.ts'
import { freeWaiters, MATCH_ANY, queueNewWaiter, wake, type WaiterOptions } from './waitwake.ts'
import { wakeOp } from './wakeop.ts'

/** The operations, by Linux's numbers. */
export const FUTEX_WAIT = 0
export const FUTEX_WAKE = 1
export const FUTEX_FD = 2
export const FUTEX_REQUEUE = 3
export const FUTEX_CMP_REQUEUE = 4
export const FUTEX_WAKE_OP = 5
export const FUTEX_LOCK_PI = 6
export const FUTEX_UNLOCK_PI = 7
export const FUTEX_TRYLOCK_PI = 8
export const FUTEX_WAIT_BITSET = 9
export const FUTEX_WAKE_BITSET = 10
export const FUTEX_WAIT_REQUEUE_PI = 11
export const FUTEX_CMP_REQUEUE_PI = 12
export const FUTEX_LOCK_PI2 = 13
export const FUTEX_PRIVATE_FLAG = 128
export const FUTEX_CLOCK_REALTIME = 256
const COMMAND: number = ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)

export const CLOCK_REALTIME = 0
export const CLOCK_MONOTONIC = 1
/** How many words waitv takes. */
export const WAITV_MAX = 128
/**
 * The flags of futex2: the size of a word, and whether it is private to this space. `prepareWaitv` takes
 * words of 32 bits; `futex` of `heddle` takes all sizes.
 */
export const FUTEX2_SIZE_U8 = 0
export const FUTEX2_SIZE_U16 = 1
export const FUTEX2_SIZE_U32 = 2
export const FUTEX2_SIZE_U64 = 3
export const FUTEX2_SIZE_MASK = 3
/** Refused: words have no NUMA node. */
export const FUTEX2_NUMA = 4
export const FUTEX2_PRIVATE = 128

/** A word: a view and an index, or a buffer and an offset in bytes. It may be invalid in any way. */
export type Uaddr =
  | { readonly view: Int32Array | Uint32Array; readonly index: number }
  | { readonly buffer: SharedArrayBuffer; readonly byteOffset: number }
  | null

/** Seconds and nanoseconds, as a struct timespec. */
export interface Timespec {
  readonly sec: number
  readonly nsec: number
}

export interface WaitvEntry {
  readonly uaddr: Uaddr
  readonly val: number
  readonly flags: number
}

/** The outcome of the first half of a call: a result, or a wait for which the caller has to sleep. */
export type Prepared = number | PreparedWait

export interface PreparedWait {
  readonly waiters: readonly number[]
  readonly deadline: number
  /** A single wait returns 0 where a vector returns an index. */
  readonly vector: boolean
  /** Set for a wait for a lock. */
  readonly lock?: LockWait | undefined
}

/** Whether the call is made for an owner of locks. */
export function isLockCall(op: number): boolean {
  const command = op & COMMAND
  return (
    (command >= FUTEX_LOCK_PI && command <= FUTEX_TRYLOCK_PI) ||
    command === FUTEX_WAIT_REQUEUE_PI ||
    command === FUTEX_LOCK_PI2
  )
}

/** The last step of a wait: the call's result, or a new wait. Frees its waiters. */
export function finishCall(context: FutexContext, wait: PreparedWait, slept: number): Prepared {
  const { waiters, lock, vector, deadline } = wait
  if (lock === undefined) {
    freeWaiters(context, waiters)
    return vector || slept < 0 ? slept : 0
  }
  const { i32 } = context
  const [waiter] = waiters
  const moved = hadMoved(i32, waiter)
  freeWaiters(context, waiters)
  const { word, shared, caller, requeued } = lock
  const owner = caller.owner
  if (owner !== undefined) owner.waiting = false
  const tid = owner?.tid ?? 0
  if (slept === RESTART) {
    if (!requeued || moved) return lockPi(context, caller, word, shared, deadline, false, true)
    // It seems to be at the condition still: either the lock was taken for it, or the wakeup was spurious.
    return holderOf(Atomics.load(word.i32, word.index)) === tid ? 0 : -EAGAIN
  }
  if (slept >= 0) return 0
  // The condition has been signalled for it, so it must not restart the wait.
  return slept === -EINTR && requeued && moved ? -EAGAIN : slept
}

/**
 * Replaces finishCall if an error was thrown into the sleeper, which has left its queues: a lock that it had
 * been given passes to the next waiter. Frees the waiters.
 */
export function abandonCall(context: FutexContext, { waiters, lock }: PreparedWait): void {
  const { i32 } = context
  const [waiter] = waiters
  const end = Atomics.load(i32, waiter + Waiter.queue)
  freeWaiters(context, waiters)
  const owner = lock?.caller.owner
  if (lock === undefined || owner === undefined) return
  owner.waiting = false
  const { word, shared } = lock
  if (end !== QUEUE_WOKEN && end !== QUEUE_RESTARTED) return
  if (holderOf(Atomics.load(word.i32, word.index)) === owner.tid) unlockPi(context, owner, word, shared)
}

/** Finds a word, or returns an error, negated. Checks alignment before the address, as Linux does. */
export function findWord(context: FutexContext, space: AddressSpace, uaddr: Uaddr): FutexWord | number {
  if (uaddr === null || uaddr === undefined) return -EFAULT
  const view = 'view' in uaddr ? uaddr.view : undefined
  const offset = 'view' in uaddr ? uaddr.view.byteOffset + uaddr.index * 4 : uaddr.byteOffset
  if (typeof offset !== 'number' || Number.isNaN(offset)) return -EFAULT
  if (offset % 4 !== 0) return -EINVAL
  const mapped =
    view === undefined ? space.findBuffer((uaddr as { buffer: SharedArrayBuffer }).buffer) : space.find(view)
  if (mapped === undefined) return -EFAULT
  const index = offset / 4
  if (index < 0 || index >= mapped.i32.length) return -EFAULT
  if ('view' in uaddr && (uaddr.index < 0 || uaddr.index >= uaddr.view.length)) return -EFAULT
  return mapped.word(context, index)
}

/** Converts a timeout to a deadline, or returns an error, negated (a deadline is never negative). */
function deadlineOfCall(
  context: FutexContext,
  timeout: Timespec | null | undefined,
  relative: boolean,
  realtime: boolean,
): number {
  if (timeout === null || timeout === undefined) return Infinity
  const { sec, nsec } = timeout
  if (!(sec >= 0) || !(nsec >= 0) || nsec > 999_999_999) return -EINVAL
  const ms = sec * 1e3 + nsec / 1e6
  if (relative) return deadlineOf(context.now, timeoutLimit(ms))
  return realtime ? wallLimit(ms) : timeoutLimit(ms)
}

/**
 * The call table. Does everything that does not sleep. For a call that sleeps it queues the waiter; the
 * caller (a thread, a promise or a task) sleeps.
 */
export function prepareCall(
  context: FutexContext,
  space: AddressSpace,
  caller: WaiterOptions,
  uaddr: Uaddr,
  op: number,
  val: number,
  timeoutOrVal2: Timespec | number | null | undefined,
  uaddr2: Uaddr,
  val3: number,
): Prepared {
  const command = op & COMMAND
  const shared = (op & FUTEX_PRIVATE_FLAG) === 0
  const realtime = (op & FUTEX_CLOCK_REALTIME) !== 0
  let deadline = Infinity
  if (hasTimeout(command)) {
    // 0 is a null pointer: no timeout.
    if (typeof timeoutOrVal2 === 'number' && timeoutOrVal2 !== 0) return -EFAULT
    // LOCK_PI uses the wall clock, whatever its flags say.
    const wall = realtime || command === FUTEX_LOCK_PI
    deadline = deadlineOfCall(context, timeoutOrVal2 || null, command === FUTEX_WAIT, wall)
    if (deadline < 0) return deadline
  }
  if (
    realtime &&
    command !== FUTEX_WAIT_BITSET &&
    command !== FUTEX_WAIT_REQUEUE_PI &&
    command !== FUTEX_LOCK_PI2
  ) {
    return -ENOSYS
  }
  const val2 = typeof timeoutOrVal2 === 'number' ? timeoutOrVal2 | 0 : 0
  switch (command) {
    case FUTEX_WAIT:
      return prepareWait(context, space, caller, uaddr, shared, val, deadline, MATCH_ANY)
    case FUTEX_WAIT_BITSET:
      return prepareWait(context, space, caller, uaddr, shared, val, deadline, val3)
    case FUTEX_WAKE:
      return wakeCall(context, space, uaddr, shared, val, MATCH_ANY)
    case FUTEX_WAKE_BITSET:
      return wakeCall(context, space, uaddr, shared, val, val3)
    case FUTEX_REQUEUE:
      return requeueCall(context, space, uaddr, uaddr2, shared, val, val2, undefined)
    case FUTEX_CMP_REQUEUE:
      return requeueCall(context, space, uaddr, uaddr2, shared, val, val2, val3 | 0)
    case FUTEX_WAKE_OP: {
      const first = findWord(context, space, uaddr)
      if (typeof first === 'number') return first
      const second = findWord(context, space, uaddr2)
      if (typeof second === 'number') return second
      return wakeOp(context, first, second, shared, val | 0, val2, val3 | 0)
    }
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
      return lockCall(context, space, caller, uaddr, shared, deadline, false)
    case FUTEX_TRYLOCK_PI:
      return lockCall(context, space, caller, uaddr, shared, Infinity, true)
    case FUTEX_UNLOCK_PI:
      return unlockCall(context, space, caller, uaddr, shared)
    case FUTEX_WAIT_REQUEUE_PI:
      return waitRequeuePiCall(context, space, caller, uaddr, uaddr2, shared, val | 0, deadline)
    case FUTEX_CMP_REQUEUE_PI:
      return requeuePiCall(context, space, uaddr, uaddr2, shared, val | 0, val2, val3 | 0)
    // Includes FUTEX_FD, which Linux removed.
    default:
      return -ENOSYS
  }
}

function hasTimeout(command: number): boolean {
  return (
    command === FUTEX_WAIT ||
    command === FUTEX_WAIT_BITSET ||
    command === FUTEX_LOCK_PI ||
    command === FUTEX_LOCK_PI2 ||
    command === FUTEX_WAIT_REQUEUE_PI
  )
}

function lockCall(
  context: FutexContext,
  space: AddressSpace,
  caller: WaiterOptions,
  uaddr: Uaddr,
  shared: boolean,
  deadline: number,
  tries: boolean,
): Prepared {
  const word = findWord(context, space, uaddr)
  return typeof word === 'number' ? word : lockPi(context, caller, word, shared, deadline, tries)
}

/** Whether both are the same address of the same mapping. Checked before the address itself. */
function sameAddress(space: AddressSpace, one: Uaddr, other: Uaddr): boolean {
  if (!one || !other) return one === other
  const memory = (uaddr: Exclude<Uaddr, null>): unknown =>
    'view' in uaddr
      ? (space.find(uaddr.view) ?? uaddr.view.buffer)
      : (space.findBuffer(uaddr.buffer) ?? uaddr.buffer)
  const offset = (uaddr: Exclude<Uaddr, null>): number =>
    'view' in uaddr ? uaddr.view.byteOffset + uaddr.index * 4 : uaddr.byteOffset
  return memory(one) === memory(other) && offset(one) === offset(other)
}

/**
 * UNLOCK_PI reads the word before it checks the alignment: another owner's lock is EPERM even at an address
 * where no lock can be.
 */
function unlockCall(
  context: FutexContext,
  space: AddressSpace,
  caller: WaiterOptions,
  uaddr: Uaddr,
  shared: boolean,
): number {
  const owner = idleOwner(caller)
  const word = findWord(context, space, uaddr)
  if (typeof word !== 'number') return unlockPi(context, owner, word, shared)
  if (word !== -EINVAL || !uaddr) return word
  const buffer = 'view' in uaddr ? (uaddr.view.buffer as SharedArrayBuffer) : uaddr.buffer
  const offset = 'view' in uaddr ? uaddr.view.byteOffset + uaddr.index * 4 : uaddr.byteOffset
  if (space.findBuffer(buffer) === undefined || !(offset >= 0) || offset + 4 > buffer.byteLength)
    return -EFAULT
  const seen = new DataView(buffer).getInt32(Math.floor(offset), true)
  return (seen & FUTEX_TID_MASK) === owner.tid ? -EINVAL : -EPERM
}

function waitRequeuePiCall(
  context: FutexContext,
  space: AddressSpace,
  caller: WaiterOptions,
  uaddr: Uaddr,
  uaddr2: Uaddr,
  shared: boolean,
  val: number,
  deadline: number,
): Prepared {
  if (sameAddress(space, uaddr, uaddr2)) return -EINVAL
  const lock = findWord(context, space, uaddr2)
  if (typeof lock === 'number') return lock
  const word = findWord(context, space, uaddr)
  return typeof word === 'number' ? word : waitRequeuePi(context, caller, word, lock, shared, val, deadline)
}

function requeuePiCall(
  context: FutexContext,
  space: AddressSpace,
  uaddr: Uaddr,
  uaddr2: Uaddr,
  shared: boolean,
  wakeLimit: number,
  moveLimit: number,
  expected: number,
): number {
  if (wakeLimit < 0 || moveLimit < 0) return -EINVAL
  if (sameAddress(space, uaddr, uaddr2) || wakeLimit !== 1) return -EINVAL
  const from = findWord(context, space, uaddr)
  if (typeof from === 'number') return from
  const to = findWord(context, space, uaddr2)
  return typeof to === 'number' ? to : requeuePi(context, from, to, shared, moveLimit, expected)
}

function wakeCall(
  context: FutexContext,
  space: AddressSpace,
  uaddr: Uaddr,
  shared: boolean,
  val: number,
  bitset: number,
): number {
  if ((bitset | 0) === 0) return -EINVAL
  const word = findWord(context, space, uaddr)
  return typeof word === 'number' ? word : wake(context, word, shared, val | 0, bitset | 0)
}

function requeueCall(
  context: FutexContext,
  space: AddressSpace,
  uaddr: Uaddr,
  uaddr2: Uaddr,
  shared: boolean,
  wakeLimit: number,
  moveLimit: number,
  expected: number | undefined,
): number {
  if ((wakeLimit | 0) < 0 || (moveLimit | 0) < 0) return -EINVAL
  const from = findWord(context, space, uaddr)
  if (typeof from === 'number') return from
  const to = findWord(context, space, uaddr2)
  if (typeof to === 'number') return to
  return requeue(context, from, to, shared, wakeLimit | 0, moveLimit | 0, expected)
}

/** Queues one waiter, or returns an error, negated. */
export function prepareWait(
  context: FutexContext,
  space: AddressSpace,
  caller: WaiterOptions,
  uaddr: Uaddr,
  shared: boolean,
  val: number,
  deadline: number,
  bitset: number,
): Prepared {
  if ((bitset | 0) === 0) return -EINVAL
  const word = findWord(context, space, uaddr)
  if (typeof word === 'number') return word
  return prepareWordWait(context, caller, word, shared, val, deadline, bitset)
}

/** As prepareWait, for a word that has been found already. */
export function prepareWordWait(
  context: FutexContext,
  caller: WaiterOptions,
  word: FutexWord,
  shared: boolean,
  val: number,
  deadline: number,
  bitset: number,
): Prepared {
  if (!word.isMapped(context.i32, shared)) return -EFAULT
  // A first check without the lock: a word that has changed costs no lock and no waiter.
  if (Atomics.load(word.i32, word.index) !== (val | 0)) return -EAGAIN
  const waiter = queueNewWaiter(context, word, shared, val | 0, bitset | 0, caller)
  return waiter < 0 ? waiter : { waiters: [waiter], deadline, vector: false }
}

/** A value of the vector has 64 bits, and must fit a word: also a negative one, as an Int32Array holds it. */
function fitsWord(value: number): boolean {
  return value >= -0x8000_0000 && value <= 0xffff_ffff
}

/** futex_waitv: waits at every word of the vector. */
export function prepareWaitv(
  context: FutexContext,
  space: AddressSpace,
  caller: WaiterOptions,
  entries: readonly WaitvEntry[] | null,
  flags: number,
  timeout: Timespec | null,
  clock: number,
): Prepared {
  if (flags !== 0) return -EINVAL
  if (!entries || entries.length === 0 || entries.length > WAITV_MAX) return -EINVAL
  let deadline = Infinity
  if (timeout) {
    if (clock !== CLOCK_REALTIME && clock !== CLOCK_MONOTONIC) return -EINVAL
    deadline = deadlineOfCall(context, timeout, false, clock === CLOCK_REALTIME)
    if (deadline < 0) return deadline
  }
  for (const entry of entries) {
    if (!entry) return -EFAULT
    if ((entry.flags & ~(FUTEX2_PRIVATE | FUTEX2_SIZE_MASK)) !== 0) return -EINVAL
    if ((entry.flags & FUTEX2_SIZE_MASK) !== FUTEX2_SIZE_U32 || !fitsWord(entry.val)) return -EINVAL
  }
  const words: FutexWord[] = []
  for (const entry of entries) {
    const word = findWord(context, space, entry.uaddr)
    if (typeof word === 'number') return word
    words.push(word)
  }
  const waiters: number[] = []
  for (let at = 0; at < words.length; at++) {
    const { flags: bits, val } = entries[at]
    try {
      const shared = (bits & FUTEX2_PRIVATE) === 0
      const waiter = queueNewWaiter(context, words[at], shared, val | 0, MATCH_ANY, caller, waiters[0])
      if (waiter < 0) return abandonWaitv(context, waiters, waiter)
      waiters.push(waiter)
    } catch (full) {
      // If they stayed on their queues, they would be woken in the place of others.
      const woken = abandonWaitv(context, waiters, -1)
      if (woken < 0) throw full
      return woken
    }
  }
  return { waiters, deadline, vector: true }
}

/**
 * Removes the waiters of a vector that cannot be waited for. If one of them was woken already, that is the
 * result.
 */
function abandonWaitv(context: FutexContext, waiters: readonly number[], error: number): number {
  const result = waiters.length === 0 ? error : finishWait(context, waiters, error)
  freeWaiters(context, waiters)
  return result
}
