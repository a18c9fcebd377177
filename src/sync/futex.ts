import { blocking } from '../coroutine/blocking.ts'
import { resumable } from '../coroutine/generators.ts'
import { type Ambient, ambient } from '../futex/ambient.ts'
import { finishCall, type Prepared, type PreparedWait } from '../futex/call.ts'
import type { FutexContext } from '../futex/context.ts'
import { deadlineOf, wallLimit } from '../futex/deadline.ts'
import { nextObject } from '../futex/domainwords.ts'
import { EAGAIN, EFAULT, EINTR, EINVAL, ETIMEDOUT, FutexError } from '../futex/errno.ts'
import { type Futexes, parkFor, type WaitResult } from '../futex/futexes.ts'
import type { LockOwner } from '../futex/owner.ts'
import { lockPi, unlockPi } from '../futex/pi.ts'
import { requeue } from '../futex/requeue.ts'
import { finishWait, promiseWaiter, RESTART, taskWaiter, threadWaiter } from '../futex/sleep.ts'
import { FutexWord, type MappedBuffer } from '../futex/space.ts'
import { freeWaiters, MATCH_ANY, queueNewWaiter, wake, type WaiterOptions } from '../futex/waitwake.ts'
import { encodeOp, wakeOp } from '../futex/wakeop.ts'
import { currentView } from '../task/ambient.ts'
import { refuseBlocking, refuseInTask } from './party.ts'

/**
 * Futexes on any shared memory, for tasks, threads and promises alike, with nothing to set up. A word is known to all threads of a kernel by the
 * id under which its buffer travels in arguments, results and channels (task/payload/lent.ts), the size of the word, and its number:
 *
 *   owner of the futex   -(FIRST_KEY + 4 * id + size)       ids of objects are below FIRST_KEY
 *   index                the word's number from the start of the buffer, in words of its size
 *
 * Without a kernel a thread gives a buffer an id of its own; another thread that has the buffer joins with `futex.join(buffer, id)`.
 */
const FIRST_KEY = 0x4000_0000

/** A view of shared memory: words of 8, 16, 32 or 64 bits, as futex2 has them. Inheritance and wakeOp have words of 32. */
export type FutexView =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array

export interface FutexWaitOptions {
  /** Milliseconds. */
  readonly timeout?: number | undefined
  /** A moment of the wall clock, which the wait follows when it is set. */
  readonly until?: Date | number | undefined
  /** Ends the wait by throwing the signal's reason. A thread that blocks looks at it only before it does. */
  readonly signal?: AbortSignal | undefined
  /** Which wakes wake it: those whose bitset has a bit in common. */
  readonly bitset?: number | undefined
}

export interface FutexWaitEntry {
  readonly view: FutexView
  readonly index: number
  readonly value: number | bigint
}

/** What a blocking call gives: the value itself in a 'use task' function, through `yield*` in a generator. */
type Blocks<T> = Generator<number, T, unknown> & T

interface Known {
  readonly id: number
  readonly mapped: (SharedMemory | undefined)[]
}

/** A buffer as words of one size: what calls need of a mapping. It is there for as long as anyone has the buffer. */
class SharedMemory {
  readonly i32: Int32Array
  readonly mapping: number
  readonly backing: number
  private readonly words = new Map<number, FutexWord>()

  constructor(words: FutexView, key: number) {
    this.i32 = words as Int32Array
    this.mapping = key
    this.backing = key
  }

  isMapped(): boolean {
    return true
  }

  isBacked(): boolean {
    return true
  }

  word(context: FutexContext, index: number): FutexWord {
    let word = this.words.get(index)
    if (word === undefined) {
      word = new FutexWord(context, this as unknown as MappedBuffer, index)
      this.words.set(index, word)
    }
    return word
  }
}

const domains = new WeakMap<Futexes, WeakMap<SharedArrayBuffer, Known>>()

function knownIn(futexes: Futexes): WeakMap<SharedArrayBuffer, Known> {
  let known = domains.get(futexes)
  if (known === undefined) domains.set(futexes, (known = new WeakMap()))
  return known
}

