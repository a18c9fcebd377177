import { objectKinds } from '../wait/object.ts'
import { checkOptions } from '../../coroutine/core/knownoptions.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { checkTime } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
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
 * Waits until a condition that a mutex guards becomes true. The waiter is on the queue before it unlocks the
 * mutex:
 *
 *   waiter, holds the mutex                   notifier
 *   -----------------------                   --------
 *   (A) queues itself at the condition
 *   (B) unlocks the mutex                     (C) locks the mutex, makes the condition true, unlocks
 *   (D) sleeps                                (E) notifies
 *
 * If (C) comes between (B) and (D), (E) still finds the waiter on the queue, and (D) returns immediately.
 *
 * However many waiters are notified, at most one of them is awake without the mutex; notify.ts says how the
 * others get it. With a mutex that inherits, each notified waiter lends its priority to the holder, and gets
 * the mutex while it sleeps.
 *
 * A wait ends with the mutex held: after a notification, a timeout or an abort. There are two exceptions: the
 * waiter is cancelled while it locks the mutex again, or the holder of the mutex has died. Then (E) woke the
 * waiter in vain, and the waiter passes on its notification and its turn to wake the next.
 */
export class Condition implements ObjectWords {
  static readonly words: number = OBJECT_WORDS

  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly name: string | undefined
  private readonly waiting: ParkingQueue
  private readonly notified: ParkingQueue
  /** The mutex that this thread used in its last wait here. */
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

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly name?: string } {
    return this.name === undefined ? {} : { name: this.name }
  }

  get handle(): SyncHandle {
    return handleOf('Condition', this, { name: this.name })
  }

  static from(handle: SyncHandle): Condition {
    const { place, options } = openHandle('Condition', handle)
    return new Condition({ ...options, buffer: place.i32.buffer, index: place.at })
  }

  /**
   * In a task: unlocks the mutex, waits for a `notify`, and locks it again. Check your condition again then:
   * another holder may have changed it.
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
   * In a task: waits until `predicate` is true, for at most `timeout` milliseconds. Returns whether it is
   * true; without a predicate, whether it was notified.
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
   * Notifies the first `count` waiters, by default all. Returns how many. Any thread may call it, with or
   * without the mutex.
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
    return notify(currentFutexes().context, this, { waiting, notified }, parking, Math.trunc(count))
  }

  [Symbol.dispose](): void {
    if (Atomics.load(this.i32, this.at) < 0) {
      throw new SyncError(
        'ERR_HEDDLE_BUSY',
        'dispose: the condition has waiters; dispose of it when no wait is left',
      )
    }
    Atomics.store(this.i32, this.at + DOMAIN, DISPOSED)
  }

  /** The mutex and its holder. Throws unless the caller holds it. */
  private open(held: UnlockToken | Mutex): Held {
    if (Atomics.load(this.i32, this.at + DOMAIN) === DISPOSED) throw disposedError('wait')
    const mutex = held instanceof Mutex ? held : held?.mutex
    const owner = (held instanceof Mutex ? null : held?.owner) ?? currentOwner()
    if (!(mutex instanceof Mutex && mutex.isHeldBy(owner.tid))) {
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
    const { now } = currentFutexes().context
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
    const { context } = currentFutexes()
    const id = held.mutex.objectId(context)
    return new ConditionWait(this, this.waiting, held, held.mutex.core.parking === null ? -id : id)
  }

  /** Locks the mutex again. */
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
   * @internal After an exception in the wait, or while it locked the mutex again: passes on its notification
   * and its turn.
   */
  passOn(notified: boolean, mutex: Mutex | null = null): void {
    if (notified) this.notify(1)
    this.wakeNext()
    mutex?.core.passOn()
  }

  /** Wakes the next waiter that was notified and not woken yet. */
  private wakeNext(): void {
    const { context } = currentFutexes()
    if (!this.notified.lockIfWaiting(context)) return
    this.notified.walk(context, new WakeCount(1))
    this.notified.unlock(context)
  }
}

class ConditionWait extends QueueWait {
  readonly what = 'wait'
  /** The mutex was unlocked, and must be locked again. */
  unlocked = false
  /** It was notified, perhaps after its time was over. */
  notified = false
  private readonly place: Condition
  private readonly held: Held
  /** Negative if the mutex waits at a word (`LockCore.aim`). */
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
        `wait: the waiters of this condition use another mutex than ${this.held.mutex.describe()}; use one mutex for one condition`,
      )
    }
    Atomics.or(i32, at, HAS_WAITERS)
    return false
  }

  protected override queued(): void {
    this.held.depth = this.held.mutex.unlockWholly(this.held.owner)
    this.unlocked = true
  }

  /**
   * It has unlocked the mutex already. So this is a spurious wakeup, which the callers of `wait` must expect.
   */
  restarted(): boolean {
    return true
  }

  override leave(context: FutexContext, [waiter]: readonly number[], index: number): void {
    const { i32 } = context
    const woken = index >= 0
    this.notified = woken || (i32[waiter + Waiter.bitset] & NOTIFIED) !== 0 || hadMoved(i32, waiter)
  }

  passOn(): void {
    this.place.passOn(this.notified)
  }
}

blockingMethods(Condition.prototype, 'wait', 'waitFor')
