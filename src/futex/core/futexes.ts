import { leavesToRecovery } from '../../arena/sync/section.ts'
import type { Rcu } from '../../arena/sync/rcu.ts'
import type { KernelThread } from '../../arena/sync/thread.ts'
import type { Scheduler } from '../../sched/core/scheduler.ts'
import {
  abandonCall,
  findWord,
  FUTEX_REQUEUE,
  FUTEX_WAKE,
  finishCall,
  isLockCall,
  type Prepared,
  type PreparedWait,
  prepareCall,
  prepareWaitv,
  prepareWordWait,
  type Timespec,
  type Uaddr,
  type WaitvEntry,
} from '../operations/call.ts'
import { tellFutex } from './events.ts'
import { FutexContext, type WakeTask } from './context.ts'
import { deadlineOf } from './deadline.ts'
import { EAGAIN, EINTR, EINVAL, ETIMEDOUT, FutexError } from './errno.ts'
import { exitOwner } from '../recovery/exit.ts'
import type { FutexLayout } from './layout.ts'
import { leaveFutexes } from './threadexit.ts'
import { LockOwner, makeOwner } from './owner.ts'
import { Owner, PROMISE, THREAD } from './records.ts'
import { getRobustList, setRobustList } from '../robust/robust.ts'
import { requeue } from '../operations/requeue.ts'
import {
  type LongWait,
  ORDINARY_PRIORITY,
  type TaskWaiter,
  promiseWaiter,
  sleepPromise,
  sleepTask,
  sleepThread,
  taskWaiter,
  threadWaiter,
} from './sleep.ts'
import { AddressSpace, type FutexWord, type MappedBuffer } from './space.ts'
import { MATCH_ANY, wake, type WaiterOptions } from '../operations/waitwake.ts'
import { encodeOp, wakeOp } from '../operations/wakeop.ts'

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
  /**
   * Ends the wait, which then throws the signal's reason. A thread that blocks looks at it only before it
   * does.
   */
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
 * The futexes as one thread sees them. Two faces: `futex`, `futexSync`, `futexAsync` take the arguments of
 * the system call and return its result, an error negated; the typed methods throw `FutexError` for what is a
 * mistake and say the rest in words. Three verbs each: plain in a task (`yield*`, and the task comes first),
 * `…Sync` on a thread, `…Async` anywhere.
 */
export class Futexes {
  readonly context: FutexContext
  readonly space: AddressSpace
  private own: LockOwner | undefined = undefined