function knownOf({ futexes }: Ambient, buffer: SharedArrayBuffer): Known {
  const known = knownIn(futexes)
  let found = known.get(buffer)
  if (found === undefined) {
    const view = currentView()
    const id = view === null ? nextObject(futexes.context) : view.codec.lent.idOf(buffer)
    known.set(buffer, (found = { id, mapped: [] }))
  }
  return found
}

/** 0 to 3: words of 8, 16, 32 and 64 bits. */
function sizeOf(view: FutexView): number {
  return Math.log2(view.BYTES_PER_ELEMENT)
}

const arrays = [Uint8Array, Uint16Array, Int32Array, BigInt64Array] as const

function wordOf(here: Ambient, what: string, view: FutexView, index: number): FutexWord {
  if (!ArrayBuffer.isView(view) || !(view.buffer instanceof SharedArrayBuffer)) {
    throw new FutexError(EFAULT, what, 'view: not a typed array over a SharedArrayBuffer')
  }
  if (!Number.isInteger(index) || index < 0 || index >= view.length) {
    throw new FutexError(EFAULT, what, `index: ${String(index)} is not in a view of ${view.length} words`)
  }
  const buffer = view.buffer as SharedArrayBuffer
  const known = knownOf(here, buffer)
  const size = sizeOf(view)
  let mapped = known.mapped[size]
  if (mapped === undefined) {
    const words: FutexView = new (arrays[size] as Int32ArrayConstructor)(buffer, 0, buffer.byteLength >> size)
    known.mapped[size] = mapped = new SharedMemory(words, -(FIRST_KEY + 4 * known.id + size) | 0)
  }
  return mapped.word(here.futexes.context, (view.byteOffset >> size) + index)
}

/** Of a call that is about words of 32 bits alone. */
function lockWordOf(here: Ambient, what: string, view: FutexView, index: number): FutexWord {
  const word = wordOf(here, what, view, index)
  if (sizeOf(view) !== 2) throw new FutexError(EINVAL, what, 'view: this call has words of 32 bits')
  return word
}

/** The value as the words of this size hold it. */
function valueIn(view: FutexView, what: string, value: number | bigint): number {
  const isBig = view instanceof BigInt64Array || view instanceof BigUint64Array
  if ((typeof value === 'bigint') !== isBig) {
    throw new FutexError(EINVAL, what, `value: ${String(value)} is not of the kind that the view has`)
  }
  if (isBig) return BigInt.asIntN(64, value as bigint) as unknown as number
  const bits = 8 * view.BYTES_PER_ELEMENT
  return bits === 32 ? (value as number) | 0 : (value as number) & ((1 << bits) - 1)
}

function deadlineIn({ now }: FutexContext, what: string, options: FutexWaitOptions): number {
  const { timeout, until } = options
  const limit = until === undefined ? (timeout ?? Infinity) : wallLimit(Number(until))
  if (typeof limit !== 'number' || Number.isNaN(limit))
    throw new FutexError(EINVAL, what, `timeout: ${String(timeout ?? until)} is not a time`)
  return limit === Infinity ? Infinity : deadlineOf(now, limit)
}

function prepare(
  here: Ambient,
  who: WaiterOptions,
  what: string,
  entries: readonly FutexWaitEntry[],
  options: FutexWaitOptions,
): Prepared {
  options.signal?.throwIfAborted()
  const { context } = here.futexes
  const { bitset = MATCH_ANY } = options
  if ((bitset | 0) === 0) throw new FutexError(EINVAL, what, 'bitset: 0 meets no wake; give at least one bit')
  const deadline = deadlineIn(context, what, options)
  const words = entries.map(({ view, index }) => wordOf(here, what, view, index))
  const values = entries.map(({ view, value }) => valueIn(view, what, value))
  const waiters: number[] = []
  for (let at = 0; at < words.length; at++) {
    const { i32: memory, index } = words[at]
    // A word that has changed already costs no lock and no waiter.
    const queued =
      Atomics.load(memory, index) === values[at]
        ? queueNewWaiter(context, words[at], true, values[at], bitset | 0, who, waiters[0])
        : -EAGAIN
    if (queued < 0) {
      // One of them may have been woken meanwhile: then that is the answer.
      const woken = waiters.length === 0 ? queued : finishWait(context, waiters, queued)
      freeWaiters(context, waiters)
      return woken
    }
    waiters.push(queued)
  }
  return { waiters, deadline, vector: true }
}

