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
import { recordFutex } from './events.ts'
import { FutexContext, type WakeTask } from './context.ts'
import { deadlineOf, timeoutLimit } from './deadline.ts'
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

/** The results of `Atomics.wait`. */
export type WaitResult = 'ok' | 'not-equal' | 'timed-out'

export interface WaitOptions {
  /** Milliseconds; without it the wait has no time limit. */
  readonly timeout?: number
  /** The wait ends for wakes whose bitset has a bit in common with this one. Never 0. */
  readonly bitset?: number
  /** Share the futex with other spaces, and with other mappings of the buffer. */
  readonly shared?: boolean
  readonly priority?: number
  /**
   * Ends the wait, which then throws the signal's reason. A blocking thread checks the signal only before it
   * blocks.
   */
  readonly signal?: AbortSignal
}

export interface WakeOptions {
  readonly bitset?: number
  readonly shared?: boolean
}

export interface RequeueOptions {
  /** How many waiters to wake; the others move. */
  readonly wake?: number
  /** The greatest number of waiters to move. */
  readonly move?: number
  /** The value that the first word must hold. Otherwise the call returns 'not-equal' and changes nothing. */
  readonly expected?: number
  readonly shared?: boolean
}

/**
 * The futex calls of one thread, in two forms. `futex`, `futexSync` and `futexAsync` take the arguments of
 * the system call and return its result, an error negated. The typed methods throw `FutexError` for wrong
 * arguments and return words such as 'timed-out'. Each has three variants: plain in a task (`yield*`, with
 * the task as first argument), `…Sync` on a thread, `…Async` anywhere.
 */
export class Futexes {
  readonly context: FutexContext
  readonly space: AddressSpace
  /** Whether this thread may call `Atomics.wait`. */
  readonly mayBlock: boolean
  private own: LockOwner | undefined = undefined

  constructor(
    thread: KernelThread,
    layout: FutexLayout,
    options: {
      readonly now: () => number
      readonly space?: number
      /**
       * This thread's scheduler, if it has one: then tasks can be woken, inherit priorities, and release
       * their locks when they end.
       */
      readonly scheduler?: Scheduler
      readonly wakeTask?: WakeTask
      /**
       * The scheduler's RCU, on a thread that has a scheduler: the slot of a woken task is then not reused
       * during the wakeup.
       */
      readonly rcu?: Rcu
    },
  ) {
    const { now, wakeTask, rcu, scheduler } = options
    this.mayBlock = thread.mayBlock
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

  /** Finds a word once, for repeated calls. */
  word(view: Int32Array | Uint32Array, index: number): FutexWord {
    const word = findWord(this.context, this.space, { view, index })
    if (typeof word === 'number') {
      throw new FutexError(
        -word,
        'futex',
        `index ${index} is outside the view of ${view.length} words, or its buffer is not mapped; map the buffer and give an index within the view`,
      )
    }
    return word
  }

  /** This thread as an owner of locks. */
  get self(): LockOwner {
    this.own ??= this.ownerOf(THREAD, ORDINARY_PRIORITY)
    return this.own
  }

  /**
   * Creates an owner for one flow of async code, which holds and waits for locks independently of the
   * thread's other flows. Its `tid` stands in the words of its locks. Release it with `closeOwner`.
   */
  makeOwner(options: { readonly priority?: number } = {}): LockOwner {
    return this.ownerOf(PROMISE, options.priority ?? ORDINARY_PRIORITY)
  }

  private ownerOf(kind: typeof THREAD | typeof PROMISE, priority: number): LockOwner {
    return new LockOwner(this.context, makeOwner(this.context, { kind, priority }))
  }

  /**
   * Ends the owner: its locks pass to others as if it had died. It must not be waiting for a lock: end that
   * wait first.
   */
  closeOwner(owner: LockOwner): void {
    if (owner.waiting) {
      throw new FutexError(
        EINVAL,
        'closeOwner',
        `the owner with the TID ${owner.tid} still waits for a lock; abort the wait or await its end, then close the owner`,
      )
    }
    exitOwner(this.context, owner.record)
    if (owner === this.own) this.own = undefined
  }

  /**
   * Called when this thread is about to end: its waits leave their queues, and its owners end. It must be the
   * last call.
   */
  leave(): void {
    leaveFutexes(this.context)
    this.own = undefined
  }

  /**
   * Sets the head of an owner's list of robust locks, in a mapped buffer. Returns 0, or an error, negated.
   */
  setRobustList(head: Uaddr, bytes: number, as: LockOwner = this.self): number {
    if (head === null) return setRobustList(this.context, as, null, bytes)
    const word = findWord(this.context, this.space, head)
    return typeof word === 'number' ? word : setRobustList(this.context, as, word, bytes)
  }

  /** The head of the list of the owner with this TID (0: this thread's own), or -ESRCH. */
  getRobustList(
    tid: number,
    as: LockOwner = this.self,
  ): { readonly head: number; readonly bytes: number } | number {
    return getRobustList(this.context, as, tid)
  }

  // With the interface of the system call. Lock calls are made for this thread, or for the owner given as the
  // last argument.

  futexSync(
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout?: Timespec | number | null,
    uaddr2?: Uaddr,
    val3?: number,
    as?: LockOwner,
  ): number {
    const caller = isLockCall(op) ? this.waiterFor(threadWaiter, as) : threadWaiter(as && this.priorityOf(as))
    const prepared = this.prepare(caller, uaddr, op, val, timeout, uaddr2, val3)
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
    const caller = isLockCall(op)
      ? this.waiterFor(promiseWaiter, as)
      : promiseWaiter(as && this.priorityOf(as))
    const prepared = this.prepare(caller, uaddr, op, val, timeout, uaddr2, val3)
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
    const caller = taskWaiter(task, isLockCall(op) ? task.owner : undefined)
    const prepared = this.prepare(caller, uaddr, op, val, timeout, uaddr2, val3)
    return typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared)
  }

