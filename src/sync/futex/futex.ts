import { blocking } from '../../coroutine/core/blocking.ts'
import { type Known, refuseUnknown } from '../../coroutine/core/knownoptions.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { EAGAIN, EFAULT, EINVAL, FutexError } from '../../futex/core/errno.ts'
import type { WaitResult } from '../../futex/core/futexes.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import { requeue } from '../../futex/operations/requeue.ts'
import { MATCH_ANY, wake } from '../../futex/operations/waitwake.ts'
import { encodeOp, wakeOp } from '../../futex/operations/wakeop.ts'
import {
  lockAsPromise,
  locked,
  lockInTask,
  lockOf,
  lockOnThread,
  type FutexLockView,
  moveToLockOf,
  tryLock,
  unlock,
  waitForLockOf,
} from './futexpi.ts'
import {
  type FutexLockOptions,
  type FutexWaitEntry,
  type FutexWaitOptions,
  said,
  waitAsPromise,
  waitIn,
  waitOnThread,
} from './futexwait.ts'
import {
  bitsetIn,
  bitsOf,
  type FutexView,
  idOfBuffer,
  joinBuffer,
  lockWordOf,
  sharedIn,
  valueIn,
  wordOf,
} from './futexword.ts'

/**
 * Futexes on any shared memory, for tasks, threads and promises, without setup. Calls that wait have three
 * verbs: plain in a task, `…Sync` on a thread, `…Async` anywhere.
 */

/**
 * The result of a blocking call: the value itself in a 'use task' function, through `yield*` in a generator.
 */
type Blocks<T> = Generator<number, T, unknown> & T

export interface FutexRequeueOptions {
  /** How many to wake; the default is 1. */
  readonly wake?: number | undefined
  /** How many to move at most; the default is all. */
  readonly move?: number | undefined
  /** The flags of futex2, for both words. */
  readonly flags?: number | undefined
}

/** For CMP_REQUEUE_PI, where the first waiter always gets the lock or is moved. */
export interface FutexMoveOptions {
  /** How many to move in addition to the first; the default is all. */
  readonly move?: number | undefined
}

export interface FutexWakeOptions {
  readonly bitset?: number | undefined
  /** The flags of futex2: FUTEX2_PRIVATE, and the size, if it is given, must be that of the view. */
  readonly flags?: number | undefined
}

export interface FutexWakeOpOptions {
  /** How many to wake at the first word; the default is 1. */
  readonly wake?: number | undefined
  /** How many to wake at the second word, if the comparison holds; the default is 1. */
  readonly wakeSecond?: number | undefined
  /** The flags of futex2, for both words. */
  readonly flags?: number | undefined
}

const wakeOptions: Known<FutexWakeOptions> = { bitset: true, flags: true }
const requeueOptions: Known<FutexRequeueOptions> = { wake: true, move: true, flags: true }
const moveOptions: Known<FutexMoveOptions> = { move: true }
const wakeOpOptions: Known<FutexWakeOpOptions> = { wake: true, wakeSecond: true, flags: true }

const NO_OPTIONS = {}

function checkOptions(what: string, options: object, known: Readonly<Record<string, true>>): void {
  if (options !== NO_OPTIONS) refuseUnknown(`the options of ${what}`, options, known)
}

function checkEntries(
  what: string,
  entries: readonly FutexWaitEntry[],
  { flags = 0 }: { readonly flags?: number | undefined },
  most = 128,
): void {
  if (flags !== 0) {
    throw new FutexError(
      EINVAL,
      what,
      `flags: ${String(flags)}; a vector has none but 0, give each word its own`,
    )
  }
  const least = most === 2 ? 2 : 1
  if (!Array.isArray(entries) || entries.length < least || entries.length > most) {
    const got = Array.isArray(entries) ? `${entries.length} words` : typeof entries
    const needed = most === 2 ? '2 words, [from, to]' : `1 to ${most} words`
    throw new FutexError(EINVAL, what, `entries: got ${got}; give a list of ${needed}`)
  }
  const wrong = entries.findIndex(entry => typeof entry !== 'object' || entry === null)
  if (wrong >= 0) {
    const got = String(entries[wrong])
    throw new FutexError(EFAULT, what, `entries: number ${wrong} is ${got}; give { view, index, value }`)
  }
}

function count(value: number, what: string, name = 'count'): number {
  if (typeof value !== 'number' || Number.isNaN(value) || value < 0)
    throw new FutexError(EINVAL, what, `${name}: ${String(value)} is not a number of waiters`)
  return Math.min(0x7fff_ffff, Math.trunc(value))
}

