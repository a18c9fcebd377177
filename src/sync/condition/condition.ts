import { objectKinds } from '../wait/object.ts'
import { checkOptions } from '../../coroutine/core/knownoptions.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { checkTime } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { ambient } from '../../futex/core/ambient.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import { hadMoved } from '../../futex/pi/pirequeue.ts'
import { Waiter } from '../../futex/core/records.ts'
import { checkNotified, disposedError, SyncError } from '../wait/errors.ts'
import { WakeCount } from '../wait/wakecount.ts'
import { Mutex } from '../mutex/mutex.ts'
import { NOTIFIED, notify } from './notify.ts'
import { currentOwner, refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import {
  DISPOSED,
  DOMAIN,
  EXTRA,
  handleOf,
  openHandle,
  type OwnPlace,
  type ObjectWords,
  wordsFor,
  OBJECT_WORDS,
  type SyncHandle,
  HAS_WAITERS,
} from '../wait/objectwords.ts'
import { ParkingQueue } from '../wait/queue.ts'
import type { UnlockToken } from '../mutex/locktoken.ts'
import {
  blockingMethods,
  checkWait,
  timedOut,
  QueueWait,
  waitAsync,
  type WaitOptions,
  waitSync,
  waitTask,
} from '../wait/waiting.ts'

export interface ConditionOptions extends OwnPlace {
  readonly name?: string | undefined
}

/** The mutex and its holder: a wait unlocks it, and locks it again afterwards. */
export interface Held {
  readonly mutex: Mutex
  readonly owner: LockOwner
  /** How often the holder had locked it. */
  depth: number
}

/**
 * Waits for something that a mutex guards to come true. The waiter is on the queue before the mutex is
 * unlocked:
 *
 *   waiter, holds the mutex                   notifier
 *   -----------------------                   --------
 *   (A) queues itself at the condition
 *   (B) unlocks the mutex                     (C) locks the mutex, makes it true, unlocks
 *   (D) sleeps                                (E) notifies
 *
 * (C) can come between (B) and (D); (E) then finds the waiter on the queue all the same, and (D) returns at
 * once.
 *
 * However many are notified, at most one of them is awake and without the mutex; how the others come to their
 * turn: notify.ts. With a mutex that inherits, each of them lends its priority to the holder from there on,
 * and is given the mutex while it sleeps.
 *
 * A wait ends with the mutex held: notified, out of time, or aborted. Only one that is cancelled as it locks
 * the mutex again, or finds that its holder has died, ends without; then (E) has woken it for nothing, and it
 * passes on what it got: its notification, and its turn to wake the next.
 */
export class Condition implements ObjectWords {
  static readonly words: number = OBJECT_WORDS

  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly name: string | undefined
  private readonly waiting: ParkingQueue
  private readonly notified: ParkingQueue
  /** The mutex that this thread last waited with. */
  private mutex: Mutex | null = null

  constructor(options: ConditionOptions = {}) {
    checkOptions('new Condition(options)', options, objectKinds)
    const { i32, at } = wordsFor('Condition', Condition.words, options)
    this.i32 = i32
    this.at = at
    this.name = options.name
    this.waiting = new ParkingQueue(this, 0)
    this.notified = new ParkingQueue(this, 1)
  }

  get handle(): SyncHandle {
    return handleOf('Condition', this, { name: this.name })
  }

  static from(handle: SyncHandle): Condition {
    const { place, options } = openHandle('Condition', handle)
    return new Condition({ ...options, buffer: place.i32.buffer, index: place.at })
  }

  /**
   * In a task: unlocks the mutex, waits for a `notify`, and locks it again. Look at what you waited for once
   * more: others may have.
   */
  wait(held: UnlockToken | Mutex, options?: WaitOptions): Blocking<void> {
    if (!facesOpen()) refuseOutsideTask('wait')
    return toRun('wait', this.waitTask(this.open(held), options, 'wait')) as Blocking<void>
  }

  waitSync(held: UnlockToken | Mutex, options?: WaitOptions): void {
    refuseInTask('wait')
    checkWait(options)
    if (!this.blockFor(this.open(held), options)) throw timedOut('waitSync', options)
  }

  async waitAsync(held: UnlockToken | Mutex, options?: WaitOptions): Promise<void> {
    checkWait(options)
    if (!(await this.awaitNotify(this.open(held), options))) throw timedOut('waitAsync', options)
  }

  /**
   * In a task: waits until `predicate` holds, for at most `timeout` milliseconds. Says whether it does;
   * without one, whether notified.
   */
  waitFor(held: UnlockToken | Mutex, timeout: number, predicate?: () => boolean): Blocking<boolean> {
    if (!facesOpen()) refuseOutsideTask('waitFor')
    checkTime('timeout', timeout)
    return toRun('waitFor', this.waitTaskFor(held, timeout, predicate)) as Blocking<boolean>
  }

  waitForSync(held: UnlockToken | Mutex, timeout: number, predicate?: () => boolean): boolean {
    refuseInTask('waitFor')
    checkTime('timeout', timeout)
    if (predicate === undefined) return this.blockFor(this.open(held), { timeout })
    const deadline = performance.now() + timeout
    while (!predicate()) {
      const left = deadline - performance.now()
      if (!(left > 0) || !this.blockFor(this.open(held), { timeout: left })) return predicate()
    }
    return true
  }

  async waitForAsync(
    held: UnlockToken | Mutex,
    timeout: number,
    predicate?: () => boolean,
  ): Promise<boolean> {
    checkTime('timeout', timeout)
    if (predicate === undefined) return await this.awaitNotify(this.open(held), { timeout })
    const deadline = performance.now() + timeout
    while (!predicate()) {
      const left = deadline - performance.now()
      if (!(left > 0) || !(await this.awaitNotify(this.open(held), { timeout: left }))) return predicate()
    }
    return true
  }

  /**
   * Notifies the first `count` of those who wait, all of them if it is not said. Returns how many. From
   * anywhere; with or without the mutex.
   */
  notify(count: number = Infinity): number {
    checkNotified(count)
    const seen = Atomics.load(this.i32, this.at)
    if (seen >= 0 || count === 0) {
      if (Atomics.load(this.i32, this.at + DOMAIN) === DISPOSED) throw disposedError('notify')
      return 0
    }
    const { mutex, waiting, notified } = this
    const parking = mutex?.core.parking ?? null
    return notify(ambient().futexes.context, this, { waiting, notified }, parking, Math.trunc(count))
  }

  [Symbol.dispose](): void {
    if (Atomics.load(this.i32, this.at) < 0) {
      throw new SyncError('ERR_HEDDLE_BUSY', 'dispose: someone waits at the condition')
    }
    Atomics.store(this.i32, this.at + DOMAIN, DISPOSED)
  }

  /** Who waits, and with which mutex; it must be held. */
  private open(held: UnlockToken | Mutex): Held {
    if (Atomics.load(this.i32, this.at + DOMAIN) === DISPOSED) throw disposedError('wait')
    const mutex = held instanceof Mutex ? held : held.mutex
    const owner = (held instanceof Mutex ? null : held.owner) ?? currentOwner()
    if (mutex === null || !mutex.isHeldBy(owner.tid)) {
      throw new SyncError(
        'ERR_HEDDLE_NOT_HELD',
        `wait: the caller does not hold ${mutex?.describe() ?? 'a mutex'}; lock it, and pass its token`,
      )
    }
    return { mutex, owner, depth: 0 }
  }

  private *waitTask(
    held: Held,
    options: WaitOptions | undefined,
    what: string,
  ): Generator<number, void, unknown> {
    checkWait(options)
    if (!(yield* this.park(held, options))) throw timedOut(what, options)
  }

  private *waitTaskFor(
    held: UnlockToken | Mutex,
    timeout: number,
    predicate: (() => boolean) | undefined,
  ): Generator<number, boolean, unknown> {
    if (predicate === undefined) return yield* this.park(this.open(held), { timeout })
    const { now } = ambient().futexes.context
    const deadline = now() + timeout
    while (!predicate()) {
      const left = deadline - now()
      if (!(left > 0) || !(yield* this.park(this.open(held), { timeout: left }))) return predicate()
    }
    return true
  }

  private *park(held: Held, options: WaitOptions | undefined): Generator<number, boolean, unknown> {
    const wait = this.begin(held)
    let told = false
    try {
      told = (yield* waitTask(wait, options)) || wait.notified
      return told
    } catch (thrown) {
      wait.passOn()
      throw thrown
    } finally {
      if (wait.unlocked) yield* this.comeBack(held, told)
    }
  }

  private blockFor(held: Held, options: WaitOptions | undefined): boolean {
    const wait = this.begin(held)
    let told = false
    try {
      told = waitSync(wait, options) || wait.notified
      return told
    } finally {
      if (wait.unlocked) this.comeBackSync(held, told)
    }
  }

  private async awaitNotify(held: Held, options: WaitOptions | undefined): Promise<boolean> {
    const wait = this.begin(held)
    let told = false
    try {
      told = (await waitAsync(wait, options)) || wait.notified
      return told
    } catch (thrown) {
      wait.passOn()
      throw thrown
    } finally {
      if (wait.unlocked) await this.comeBackAsync(held, told)
    }
  }

  private begin(held: Held): ConditionWait {
    this.mutex = held.mutex
    const { context } = ambient().futexes
    const id = held.mutex.objectId(context)
    return new ConditionWait(this, this.waiting, held, held.mutex.core.parking === null ? -id : id)
  }

  /** The mutex again, whatever it takes. */
  private *comeBack(held: Held, told: boolean): Generator<number, void, unknown> {
    try {
      yield* held.mutex.reacquire(held.owner)
    } catch (thrown) {
      this.passOn(told, held.mutex)
      throw thrown
    }
    this.ended(held)
  }

  private comeBackSync(held: Held, told: boolean): void {
    try {
      held.mutex.reacquireSync(held.owner)
    } catch (thrown) {
      this.passOn(told, held.mutex)
      throw thrown
    }
    this.ended(held)
  }

  private async comeBackAsync(held: Held, told: boolean): Promise<void> {
    try {
      await held.mutex.reacquireAsync(held.owner)
    } catch (thrown) {
      this.passOn(told, held.mutex)
      throw thrown
    }
    this.ended(held)
  }

  private ended(held: Held): void {
    held.mutex.relocked(held.owner, held.depth)
    this.wakeNext()
  }

  /**
   * @internal Thrown out of its wait, or of locking the mutex again: a notification that it had is another's,
   * and so is its turn.
   */
  passOn(notified: boolean, mutex: Mutex | null = null): void {
    if (notified) this.notify(1)
    this.wakeNext()
    mutex?.core.passOn()
  }

  /** Who was notified and not woken goes on, one after the other. */
  private wakeNext(): void {
    const { context } = ambient().futexes
    if (!this.notified.lockIfWaiting(context)) return
    this.notified.walk(context, new WakeCount(1))
    this.notified.unlock(context)
  }
}

class ConditionWait extends QueueWait {
  readonly what = 'wait'
  /** The mutex has been let go, and must be had again. */
  unlocked = false
  /** It was notified, though its time was over before it was woken. */
  notified = false
  private readonly place: Condition
  private readonly held: Held
  /** Negative: it keeps its own queue. */
  private readonly mutexId: number

  constructor(place: Condition, queue: ParkingQueue, held: Held, mutexId: number) {
    super(queue)
    this.place = place
    this.held = held
    this.mutexId = mutexId
  }

  override bits(): number {
    return this.held.owner.tid
  }

  admit(context: FutexContext, waiter: number): boolean {
    const { i32, at } = this.place
    this.held.mutex.core.aim(context, waiter, this.held.owner)
    if (this.queue.isEmpty(context)) Atomics.store(i32, at + EXTRA, this.mutexId)
    else if (Atomics.load(i32, at + EXTRA) !== this.mutexId) {
      throw new SyncError(
        'ERR_HEDDLE_WRONG_MUTEX',
        `wait: others wait at this condition with another mutex than ${this.held.mutex.describe()}; a condition goes with one`,
      )
    }
    Atomics.or(i32, at, HAS_WAITERS)
    return false
  }

  protected override queued(): void {
    this.held.depth = this.held.mutex.unlockWholly(this.held.owner)
    this.unlocked = true
  }

  override woken(context: FutexContext, [waiter]: readonly number[]): boolean {
    this.held.mutex.core.wokenAt(context, waiter, this.held.owner)
    return true
  }

  /** It has let go of the mutex already: a wake for nothing, which whoever waits at a condition must bear. */
  restarted(): boolean {
    return true
  }

  override leave(context: FutexContext, [waiter]: readonly number[], index: number): void {
    const { i32 } = context
    const woken = index >= 0
    if (woken) this.held.mutex.core.wokenAt(context, waiter, this.held.owner)
    this.notified = woken || (i32[waiter + Waiter.bitset] & NOTIFIED) !== 0 || hadMoved(i32, waiter)
  }

  passOn(): void {
    this.place.passOn(this.notified)
  }
}

blockingMethods(Condition.prototype, 'wait', 'waitFor')
