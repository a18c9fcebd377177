import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { checkNotified } from '../wait/errors.ts'
import { asPromise, inTask, type ObjectOptions, onThread, optionsOf, SyncObject } from '../wait/object.ts'
import { refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { EXTRA, type OwnPlace, OBJECT_WORDS, type SyncHandle, HAS_WAITERS } from '../wait/objectwords.ts'
import { WakeCount } from '../wait/wakecount.ts'
import { blockingMethods, checkWait, QueueWait, type WaitOptions } from '../wait/waiting.ts'

/**
 * A 32-bit integer that threads change without a lock, and for whose change they can wait. The value is the
 * object's fourth word; the sign of the first says that there are waiters.
 */
export class AtomicInt32 extends SyncObject {
  static readonly words: number = OBJECT_WORDS

  constructor(value = 0, options: ObjectOptions = {}) {
    super('AtomicInt32', AtomicInt32.words, options)
    if (value !== 0) this.store(value)
  }

  static from(handle: SyncHandle): AtomicInt32 {
    return new AtomicInt32(0, optionsOf('AtomicInt32', handle))
  }

  /** The one that is in this memory already. */
  static at(place: OwnPlace): AtomicInt32 {
    return new AtomicInt32(0, place)
  }

  get value(): number {
    return Atomics.load(this.i32, this.at + EXTRA)
  }

  /** What `console.log` and JSON show of it. */
  override toJSON(): { readonly name?: string; readonly value: number } {
    return { ...super.toJSON(), value: this.value }
  }

  load(): number {
    return Atomics.load(this.i32, this.at + EXTRA)
  }

  store(value: number): void {
    Atomics.store(this.i32, this.at + EXTRA, value)
  }

  /** This and the next six return the value before the change. */
  add(by: number): number {
    return Atomics.add(this.i32, this.at + EXTRA, by)
  }

  sub(by: number): number {
    return Atomics.sub(this.i32, this.at + EXTRA, by)
  }

  and(bits: number): number {
    return Atomics.and(this.i32, this.at + EXTRA, bits)
  }

  or(bits: number): number {
    return Atomics.or(this.i32, this.at + EXTRA, bits)
  }

  xor(bits: number): number {
    return Atomics.xor(this.i32, this.at + EXTRA, bits)
  }

  exchange(value: number): number {
    return Atomics.exchange(this.i32, this.at + EXTRA, value)
  }

  /** Stores `value` if the value is `expected`. */
  compareExchange(expected: number, value: number): number {
    return Atomics.compareExchange(this.i32, this.at + EXTRA, expected, value)
  }

  /** Replaces the value by `change(value)`, and returns the new value. */
  update(change: (value: number) => number): number {
    for (;;) {
      const seen = this.load()
      const next = change(seen) | 0
      if (this.compareExchange(seen, next) === seen) return next
    }
  }

  /**
   * In a task: waits for a `notify` while the value is `expected`. False: it has another value. Throws after
   * a timeout.
   */
  wait(expected: number, options?: WaitOptions): Blocking<boolean> {
    if (!facesOpen()) refuseOutsideTask('wait')
    return toRun('wait', this.waitInTask(expected, options)) as Blocking<boolean>
  }

  waitSync(expected: number, options?: WaitOptions): boolean {
    refuseInTask('wait')
    checkWait(options)
    const wait = new CellWait(this, expected)
    onThread(wait, options)
    return wait.slept
  }

  async waitAsync(expected: number, options?: WaitOptions): Promise<boolean> {
    checkWait(options)
    const wait = new CellWait(this, expected)
    await asPromise(wait, options)
    return wait.slept
  }

  /** Wakes the first `count` waiters. Returns how many. */
  notify(count: number = Infinity): number {
    checkNotified(count)
    if (Atomics.load(this.i32, this.at) >= 0) return 0
    this.refuseDisposed('notify')
    const { context } = currentFutexes()
    const waking = new WakeCount(count)
    this.queue.lock(context)
    this.queue.walk(context, waking)
    if (this.queue.isEmpty(context)) Atomics.and(this.i32, this.at, ~HAS_WAITERS)
    this.queue.unlock(context)
    return waking.woken
  }

  private *waitInTask(
    expected: number,
    options: WaitOptions | undefined,
  ): Generator<number, boolean, unknown> {
    checkWait(options)
    const wait = new CellWait(this, expected)
    yield* inTask(wait, options)
    return wait.slept
  }
}

export class CellWait extends QueueWait {
  readonly what = 'wait'
  slept = false
  private readonly cell: AtomicInt32
  private readonly expected: number

  constructor(cell: AtomicInt32, expected: number) {
    super(cell.queue)
    this.cell = cell
    this.expected = expected
  }

  admit(): boolean {
    this.cell.refuseDisposed(this.what)
    // The sign first: a thread that changes the value and then calls `notify` sees the sign, or this load
    // sees its change.
    Atomics.or(this.cell.i32, this.cell.at, HAS_WAITERS)
    return this.cell.load() !== this.expected
  }

  override woken(): boolean {
    this.slept = true
    return true
  }

  override leave(_context: FutexContext, _waiters: readonly number[], index: number): void {
    if (index >= 0) this.cell.notify(1)
  }
}

blockingMethods(AtomicInt32.prototype, 'wait')