/** 12 bits, which Linux sign-extends: 0xfff and -1 are the same. */
const ARGUMENT = [-0x800, 0xfff] as const

/** Checks an argument of `wakeOp`. Linux's macro silently cuts off the bits that do not fit. */
function field(value: number, name: string, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw new FutexError(
    EINVAL,
    'futex.wakeOp',
    `${name}: ${String(value)} is not an integer from ${least} to ${most}`,
  )
}

function counted(result: number, what: string): number {
  if (result < 0) throw new FutexError(-result, what)
  return result
}

function countedOrNot(result: number, what: string): number | 'not-equal' {
  return result === -EAGAIN ? 'not-equal' : counted(result, what)
}

/**
 * Every futex operation of Linux on shared memory. In a task, a wait is a plain call, or `yield*` in a
 * generator.
 */
export const futex = {
  /** Waits for a wake, if the word is `value`. */
  wait: blocking(
    'futex.wait',
    function* (view: FutexView, index: number, value: number | bigint, options: FutexWaitOptions = {}) {
      return said(
        yield* waitIn('futex.wait', [{ view, index, value, flags: options.flags }], options),
        'futex.wait',
        options.signal,
      )
    },
  ) as (
    view: FutexView,
    index: number,
    value: number | bigint,
    options?: FutexWaitOptions,
  ) => Blocks<WaitResult>,

  waitSync(
    view: FutexView,
    index: number,
    value: number | bigint,
    options: FutexWaitOptions = {},
  ): WaitResult {
    return said(
      waitOnThread('futex.wait', [{ view, index, value, flags: options.flags }], options),
      'futex.wait',
      options.signal,
    )
  },

  async waitAsync(
    view: FutexView,
    index: number,
    value: number | bigint,
    options: FutexWaitOptions = {},
  ): Promise<WaitResult> {
    const result = await waitAsPromise('futex.wait', [{ view, index, value, flags: options.flags }], options)
    return said(result, 'futex.wait', options.signal)
  },

  /**
   * futex_waitv: waits at all of the words; returns the index of the woken one, 'not-equal' or 'timed-out'.
   */
  waitv: blocking(
    'futex.waitv',
    function* (entries: readonly FutexWaitEntry[], options: FutexWaitOptions = {}) {
      checkEntries('futex.waitv', entries, options)
      const result = yield* waitIn('futex.waitv', entries, options)
      return result >= 0 ? result : said(result, 'futex.waitv', options.signal)
    },
  ) as (entries: readonly FutexWaitEntry[], options?: FutexWaitOptions) => Blocks<number | WaitResult>,

  waitvSync(entries: readonly FutexWaitEntry[], options: FutexWaitOptions = {}): number | WaitResult {
    checkEntries('futex.waitv', entries, options)
    const result = waitOnThread('futex.waitv', entries, options)
    return result >= 0 ? result : said(result, 'futex.waitv', options.signal)
  },

  async waitvAsync(
    entries: readonly FutexWaitEntry[],
    options: FutexWaitOptions = {},
  ): Promise<number | WaitResult> {
    checkEntries('futex.waitv', entries, options)
    const result = await waitAsPromise('futex.waitv', entries, options)
    return result >= 0 ? result : said(result, 'futex.waitv', options.signal)
  },

  /** Wakes up to `limit` waiters; returns how many. */
  wake(view: FutexView, index: number, limit = 1, options: FutexWakeOptions = NO_OPTIONS): number {
    checkOptions('futex.wake', options, wakeOptions)
    const futexes = currentFutexes()
    const shared = sharedIn(view, 'futex.wake', options.flags)
    const bitset = bitsetIn('futex.wake', options.bitset ?? MATCH_ANY)
    const word = wordOf(futexes, 'futex.wake', view, index)
    const most = count(limit, 'futex.wake')
    return most === 0 ? 0 : counted(wake(futexes.context, word, shared, most, bitset), 'futex.wake')
  },

  /** Wakes some waiters of the first word, and moves others to the second; returns how many in all. */
  requeue(
    view: FutexView,
    index: number,
    view2: FutexView,
    index2: number,
    options: FutexRequeueOptions = NO_OPTIONS,
  ): number {
    return moveWaiters('futex.requeue', view, index, view2, index2, options, undefined) as number
  },

  /** As `requeue`, if the first word is `expected`; else 'not-equal', and nothing happens. */
  cmpRequeue(
    view: FutexView,
    index: number,
    view2: FutexView,
    index2: number,
    expected: number | bigint,
    options: FutexRequeueOptions = NO_OPTIONS,
  ): number | 'not-equal' {
    return moveWaiters('futex.cmpRequeue', view, index, view2, index2, options, expected)
  },

  /**
   * futex_requeue of futex2: as `cmpRequeue`, with both words and their flags as entries of a vector. The
   * first word must hold the value of its entry. As on Linux both have the same flags.
   */
  requeuev(
    entries: readonly [FutexWaitEntry, Omit<FutexWaitEntry, 'value'>],
    options: FutexRequeueOptions = NO_OPTIONS,
  ): number | 'not-equal' {
    const what = 'futex.requeuev'
    checkOptions(what, options, requeueOptions)
    checkEntries(what, entries as never, options, 2)
    const [from, to] = entries
    const { wake: wakes, move } = options
    for (const { view, flags } of entries) sharedIn(view, what, flags)
    if (from.flags !== to.flags) {
      const flags = `${String(from.flags)} and ${String(to.flags)}`
      throw new FutexError(EINVAL, what, `flags: ${flags}; both words have the same`)
    }
    const [bits, bits2] = [bitsOf(from.view), bitsOf(to.view)]
    if (bits !== bits2 && bits * bits2 !== 0) {
      const sizes = `words of ${bits} and ${bits2} bits`
      throw new FutexError(EINVAL, what, `view: ${sizes}; both words have the same size`)
    }
    const both = { wake: wakes, move, flags: from.flags }
    return moveWaiters(what, from.view, from.index, to.view, to.index, both, from.value)
  },

  /**
   * Changes the second word, wakes at the first, and at the second if its old value satisfies the comparison.
   */
  wakeOp(
    view: FutexLockView,
    index: number,
    view2: FutexLockView,
    index2: number,
    change: { readonly op: number; readonly oparg: number; readonly cmp: number; readonly cmparg: number },
    options: FutexWakeOpOptions = NO_OPTIONS,
  ): number {
    const futexes = currentFutexes()
    const what = 'futex.wakeOp'
    checkOptions(what, options, wakeOpOptions)
    const { wake: wakes = 1, wakeSecond = 1, flags } = options
    const shared = sharedIn(view, what, flags)
    const first = lockWordOf(futexes, what, view, index)
    const second = lockWordOf(futexes, what, view2, index2)
    if (typeof change !== 'object' || change === null)
      throw new FutexError(EINVAL, what, `change: ${String(change)}; give { op, oparg, cmp, cmparg }`)
    const { op, oparg, cmp, cmparg } = change
    field(op, 'op', 0, 0xf)
    field(oparg, 'oparg', ...ARGUMENT)
    field(cmp, 'cmp', 0, 0xf)
    field(cmparg, 'cmparg', ...ARGUMENT)
    const encoded = encodeOp(op, oparg, cmp, cmparg)
    const [most, mostSecond] = [count(wakes, what, 'wake'), count(wakeSecond, what, 'wakeSecond')]
    return counted(wakeOp(futexes.context, first, second, shared, most, mostSecond, encoded, true), what)
  },

  /** Locks the word. While it waits, it lends its priority to the holder. False: the time is over. */
  lockPi: blocking(
    'futex.lockPi',
    function* (view: FutexLockView, index: number, options: FutexLockOptions = {}) {
      const begin = lockOf(view, index, options)
      const result = yield* lockInTask('futex.lockPi', begin, options.signal)
      return locked(result, 'futex.lockPi', options.signal)
    },
  ) as (view: FutexLockView, index: number, options?: FutexLockOptions) => Blocks<boolean>,

  lockPiSync(view: FutexLockView, index: number, options: FutexLockOptions = {}): boolean {
    return locked(lockOnThread('futex.lockPi', lockOf(view, index, options)), 'futex.lockPi')
  },

  /**
   * Returns an owner for `unlockPi`, because async code has no identity of its own; null: the time is over.
   */
  async lockPiAsync(
    view: FutexLockView,
    index: number,
    options: FutexLockOptions = {},
  ): Promise<LockOwner | null> {
    const { result, owner } = await lockAsPromise(lockOf(view, index, options), options.signal)
    return locked(result, 'futex.lockPi', options.signal) ? owner : null
  },

  /** False: another owner holds it. */
  tryLockPi(view: FutexLockView, index: number): boolean {
    return tryLock(view, index)
  },

  /**
   * The holder unlocks; the waiter of the best priority gets the lock. `owner`: from `lockPiAsync` or
   * `waitRequeuePiAsync`.
   */
  unlockPi(view: FutexLockView, index: number, owner?: LockOwner): void {
    unlock(view, index, owner)
  },

  /**
   * A condition's wait: waits, if the word is `value`, until `cmpRequeuePi` gives it the lock, or moves it to
   * the lock and an unlocker gives it. 'ok': it holds the lock. 'not-equal' and 'timed-out': it does not. The
   * caller has unlocked the lock before.
   */
  waitRequeuePi: blocking(
    'futex.waitRequeuePi',
    function* (
      view: FutexLockView,
      index: number,
      value: number,
      lockView: FutexLockView,
      lockIndex: number,
      options: FutexLockOptions = {},
    ) {
      const begin = waitForLockOf(view, index, value, lockView, lockIndex, options)
      const result = yield* lockInTask('futex.waitRequeuePi', begin, options.signal)
      return said(result, 'futex.waitRequeuePi', options.signal)
    },
  ) as (
    view: FutexLockView,
    index: number,
    value: number,
    lockView: FutexLockView,
    lockIndex: number,
    options?: FutexLockOptions,
  ) => Blocks<WaitResult>,

  waitRequeuePiSync(
    view: FutexLockView,
    index: number,
    value: number,
    lockView: FutexLockView,
    lockIndex: number,
    options: FutexLockOptions = {},
  ): WaitResult {
    const begin = waitForLockOf(view, index, value, lockView, lockIndex, options)
    return said(lockOnThread('futex.waitRequeuePi', begin), 'futex.waitRequeuePi')
  },

  /** Returns the owner that holds the lock, for `unlockPi`; or 'not-equal', or 'timed-out'. */
  async waitRequeuePiAsync(
    view: FutexLockView,
    index: number,
    value: number,
    lockView: FutexLockView,
    lockIndex: number,
    options: FutexLockOptions = {},
  ): Promise<LockOwner | 'not-equal' | 'timed-out'> {
    const begin = waitForLockOf(view, index, value, lockView, lockIndex, options)
    const { result, owner } = await lockAsPromise(begin, options.signal)
    const outcome = said(result, 'futex.waitRequeuePi', options.signal)
    return outcome === 'ok' ? owner : outcome
  },

  /**
   * A condition's signal: if the word is `expected`, the first waiter gets the lock. If the lock is held, it
   * waits for it with the others, and each lends its priority. Returns how many; or 'not-equal', without a
   * change. EINVAL unless all of them wait by `waitRequeuePi` for this lock.
   */
  cmpRequeuePi(
    view: FutexLockView,
    index: number,
    lockView: FutexLockView,
    lockIndex: number,
    expected: number,
    options: FutexMoveOptions = NO_OPTIONS,
  ): number | 'not-equal' {
    const what = 'futex.cmpRequeuePi'
    checkOptions(what, options, moveOptions)
    const { move = Infinity } = options
    const result = moveToLockOf(view, index, lockView, lockIndex, expected, count(move, what, 'move'))
    return countedOrNot(result, what)
  },

  /** The id of the buffer outside of a kernel: send it with the buffer, and call `join` in the receiver. */
  idOf(buffer: SharedArrayBuffer): number {
    return idOfBuffer(buffer)
  },

  /** Gives the buffer this id on this thread, before its first use here. A kernel needs no such call. */
  join(buffer: SharedArrayBuffer, id: number): void {
    joinBuffer(buffer, id)
  },
} as const

function moveWaiters(
  what: string,
  view: FutexView,
  index: number,
  view2: FutexView,
  index2: number,
  options: FutexRequeueOptions,
  expected: number | bigint | undefined,
): number | 'not-equal' {
  checkOptions(what, options, requeueOptions)
  const { wake: wakes = 1, move = Infinity, flags } = options
  const futexes = currentFutexes()
  const shared = sharedIn(view, what, flags)
  if (flags !== undefined) sharedIn(view2, what, flags)
  const [most, mostMoved] = [count(wakes, what, 'wake'), count(move, what, 'move')]
  const from = wordOf(futexes, what, view, index)
  const to = wordOf(futexes, what, view2, index2)
  const value = expected === undefined ? undefined : valueIn(view, what, expected)
  return countedOrNot(requeue(futexes.context, from, to, shared, most, mostMoved, value), what)
}