/** The index of what was woken, or an error, negated. A death on the way counts as a wake, which may be for nothing. */
function done(result: number): number {
  return result === RESTART ? 0 : result
}

function said(result: number, what: string, signal?: AbortSignal): WaitResult {
  if (result >= 0) return 'ok'
  if (result === -EAGAIN) return 'not-equal'
  if (result === -ETIMEDOUT) return 'timed-out'
  if (result === -EINTR) signal?.throwIfAborted()
  throw new FutexError(-result, what)
}

function checkEntries(entries: readonly FutexWaitEntry[]): void {
  if (!Array.isArray(entries) || entries.length === 0 || entries.length > 128) {
    throw new FutexError(EINVAL, 'futex.waitv', 'entries: give a list of 1 to 128 words')
  }
}

function count(value: number, what: string): number {
  if (typeof value !== 'number' || Number.isNaN(value) || value < 0)
    throw new FutexError(EINVAL, what, `count: ${String(value)} is not a number of waiters`)
  return Math.min(0x7fff_ffff, Math.trunc(value))
}

function counted(result: number, what: string): number {
  if (result < 0) throw new FutexError(-result, what)
  return result
}

function* waitIn(
  what: string,
  entries: readonly FutexWaitEntry[],
  options: FutexWaitOptions,
): Generator<number, number, unknown> {
  const here = ambient()
  const task = here.currentTask()
  if (task === null)
    throw new FutexError(EINVAL, what, 'no task of a kernel runs here: use the Sync or Async form')
  const prepared = prepare(here, taskWaiter(task), what, entries, options)
  return done(typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared, options.signal))
}

resumable(waitIn)

function waitOnThread(what: string, entries: readonly FutexWaitEntry[], options: FutexWaitOptions): number {
  refuseInTask(what)
  const here = ambient()
  refuseBlocking(here, what)
  const prepared = prepare(here, threadWaiter(), what, entries, options)
  return done(typeof prepared === 'number' ? prepared : here.futexes.blockFor(prepared))
}

async function waitAsPromise(
  what: string,
  entries: readonly FutexWaitEntry[],
  options: FutexWaitOptions,
): Promise<number> {
  const { futexes } = ambient()
  const prepared = prepare(ambient(), promiseWaiter(), what, entries, options)
  return done(typeof prepared === 'number' ? prepared : await futexes.promiseFor(prepared, options.signal))
}

function settleLock(result: number, what: string, signal?: AbortSignal): boolean {
  if (result === 0) return true
  if (result === -ETIMEDOUT) return false
  if (result === -EINTR) signal?.throwIfAborted()
  throw new FutexError(-result, what)
}

function beginLock(
  here: Ambient,
  who: WaiterOptions,
  view: Int32Array | Uint32Array,
  index: number,
  options: FutexWaitOptions,
  tries = false,
): Prepared {
  options.signal?.throwIfAborted()
  const word = lockWordOf(here, 'futex.lockPi', view, index)
  const { context } = here.futexes
  return lockPi(context, who, word, true, deadlineIn(context, 'futex.lockPi', options), tries)
}

/** What a task or the thread is as an owner of locks. */
function ownerHere(here: Ambient): LockOwner {
  return here.currentTask()?.owner ?? here.futexes.self
}

