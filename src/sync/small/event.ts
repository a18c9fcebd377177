import type { Kinds } from '../../coroutine/core/knownoptions.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { here } from '../../thread/context.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import {
  asPromise,
  inTask,
  type ObjectOptions,
  objectKinds,
  onThread,
  optionsOf,
  SyncObject,
} from '../wait/object.ts'
import { refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { OBJECT_WORDS, type SyncHandle, HAS_WAITERS } from '../wait/objectwords.ts'
import { blockingMethods, checkWait, Finished, QueueWait, type WaitOptions } from '../wait/waiting.ts'
import { WakeCount } from '../wait/wakecount.ts'

const SET = 1

export interface EventOptions extends ObjectOptions {
  /** True: each `set` admits one waiter, which resets the event. False: it stays set until `reset`. */
  readonly auto?: boolean | undefined
  /** Whether it is set from the start. */
  readonly set?: boolean | undefined
}

const eventKinds: Kinds<EventOptions> = { ...objectKinds, auto: 'boolean', set: 'boolean' }

/**
 * A signal that something has happened.
 *
 *   HAS_WAITERS | SET | meaning
 *   --------+-----+----------------------------------------------------------------------
 *      0    |  0  | [1] not set, no waiters
 *      0    |  1  | [2] set
 *      1    |  0  | [3] not set, with waiters: `set` locks the queue
 */
export class Event extends SyncObject {
  static readonly words: number = OBJECT_WORDS
  private static readonly finished: Finished<void> = new Finished<void>(undefined)
  readonly auto: boolean

  constructor(options: EventOptions = {}) {
    super('Event', Event.words, options, eventKinds)
    this.auto = options.auto ?? false
    if (options.set === true) this.set()
  }

  static from(handle: SyncHandle): Event {
    return new Event(optionsOf('Event', handle))
  }

  protected override travels(): Record<string, unknown> {
    return { name: this.name, auto: this.auto }
  }

  /** What `console.log` and JSON show of it. */
  override toJSON(): { readonly name?: string; readonly isSet: boolean } {
    return { ...super.toJSON(), isSet: this.isSet }
  }

  get isSet(): boolean {
    return (Atomics.load(this.i32, this.at) & SET) !== 0
  }

  /** Admits all waiters until `reset`; with `auto`, one waiter, now or later. */
  set(): void {
    const { i32, at } = this
    for (;;) {
      const seen = Atomics.load(i32, at)
      if (seen < 0) break
      if (seen === SET || Atomics.compareExchange(i32, at, 0, SET) === 0) return
    }
    this.refuseDisposed('set')
    const { context } = currentFutexes()
    const { queue } = this
    queue.lock(context)
    if (!this.auto || queue.isEmpty(context)) {
      // Before any waiter is woken: if this thread dies in between, the waiters check again and find it.
      Atomics.store(i32, at, SET)
      queue.walk(context, new WakeCount(Infinity))
    } else {
      queue.walk(context, new WakeCount(1))
      if (queue.isEmpty(context)) Atomics.and(i32, at, ~HAS_WAITERS)
    }
    queue.unlock(context)
  }

  reset(): void {
    const before = Atomics.and(this.i32, this.at, ~SET)
    if (before < 0) this.refuseDisposed('reset')
  }

  /** In a task: waits until it is set. */
  wait(options?: WaitOptions): Blocking<void> {
    if (!facesOpen()) refuseOutsideTask('wait')
    if (options !== undefined) checkWait(options)
    if (this.pass()) return Event.finished as unknown as Blocking<void>
    return toRun('wait', inTask(new EventWait(this), options)) as Blocking<void>
  }

  waitSync(options?: WaitOptions): void {
    if (here.runner !== null) refuseInTask('wait')
    if (options !== undefined) checkWait(options)
    if (!this.pass()) onThread(new EventWait(this), options)
  }

  async waitAsync(options?: WaitOptions): Promise<void> {
    checkWait(options)
    if (!this.pass()) await asPromise(new EventWait(this), options)
  }

  /** Whether it is set, without waiting; with `auto`, this resets it. */
  pass(): boolean {
    const seen = Atomics.load(this.i32, this.at)
    if (seen < 0) this.refuseDisposed('wait')
    if (!this.auto) return (seen & SET) !== 0
    return Atomics.compareExchange(this.i32, this.at, SET, 0) === SET
  }
}

export class EventWait extends QueueWait {
  readonly what = 'wait'
  private readonly event: Event

  constructor(event: Event) {
    super(event.queue)
    this.event = event
  }

  admit(): boolean {
    const { i32, at, auto } = this.event
    this.event.refuseDisposed(this.what)
    for (;;) {
      const seen = Atomics.load(i32, at)
      const set = (seen & SET) !== 0
      const next = set ? (auto ? seen & ~SET : seen) : seen | HAS_WAITERS
      if (Atomics.compareExchange(i32, at, seen, next) === seen) return set
    }
  }

  /** An automatic event that woke it is set again, for another waiter. */
  override leave(_context: FutexContext, _waiters: readonly number[], index: number): void {
    if (index >= 0 && this.event.auto) this.event.set()
  }
}

blockingMethods(Event.prototype, 'wait')