  constructor(
    thread: KernelThread,
    layout: FutexLayout,
    options: {
      readonly now: () => number
      readonly space?: number
      /**
       * This thread's scheduler, where there is one: tasks are then woken, inherit priorities, and leave no
       * lock behind.
       */
      readonly scheduler?: Scheduler
      readonly wakeTask?: WakeTask
      /**
       * The scheduler's, on a thread that has one: a task that is woken is then not reused under the waker's
       * hands.
       */
      readonly rcu?: Rcu
    },
  ) {
    const { now, wakeTask, rcu, scheduler } = options
    this.context = new FutexContext(thread, layout, now, wakeTask, rcu, scheduler)
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

  /** What this thread is as an owner of locks. */
  get self(): LockOwner {
    this.own ??= this.ownerOf(THREAD, ORDINARY_PRIORITY)
    return this.own
  }

  /**
   * An owner for a flow of async code, which holds locks and waits for them side by side with the thread's
   * other flows. Its `tid` is what stands in the words of its locks; give it back with `closeOwner`.
   */
  makeOwner(options: { readonly priority?: number } = {}): LockOwner {
    return this.ownerOf(PROMISE, options.priority ?? ORDINARY_PRIORITY)
  }

  private ownerOf(kind: typeof THREAD | typeof PROMISE, priority: number): LockOwner {
    return new LockOwner(this.context, makeOwner(this.context, { kind, priority }))
  }

  /**
   * The owner has ended: what it still holds passes to others as if it had died. Not while it waits for a
   * lock: that wait is ended first.
   */
  closeOwner(owner: LockOwner): void {
    if (owner.waiting) {
      throw new FutexError(
        EINVAL,
        'closeOwner',
        `the owner with the TID ${owner.tid} still waits for a lock; abort its wait, or let it end, and close it then`,
      )
    }
    exitOwner(this.context, owner.record)
    if (owner === this.own) this.own = undefined
  }

  /**
   * This thread is about to end: its waits leave their queues, and its owners end. The last call that it
   * makes.
   */
  leave(): void {
    leaveFutexes(this.context)
    this.own = undefined
  }

  /** Where the list of robust locks of an owner begins, in a mapped buffer: 0, or an error, negated. */
  setRobustList(head: Uaddr, bytes: number, as: LockOwner = this.self): number {
    if (head === null) return setRobustList(this.context, as, null, bytes)
    const word = findWord(this.context, this.space, head)
    return typeof word === 'number' ? word : setRobustList(this.context, as, word, bytes)
  }

  /** Where the list of the owner with this TID begins (0: this thread's own), or -ESRCH. */
  getRobustList(
    tid: number,
    as: LockOwner = this.self,
  ): { readonly head: number; readonly bytes: number } | number {
    return getRobustList(this.context, as, tid)
  }

  // As the system call has it. Calls about locks are made for this thread, or for the owner that is given
  // last.

  futexSync(
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout?: Timespec | number | null,
    uaddr2?: Uaddr,
    val3?: number,
    as?: LockOwner,
  ): number {
    const who = isLockCall(op) ? this.waiterFor(threadWaiter, as) : threadWaiter(as && this.priorityOf(as))
    const prepared = this.prepare(who, uaddr, op, val, timeout, uaddr2, val3)
    return typeof prepared === 'number' ? prepared : this.blockFor(prepared)
  }

  async futexAsync(
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout?: Timespec | number | null,
    uaddr2?: Uaddr,
    val3?: number,
    as?: LockOwner,
  ): Promise<number> {
    const who = isLockCall(op) ? this.waiterFor(promiseWaiter, as) : promiseWaiter(as && this.priorityOf(as))
    const prepared = this.prepare(who, uaddr, op, val, timeout, uaddr2, val3)
    return typeof prepared === 'number' ? prepared : await this.promiseFor(prepared, undefined)
  }

  *futex(
    task: TaskWaiter,
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout?: Timespec | number | null,
    uaddr2?: Uaddr,
    val3?: number,
  ): Generator<number, number, unknown> {
    const who = taskWaiter(task, isLockCall(op) ? task.owner : undefined)
    const prepared = this.prepare(who, uaddr, op, val, timeout, uaddr2, val3)
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
    task: TaskWaiter,
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
    return said(await this.promiseFor(prepared, options.signal))
  }

  *wait(
    task: TaskWaiter,
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
    const { context } = this
    const woken = wake(context, word, shared, clampCount(count), bitset)
    if (context.scheduler !== undefined) tellFutex(context, FUTEX_WAKE, word.index, woken)
    return counted(woken)
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
    if (this.context.scheduler !== undefined) tellFutex(this.context, FUTEX_REQUEUE, from.index, result)
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

  private waiterFor(make: typeof threadWaiter, owner: LockOwner = this.self): WaiterOptions {
    return make(this.priorityOf(owner), owner)
  }

  private priorityOf({ record }: LockOwner): number {
    return this.context.i32[record + Owner.basePriority]
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
    const { context, space } = this
    const prepared = prepareCall(context, space, who, uaddr, op, val, timeout, uaddr2 ?? null, val3 ?? 0)
    if (context.scheduler !== undefined && typeof prepared === 'number')
      tellFutex(context, op, wordOf(uaddr), prepared)
    return prepared
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
    const deadline = deadlineOf(this.context.now, timeout)
    return prepareWordWait(this.context, who, word, shared, expected, deadline, bitset)
  }

  /** Sleeps, as a promise, until the wait is over. */
  async promiseFor(wait: PreparedWait, signal: AbortSignal | undefined): Promise<number> {
    let prepared: Prepared = wait
    while (typeof prepared !== 'number') {
      let slept: number
      try {
        slept = await sleepPromise(this.context, prepared.waiters, prepared.deadline, signal)
      } catch (aborted) {
        abandonCall(this.context, prepared)
        throw aborted
      }
      prepared = finishCall(this.context, prepared, slept)
    }
    return prepared
  }

  /** Sleeps, blocking the thread, until the wait is over. */
  blockFor(wait: PreparedWait, long: LongWait | null = null): number {
    let prepared: Prepared = wait
    while (typeof prepared !== 'number') {
      const slept = sleepThread(this.context, prepared.waiters, prepared.deadline, long)
      prepared = finishCall(this.context, prepared, slept)
    }
    return prepared
  }
}

/** Sleeps, as a task, until the wait is over. */
export function* parkFor(
  task: TaskWaiter,
  wait: PreparedWait,
  abort?: AbortSignal,
  long: LongWait | null = null,
): Generator<number, number, unknown> {
  let prepared: Prepared = wait
  while (typeof prepared !== 'number') {
    let slept: number
    try {
      slept = yield* sleepTask(task, prepared.waiters, prepared.deadline, abort, long)
    } catch (thrown) {
      if (!leavesToRecovery(task.context().thread, thrown)) abandonCall(task.context(), prepared)
      throw thrown
    }
    prepared = finishCall(task.context(), prepared, slept)
  }
  return prepared
}

/** The number of the word that a call names; -1: none. */
function wordOf(uaddr: Uaddr): number {
  if (uaddr === null) return -1
  return 'index' in uaddr ? uaddr.index : uaddr.byteOffset >> 2
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