/** Every futex operation on shared memory. In a task `wait`, `waitv` and `lockPi` are plain calls, or `yield*` in a generator. */
export const futex = {
  /** Waits while the word is `value`, until a wake. */
  wait: blocking(
    'futex.wait',
    function* (view: FutexView, index: number, value: number | bigint, options: FutexWaitOptions = {}) {
      return said(
        yield* waitIn('futex.wait', [{ view, index, value }], options),
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
    return said(waitOnThread('futex.wait', [{ view, index, value }], options), 'futex.wait', options.signal)
  },

  async waitAsync(
    view: FutexView,
    index: number,
    value: number | bigint,
    options: FutexWaitOptions = {},
  ): Promise<WaitResult> {
    const result = await waitAsPromise('futex.wait', [{ view, index, value }], options)
    return said(result, 'futex.wait', options.signal)
  },

  /** futex_waitv: waits at all of the words; gives the index of the one that was woken, 'not-equal' or 'timed-out'. */
  waitv: blocking(
    'futex.waitv',
    function* (entries: readonly FutexWaitEntry[], options: FutexWaitOptions = {}) {
      checkEntries(entries)
      const result = yield* waitIn('futex.waitv', entries, options)
      return result >= 0 ? result : said(result, 'futex.waitv', options.signal)
    },
  ) as (entries: readonly FutexWaitEntry[], options?: FutexWaitOptions) => Blocks<number | WaitResult>,

  waitvSync(entries: readonly FutexWaitEntry[], options: FutexWaitOptions = {}): number | WaitResult {
    checkEntries(entries)
    const result = waitOnThread('futex.waitv', entries, options)
    return result >= 0 ? result : said(result, 'futex.waitv', options.signal)
  },

  async waitvAsync(
    entries: readonly FutexWaitEntry[],
    options: FutexWaitOptions = {},
  ): Promise<number | WaitResult> {
    checkEntries(entries)
    const result = await waitAsPromise('futex.waitv', entries, options)
    return result >= 0 ? result : said(result, 'futex.waitv', options.signal)
  },

  /** Wakes up to `limit` of those who wait; how many. */
  wake(view: FutexView, index: number, limit = 1, options: { readonly bitset?: number } = {}): number {
    const here = ambient()
    const word = wordOf(here, 'futex.wake', view, index)
    const most = count(limit, 'futex.wake')
    const { bitset = MATCH_ANY } = options
    if ((bitset | 0) === 0) throw new FutexError(EINVAL, 'futex.wake', 'bitset: 0 meets nobody')
    return most === 0 ? 0 : counted(wake(here.futexes.context, word, true, most, bitset | 0), 'futex.wake')
  },

  /** Wakes some of those who wait at the first word, and moves others to the second; how many in all. */
  requeue(
    view: FutexView,
    index: number,
    view2: FutexView,
    index2: number,
    { wake: wakes = 1, move = Infinity }: { readonly wake?: number; readonly move?: number } = {},
  ): number {
    return moveWaiters('futex.requeue', view, index, view2, index2, wakes, move, undefined) as number
  },

  /** As `requeue`, if the first word is `expected`; else 'not-equal', and nothing happens. */
  cmpRequeue(
    view: FutexView,
    index: number,
    view2: FutexView,
    index2: number,
    expected: number | bigint,
    { wake: wakes = 1, move = Infinity }: { readonly wake?: number; readonly move?: number } = {},
  ): number | 'not-equal' {
    const value = valueIn(view, 'futex.cmpRequeue', expected)
    return moveWaiters('futex.cmpRequeue', view, index, view2, index2, wakes, move, value)
  },

  /** Changes the second word, wakes at the first, and at the second if what it held compares so. */
  wakeOp(
    view: Int32Array | Uint32Array,
    index: number,
    view2: Int32Array | Uint32Array,
    index2: number,
    change: { readonly op: number; readonly oparg: number; readonly cmp: number; readonly cmparg: number },
    { wake: wakes = 1, wakeSecond = 1 }: { readonly wake?: number; readonly wakeSecond?: number } = {},
  ): number {
    const here = ambient()
    const first = lockWordOf(here, 'futex.wakeOp', view, index)
    const second = lockWordOf(here, 'futex.wakeOp', view2, index2)
    const encoded = encodeOp(change.op, change.oparg, change.cmp, change.cmparg)
    const [most, mostSecond] = [count(wakes, 'futex.wakeOp'), count(wakeSecond, 'futex.wakeOp')]
    return counted(
      wakeOp(here.futexes.context, first, second, true, most, mostSecond, encoded),
      'futex.wakeOp',
    )
  },

  /** Takes the lock that the word is, lending its priority to the holder while it waits. False: the time was over. */
  lockPi: blocking(
    'futex.lockPi',
    function* (view: Int32Array | Uint32Array, index: number, options: FutexWaitOptions = {}) {
      const here = ambient()
      const task = here.currentTask()
      if (task === null) throw new FutexError(EINVAL, 'futex.lockPi', 'no task of a kernel runs here')
      const prepared = beginLock(here, taskWaiter(task, task.owner), view, index, options)
      const result = typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared, options.signal)
      return settleLock(result, 'futex.lockPi', options.signal)
    },
  ) as (view: Int32Array | Uint32Array, index: number, options?: FutexWaitOptions) => Blocks<boolean>,

  lockPiSync(view: Int32Array | Uint32Array, index: number, options: FutexWaitOptions = {}): boolean {
    refuseInTask('futex.lockPi')
    const here = ambient()
    const prepared = beginLock(here, threadWaiter(undefined, here.futexes.self), view, index, options)
    if (typeof prepared === 'number') return settleLock(prepared, 'futex.lockPi')
    refuseBlockingOr(here, prepared)
    return settleLock(here.futexes.blockFor(prepared), 'futex.lockPi')
  },

  /** An owner that `unlockPi` is given, as async code has no identity of its own; null: the time was over. */
  async lockPiAsync(
    view: Int32Array | Uint32Array,
    index: number,
    options: FutexWaitOptions = {},
  ): Promise<LockOwner | null> {
    const here = ambient()
    const { futexes } = here
    const owner = futexes.makeOwner()
    let held = false
    try {
      const prepared = beginLock(here, promiseWaiter(undefined, owner), view, index, options)
      const result =
        typeof prepared === 'number' ? prepared : await futexes.promiseFor(prepared, options.signal)
      held = settleLock(result, 'futex.lockPi', options.signal)
      return held ? owner : null
    } finally {
      if (!held) futexes.closeOwner(owner)
    }
  },

  /** False: another holds it. */
  tryLockPi(view: Int32Array | Uint32Array, index: number): boolean {
    const here = ambient()
    const result = beginLock(here, threadWaiter(undefined, ownerHere(here)), view, index, {}, true)
    if (result === -EAGAIN) return false
    return settleLock(result as number, 'futex.tryLockPi')
  },

  /** Only its holder may: the best of those who wait has it then. `owner`: what `lockPiAsync` gave. */
  unlockPi(view: Int32Array | Uint32Array, index: number, owner?: LockOwner): void {
    const here = ambient()
    const word = lockWordOf(here, 'futex.unlockPi', view, index)
    counted(unlockPi(here.futexes.context, owner ?? ownerHere(here), word, true), 'futex.unlockPi')
    if (owner !== undefined) here.futexes.closeOwner(owner)
  },

  /** The id by which threads without a kernel know the buffer: send it along, and call `join` there. */
  idOf(buffer: SharedArrayBuffer): number {
    return knownOf(ambient(), buffer).id
  },

  /** This thread knows the buffer by that id. Before it first uses it, and where there is no kernel, which needs none. */
  join(buffer: SharedArrayBuffer, id: number): void {
    const { futexes } = ambient()
    if (!(buffer instanceof SharedArrayBuffer))
      throw new FutexError(EFAULT, 'futex.join', 'not a SharedArrayBuffer')
    if (!Number.isInteger(id) || id < 1)
      throw new FutexError(EINVAL, 'futex.join', `id: ${String(id)} is none of idOf`)
    const known = knownIn(futexes)
    const before = known.get(buffer)?.id ?? id
    if (currentView() !== null || before !== id) {
      throw new FutexError(EINVAL, 'futex.join', 'the buffer is known by another id on this thread already')
    }
    known.set(buffer, known.get(buffer) ?? { id, mapped: [] })
  },
} as const

function refuseBlockingOr(here: Ambient, prepared: PreparedWait): void {
  if (here.mayBlock) return
  finishCall(here.futexes.context, prepared, finishWait(here.futexes.context, prepared.waiters, -EINTR))
  refuseBlocking(here, 'futex.lockPi')
}

function moveWaiters(
  what: string,
  view: FutexView,
  index: number,
  view2: FutexView,
  index2: number,
  wakes: number,
  move: number,
  expected: number | undefined,
): number | 'not-equal' {
  const here = ambient()
  const from = wordOf(here, what, view, index)
  const to = wordOf(here, what, view2, index2)
  const result = requeue(
    here.futexes.context,
    from,
    to,
    true,
    count(wakes, what),
    count(move, what),
    expected,
  )
  return result === -EAGAIN ? 'not-equal' : counted(result, what)
}
