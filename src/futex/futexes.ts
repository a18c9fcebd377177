import type { Rcu } from '../arena/rcu.ts'
import type { KernelThread } from '../arena/thread.ts'
import {
  findWord,
  type Prepared,
  type PreparedWait,
  prepareCall,
  prepareWaitv,
  prepareWordWait,
  type Timespec,
  type Uaddr,
  type WaitvEntry,
} from './call.ts'
import { FutexContext, type WakeTask } from './context.ts'
import { EAGAIN, EINTR, EINVAL, ETIMEDOUT, FutexError } from './errno.ts'
import type { FutexLayout } from './layout.ts'
import { requeue } from './requeue.ts'
import {
  type ParkingTask,
  promiseWaiter,
  sleepPromise,
  sleepTask,
  sleepThread,
  taskWaiter,
  threadWaiter,
} from './sleep.ts'
import { AddressSpace, type FutexWord, type MappedBuffer } from './space.ts'
import { freeWaiters, MATCH_ANY, wake } from './waitwake.ts'
import { encodeOp, wakeOp } from './wakeop.ts'

/** As `Atomics.wait` says it. */
export type WaitResult = 'ok' | 'not-equal' | 'timed-out'

export interface WaitOptions {
  /** Milliseconds; without it the wait has no end. */
  readonly timeout?: number
  /** Which wakes wake it: those whose bitset has a bit in common. Never 0. */
  readonly bitset?: number
  /** Meet waiters of other spaces, and of other mappings of the buffer. */
  readonly shared?: boolean
  readonly priority?: number
  /** Ends the wait, which then throws the signal's reason. A thread that blocks looks at it only before it does. */
  readonly signal?: AbortSignal
}

export interface WakeOptions {
  readonly bitset?: number
  readonly shared?: boolean
}

export interface RequeueOptions {
  /** How many to wake; the rest move. */
  readonly wake?: number
  /** How many to move at the most. */
  readonly move?: number
  /** The value that the first word must hold: else 'not-equal', and nothing happens. */
  readonly expected?: number
  readonly shared?: boolean
}

/**
 * The futexes as one thread sees them. Two faces: `futex`, `futexSync`, `futexAsync` take the arguments of the system call
 * and return its result, an error negated; the typed methods throw `FutexError` for what is a mistake and say the rest in
 * words. Three verbs each: plain in a task (`yield*`, and the task comes first), `…Sync` on a thread, `…Async` anywhere.
 */
export class Futexes {
  readonly context: FutexContext
  readonly space: AddressSpace

  constructor(
    thread: KernelThread,
    layout: FutexLayout,
    options: {
      readonly now: () => number
      readonly space?: number
      readonly wakeTask?: WakeTask
      /** The scheduler's, on a thread that has one: a task that is woken is then not reused under the waker's hands. */
      readonly rcu?: Rcu
    },
  ) {
    this.context = new FutexContext(thread, layout, options.now, options.wakeTask, options.rcu)
    this.space =
      options.space === undefined
        ? AddressSpace.create(this.context)
        : AddressSpace.join(this.context, options.space)
  }

  map(buffer: SharedArrayBuffer, backing?: number): MappedBuffer {
    return this.space.map(buffer, backing)
  }

  unmap(mapped: MappedBuffer): void {
    this.space.unmap(mapped)
  }

  /** A word that is used often: found once, here, instead of at each call. */
  word(view: Int32Array | Uint32Array, index: number): FutexWord {
    const word = findWord(this.context, this.space, { view, index })
    if (typeof word === 'number') {
      throw new FutexError(
        -word,
        'futex',
        `index ${index} of a view of ${view.length} words, or a buffer that is not mapped`,
      )
    }
    return word
  }

  // As the system call has it.

  futexSync(
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout?: Timespec | number | null,
    uaddr2?: Uaddr,
    val3?: number,
  ): number {
    const prepared = this.prepare(threadWaiter(), uaddr, op, val, timeout, uaddr2, val3)
    return typeof prepared === 'number' ? prepared : this.blockFor(prepared)
  }

  async futexAsync(
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout?: Timespec | number | null,
    uaddr2?: Uaddr,
    val3?: number,
  ): Promise<number> {
    const prepared = this.prepare(promiseWaiter(), uaddr, op, val, timeout, uaddr2, val3)
    if (typeof prepared === 'number') return prepared
    const result = await this.promiseFor(prepared, undefined)
    return prepared.vector || result < 0 ? result : 0
  }