  /** futex_waitv: returns the index of the woken word, or an error, negated. */
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
    const caller = taskWaiter(task)
    const prepared = prepareWaitv(this.context, this.space, caller, entries, flags, timeout, clock)
    return typeof prepared === 'number' ? prepared : yield* parkFor(task, prepared)
  }

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

  /** Returns how many waiters were woken. */
  wake(word: FutexWord, count = 1, options: WakeOptions = {}): number {
    const { bitset = MATCH_ANY, shared = false } = options
    if (count === 0) return 0
    const { context } = this
    const woken = wake(context, word, shared, clampCount(count), bitset)
    if (context.scheduler !== undefined) recordFutex(context, FUTEX_WAKE, word.index, woken)
    return counted(woken)
  }

  /** Returns how many waiters were woken and moved, or 'not-equal'. */
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
    if (this.context.scheduler !== undefined) recordFutex(this.context, FUTEX_REQUEUE, from.index, result)
    return result === -EAGAIN ? 'not-equal' : counted(result)
  }

  /**
   * Changes the second word, wakes waiters of the first, and of the second if its old value compares true.
   */
  wakeOp(
    first: FutexWord,
    second: FutexWord,
    change: { op: number; oparg: number; cmp: number; cmparg: number },
    options: { wake?: number; wakeSecond?: number; shared?: boolean } = {},
  ): number {
    const { wake: wakes = 1, wakeSecond = 1, shared = false } = options
    const encoded = encodeOp(change.op, change.oparg, change.cmp, change.cmparg)
    return counted(
      wakeOp(this.context, first, second, shared, clampCount(wakes), clampCount(wakeSecond), encoded, true),
    )
  }

  private waiterFor(make: typeof threadWaiter, owner: LockOwner = this.self): WaiterOptions {
    return make(this.priorityOf(owner), owner)
  }

  private priorityOf({ record }: LockOwner): number {
    return this.context.i32[record + Owner.basePriority]
  }

  private prepare(
    caller: ReturnType<typeof threadWaiter>,
    uaddr: Uaddr,
    op: number,
    val: number,
    timeout: Timespec | number | null | undefined,
    uaddr2: Uaddr | undefined,
    val3: number | undefined,
  ): Prepared {
    const { context, space } = this
    const prepared = prepareCall(context, space, caller, uaddr, op, val, timeout, uaddr2 ?? null, val3 ?? 0)
    if (context.scheduler !== undefined && typeof prepared === 'number')
      recordFutex(context, op, wordOf(uaddr), prepared)
    return prepared
  }

  private prepareTyped(
    caller: ReturnType<typeof threadWaiter>,
    word: FutexWord,
    expected: number,
    options: WaitOptions,
  ): Prepared {
    const { timeout = Infinity, bitset = MATCH_ANY, shared = false } = options
    if (Number.isNaN(timeout))
      throw new FutexError(EINVAL, 'futex', 'timeout: NaN is not a time; give a number of milliseconds')
    if (bitset === 0) throw new FutexError(EINVAL, 'futex', 'bitset: 0 matches no wake; set at least one bit')
    const deadline = deadlineOf(this.context.now, timeoutLimit(timeout))
    return prepareWordWait(this.context, caller, word, shared, expected, deadline, bitset)
  }

  /** Waits as a promise until the wait is over. */
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

  /** Blocks the thread until the wait is over. */
  blockFor(wait: PreparedWait, long: LongWait | null = null): number {
    let prepared: Prepared = wait
    while (typeof prepared !== 'number') {
      const slept = sleepThread(this.context, prepared.waiters, prepared.deadline, long)
      prepared = finishCall(this.context, prepared, slept)
    }
    return prepared
  }
}

/** Parks the task until the wait is over. */
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

/** The pointer of the word that a call names; -1: none. */
function wordOf(uaddr: Uaddr): number {
  if (uaddr === null) return -1
  return 'index' in uaddr ? uaddr.index : uaddr.byteOffset >> 2
}

function clampCount(count: number): number {
  if (Number.isNaN(count))
    throw new FutexError(EINVAL, 'futex', 'count: NaN is not a count; give a number of waiters')
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