  *futex(
    task: ParkingTask,
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout?: Timespec | number | null,
    uaddr2?: Uaddr,
    val3?: number,
  ): Generator<number, number, unknown> {
    const prepared = this.prepare(taskWaiter(task), uaddr, op, val, timeout, uaddr2, val3)
    return typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared)
  }

  /** futex_waitv: the index of the word that was woken, or an error, negated. */
  waitvSync(
    entries: readonly WaitvEntry[] | null,
    flags: number,
    timeout: Timespec | null,
    clock: number,
  ): number {
    const prepared = prepareWaitv(this.context, this.space, threadWaiter(), entries, flags, timeout, clock)
    return typeof prepared === 'number' ? prepared : this.blockFor(prepared)
  }

  async waitvAsync(
    entries: readonly WaitvEntry[] | null,
    flags: number,
    timeout: Timespec | null,
    clock: number,
  ): Promise<number> {
    const prepared = prepareWaitv(this.context, this.space, promiseWaiter(), entries, flags, timeout, clock)
    return typeof prepared === 'number' ? prepared : await this.promiseFor(prepared, undefined)
  }

  *waitv(
    task: ParkingTask,
    entries: readonly WaitvEntry[] | null,
    flags: number,
    timeout: Timespec | null,
    clock: number,
  ): Generator<number, number, unknown> {
    const who = taskWaiter(task)
    const prepared = prepareWaitv(this.context, this.space, who, entries, flags, timeout, clock)
    return typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared)
  }

  // Typed.

  waitSync(word: FutexWord, expected: number, options: WaitOptions = {}): WaitResult {
    options.signal?.throwIfAborted()
    const prepared = this.prepareTyped(threadWaiter(options.priority), word, expected, options)
    return said(typeof prepared === 'number' ? prepared : this.blockFor(prepared))
  }

  async waitAsync(word: FutexWord, expected: number, options: WaitOptions = {}): Promise<WaitResult> {
    options.signal?.throwIfAborted()
    const prepared = this.prepareTyped(promiseWaiter(options.priority), word, expected, options)
    if (typeof prepared === 'number') return said(prepared)
    return said(Math.min(0, await this.promiseFor(prepared, options.signal)))
  }

  *wait(
    task: ParkingTask,
    word: FutexWord,
    expected: number,
    options: WaitOptions = {},
  ): Generator<number, WaitResult, unknown> {
    options.signal?.throwIfAborted()
    const prepared = this.prepareTyped(taskWaiter(task), word, expected, options)
    const result = typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared, options.signal)
    if (result === -EINTR) options.signal?.throwIfAborted()
    return said(result)
  }

  /** How many were woken. */
  wake(word: FutexWord, count = 1, options: WakeOptions = {}): number {
    const { bitset = MATCH_ANY, shared = false } = options
    if (count === 0) return 0
    return counted(wake(this.context, word, shared, clampCount(count), bitset))
  }

  /** How many were woken and moved, or 'not-equal'. */
  requeue(from: FutexWord, to: FutexWord, options: RequeueOptions = {}): number | 'not-equal' {
    const { wake: wakes = 1, move = Infinity, expected, shared = false } = options
    const result = requeue(
      this.context,
      from,
      to,
      shared,
      clampCount(wakes),
      clampCount(move),
      expected === undefined ? undefined : expected | 0,
    )
    return result === -EAGAIN ? 'not-equal' : counted(result)
  }

  /** Changes the second word, wakes at the first, and at the second if what it held compares so. */
  wakeOp(
    first: FutexWord,
    second: FutexWord,
    change: { op: number; oparg: number; cmp: number; cmparg: number },
    options: { wake?: number; wakeSecond?: number; shared?: boolean } = {},
  ): number {
    const { wake: wakes = 1, wakeSecond = 1, shared = false } = options
    const encoded = encodeOp(change.op, change.oparg, change.cmp, change.cmparg)
    return counted(
      wakeOp(this.context, first, second, shared, clampCount(wakes), clampCount(wakeSecond), encoded),
    )
  }

  private prepare(
    who: ReturnType<typeof threadWaiter>,
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout: Timespec | number | null | undefined,
    uaddr2: Uaddr | undefined,
    val3: number | undefined,
  ): Prepared {
    return prepareCall(this.context, this.space, who, uaddr, op, val, timeout, uaddr2 ?? null, val3 ?? 0)
  }

  private prepareTyped(
    who: ReturnType<typeof threadWaiter>,
    word: FutexWord,
    expected: number,
    options: WaitOptions,
  ): Prepared {
    const { timeout = Infinity, bitset = MATCH_ANY, shared = false } = options
    if (Number.isNaN(timeout))
      throw new FutexError(EINVAL, 'futex', 'timeout: NaN is not a number of milliseconds')
    if (bitset === 0) throw new FutexError(EINVAL, 'futex', 'bitset: 0 meets no wake; give at least one bit')
    const deadline = timeout === Infinity ? Infinity : this.context.now() + Math.max(0, timeout)
    return prepareWordWait(this.context, who, word, shared, expected, deadline, bitset)
  }

  private async promiseFor(
    { waiters, deadline }: PreparedWait,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    try {
      return await sleepPromise(this.context, waiters, deadline, signal)
    } finally {
      freeWaiters(this.context, waiters)
    }
  }

  private blockFor({ waiters, deadline, vector }: PreparedWait): number {
    const result = sleepThread(this.context, waiters, deadline)
    freeWaiters(this.context, waiters)
    return vector || result < 0 ? result : 0
  }
}

function* parkFor(
  task: ParkingTask,
  { waiters, deadline, vector }: PreparedWait,
  abort?: AbortSignal,
): Generator<number, number, unknown> {
  const result = yield* sleepTask(task, waiters, deadline, abort)
  freeWaiters(task.context(), waiters)
  return vector || result < 0 ? result : 0
}

function clampCount(count: number): number {
  if (Number.isNaN(count)) throw new FutexError(EINVAL, 'futex', 'count: NaN is not a number of waiters')
  return Math.max(-1, Math.min(0x7fff_ffff, Math.trunc(count)))
}

function said(result: number): WaitResult {
  if (result >= 0) return 'ok'
  if (result === -EAGAIN) return 'not-equal'
  if (result === -ETIMEDOUT) return 'timed-out'
  throw new FutexError(
    -result,
    'futex',
    result === -EINTR ? 'the task was interrupted while it waited' : undefined,
  )
}

function counted(result: number): number {
  if (result < 0) throw new FutexError(-result, 'futex')
  return result
}
