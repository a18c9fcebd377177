import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { checkOptions, type Kinds, show } from '../../coroutine/core/knownoptions.ts'
import { countLock, countUnlock, here } from '../../thread/context.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import { LEAVES } from '../../futex/core/sleep.ts'
import { defaultProtocol } from '../../handoff/protocol.ts'
import { HolderWatch, type WatchedLock } from '../debug/holderwatch.ts'
import { observer, tellMade } from '../debug/observer.ts'
import { asyncOwner, asyncOwnerOf, returnOwner } from '../wait/asyncowner.ts'
import { currentOwner, currentTid, refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { disposedError, SyncError } from '../wait/errors.ts'
import {
  EXTRA,
  handleOf,
  openHandle,
  type OwnPlace,
  type ObjectWords,
  wordsFor,
  ownPlaceKinds,
  OBJECT_WORDS,
  type SyncHandle,
} from '../wait/objectwords.ts'
import { ParkingQueue } from '../wait/queue.ts'
import { blockingMethods, checkWait, Finished, timedOut, type WaitOptions } from '../wait/waiting.ts'
import { FutexLock } from './futexlock.ts'
import { HandoffLock } from './handofflock.ts'
import { LockCall, restartableMethods } from './lockcall.ts'
import type { LockCore, Protocol } from './lockcore.ts'
import { UnlockToken } from './locktoken.ts'
import { MAPPED_LOCK_WORDS } from './mappedword.ts'
import { NOBODY, ParkingLock } from './parkinglock.ts'

export interface MutexOptions extends OwnPlace {
  /**
   * 'inherit': a waiter lends its priority to the holder. 'handoff': when it is contended, the scheduler's
   * policy decides which task gets it next.
   */
  readonly protocol?: Protocol | undefined
  /** If the holder dies, the next owner gets the lock and learns of the death: `ownerDied`. */
  readonly robust?: boolean | undefined
  /**
   * What happens when the holder locks the mutex again: it deadlocks (`normal`), it succeeds (`recursive`),
   * or it throws (`errorcheck`).
   */
  readonly type?: 'normal' | 'recursive' | 'errorcheck' | undefined
  /** For messages and for `locks()`. */
  readonly name?: string | undefined
}

const mutexKinds: Kinds<MutexOptions> = {
  ...ownPlaceKinds,
  protocol: 'checked',
  robust: 'boolean',
  type: 'checked',
  name: 'string',
}

/**
 * Mutual exclusion between tasks, threads and promises. Without contention, locking is one compare-exchange
 * and so is unlocking. The lock itself is its core (lockcore.ts).
 */
export class Mutex implements ObjectWords, WatchedLock {
  /** @internal For reports. */
  readonly kind = 'mutex'
  /** With a protocol, or robust, `engineWords`. */
  static readonly words: number = OBJECT_WORDS
  static readonly engineWords: number = MAPPED_LOCK_WORDS

  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly protocol: Protocol
  readonly robust: boolean
  readonly type: 'normal' | 'recursive' | 'errorcheck'
  readonly name: string | undefined
  /** @internal */
  readonly queue: ParkingQueue
  /** @internal */
  readonly core: LockCore
  /**
   * The core of a mutex that parks and is not recursive; null for any other. Its fast path is here, without a
   * call through the interface: the engine inlines it into the caller, whatever other mutexes a program has.
   */
  private readonly parking: ParkingLock | null
  private readonly token: UnlockToken
  private readonly finished: Finished<UnlockToken>
  private readonly reentrant: boolean

  constructor(options: MutexOptions = {}) {
    checkOptions('new Mutex(options)', options, mutexKinds)
    const { type = 'normal', robust = false, name } = options
    const protocol = options.protocol ?? (defaultProtocol() === 'handoff' ? 'handoff' : 'none')
    if (protocol !== 'none' && protocol !== 'inherit' && protocol !== 'handoff') {
      throw new TypeError(`new Mutex({ protocol: ${show(protocol)} }): give 'none', 'inherit' or 'handoff'`)
    }
    if (type !== 'normal' && type !== 'recursive' && type !== 'errorcheck') {
      throw new TypeError(`new Mutex({ type: ${show(type)} }): give 'normal', 'recursive' or 'errorcheck'`)
    }
    const parks = protocol === 'none' && !robust
    const { i32, at } = wordsFor('Mutex', parks ? OBJECT_WORDS : MAPPED_LOCK_WORDS, options)
    this.i32 = i32
    this.at = at
    this.protocol = protocol
    this.robust = robust
    this.type = type
    this.name = name
    this.reentrant = type === 'recursive'
    this.queue = new ParkingQueue(this)
    const parking = parks ? new ParkingLock(this, this.queue) : null
    this.parking = this.reentrant ? null : parking
    if (parking !== null) this.core = parking
    else if (protocol === 'handoff') this.core = new HandoffLock(this, protocol, robust)
    else this.core = new FutexLock(this, protocol, robust)
    this.token = new UnlockToken(this, null, true)
    this.finished = new Finished(this.token)
    tellMade()
  }

  /** For `postMessage`; the receiver calls `Mutex.from`. */
  get handle(): SyncHandle {
    this.core.announce()
    return handleOf('Mutex', this, {
      type: this.type,
      name: this.name,
      protocol: this.protocol,
      robust: this.robust,
    })
  }

  static from(handle: SyncHandle): Mutex {
    const { place, options } = openHandle('Mutex', handle)
    return new Mutex({ ...options, buffer: place.i32.buffer, index: place.at })
  }

  /** In a task: waits until it has the lock. */
  lock(options?: WaitOptions): Blocking<UnlockToken> {
    if (options === undefined && facesOpen() && this.lockFast())
      return this.finished as unknown as Blocking<UnlockToken>
    return this.lockChecked(options)
  }

  private lockChecked(options: WaitOptions | undefined): Blocking<UnlockToken> {
    if (!facesOpen()) refuseOutsideTask('lock')
    if (options !== undefined) checkWait(options)
    if (this.core.tryLockHere()) countLock()
    else {
      const owner = currentOwner()
      if (!this.lockAgain(owner)) {
        if (!this.core.tryLockSoon(owner, false))
          return toRun('lock', this.waitInTask('lock', owner, options)) as Blocking<UnlockToken>
        countLock()
      }
    }
    if (observer !== null) this.tellAcquired(currentOwner())
    return this.finished as unknown as Blocking<UnlockToken>
  }

  /** On a thread: blocks it until it has the lock. */
  lockSync(options?: WaitOptions): UnlockToken {
    if (options === undefined && here.runner === null && this.lockFast()) return this.token
    return this.lockSyncChecked(options)
  }

  private lockSyncChecked(options: WaitOptions | undefined): UnlockToken {
    if (here.runner !== null) refuseInTask('lock')
    if (options !== undefined) checkWait(options)
    if (this.core.tryLockHere()) countLock()
    else {
      const owner = currentOwner()
      if (!this.lockAgain(owner) && !this.blockFor('lock', owner, options))
        throw timedOut('lockSync', options)
    }
    if (observer !== null) this.tellAcquired(currentOwner())
    return this.token
  }

  /** Anywhere: a promise of the lock. Each has an identity of its own, which the token carries. */
  async lockAsync(options?: WaitOptions): Promise<UnlockToken> {
    const token = await this.awaitLock(options)
    if (token === null) throw timedOut('lockAsync', options)
    return token
  }

  /** The lock if it is free now, else null. */
  tryLock(): UnlockToken | null {
    if (this.core.tryLockHere()) countLock()
    else if (!this.lockAgain(currentOwner())) return null
    if (observer !== null) this.tellAcquired(currentOwner())
    return this.token
  }

  /** In a task: the lock, or null if it is still held after `timeout` milliseconds. */
  lockIfAvailable(timeout = 0, options?: Pick<WaitOptions, 'signal'>): Blocking<UnlockToken | null> {
    if (!facesOpen()) refuseOutsideTask('lockIfAvailable')
    checkWait({ ...options, timeout })
    const token = this.tryLock()
    if (token !== null || timeout === 0) {
      return (token === null ? NOT_AVAILABLE : this.finished) as unknown as Blocking<UnlockToken | null>
    }
    const waiting = this.waitInTask('lockIfAvailable', currentOwner(), { ...options, timeout })
    return toRun('lockIfAvailable', waiting) as Blocking<UnlockToken | null>
  }

  lockIfAvailableSync(timeout = 0, options?: Pick<WaitOptions, 'signal'>): UnlockToken | null {
    refuseInTask('lockIfAvailable')
    checkWait({ ...options, timeout })
    const token = this.tryLock()
    if (token !== null || timeout === 0) return token
    const owner = currentOwner()
    if (!this.blockFor('lockIfAvailable', owner, { ...options, timeout })) return null
    if (observer !== null) this.tellAcquired(owner)
    return this.token
  }

  lockIfAvailableAsync(timeout = 0, options?: Pick<WaitOptions, 'signal'>): Promise<UnlockToken | null> {
    return this.awaitLock({ ...options, timeout })
  }

  /** Only the holder may unlock. In async code prefer the token's `unlock`. */
  unlock(): void {
    if (!this.unlockFast()) this.unlockChecked()
  }

  private unlockChecked(): void {
    if (observer !== null) observer.released(this, currentTid())
    if (!this.reentrant && this.core.unlockHere()) countUnlock()
    else this.unlockAs(currentOwner())
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly name?: string; readonly locked: boolean } {
    const { name, locked } = this
    return name === undefined ? { locked } : { name, locked }
  }

  /** Whether it is held now. */
  get locked(): boolean {
    const holder = this.holder()
    return holder !== 0 && holder !== NOBODY
  }

  /**
   * The mutex is robust, its last holder died with it, and the data that it guards may be half changed:
   * repair the data, and call `makeConsistent`.
   */
  get ownerDied(): boolean {
    return this.core.ownerDied
  }

  /**
   * The data that the mutex guards is consistent again. If the holder unlocks without this call after a
   * death, no thread can lock the mutex any more.
   */
  makeConsistent(): void {
    this.core.makeConsistent(asyncOwnerOf(this.holder()) ?? currentOwner())
  }

  /** No thread may use it from here on. It must be free. */
  [Symbol.dispose](): void {
    this.core.dispose()
  }

  /**
   * The caller takes it from [1] (parkinglock.ts), unless its locks are counted. False: on the slow path it
   * may still get it.
   */
  private lockFast(): boolean {
    const { uncounted } = here
    if (this.parking === null || uncounted === 0 || observer !== null) return false
    return Atomics.compareExchange(this.i32, this.at, 0, uncounted) === 0
  }

  /** The caller, which holds it, unlocks it from [2]. False: use the slow path. */
  private unlockFast(): boolean {
    const { uncounted } = here
    const { parking } = this
    if (parking === null || uncounted === 0 || observer !== null) return false
    if (Atomics.compareExchange(this.i32, this.at, uncounted, 0) !== uncounted) return false
    parking.heldSince = 0
    return true
  }

  /** The holder locks it once more. False: the caller has to wait. */
  private lockAgain({ tid }: LockOwner): boolean {
    if (this.type === 'normal' || this.core.holder() !== tid) return false
    if (this.reentrant) {
      this.i32[this.at + EXTRA]++
      return true
    }
    throw new SyncError(
      'ERR_HEDDLE_DEADLOCK',
      `lock: the caller holds ${this.describe()} already, and would wait for itself`,
    )
  }

  /** @internal False: the caller does not hold it. */
  unlockIfHeld(): boolean {
    return this.unlockFast() || this.unlockIfHeldChecked()
  }

  private unlockIfHeldChecked(): boolean {
    if (!this.reentrant && observer === null) {
      const wasHeld = this.core.unlockHere()
      if (wasHeld) countUnlock()
      return wasHeld
    }
    const isHeld = this.isHeldBy(currentTid())
    if (isHeld) this.unlock()
    return isHeld
  }

  /** @internal */
  isHeldBy(tid: number): boolean {
    return this.core.holder() === tid
  }

  /** @internal */
  isHeldThrough({ owner }: UnlockToken): boolean {
    return this.isHeldBy(owner === null ? currentTid() : owner.tid)
  }

  /** @internal */
  unlockThrough(token: UnlockToken): void {
    const { owner } = token
    if (!token.lasting) {
      token.mutex = null
      token.owner = null
    }
    if (owner === null) this.unlock()
    else this.unlockAsync(owner)
  }

  /** @internal Throws unless this owner, or async code of this thread, is the holder. */
  unlockAs(owner: LockOwner): void {
    const holder = this.core.holder()
    if (holder !== owner.tid) {
      const flow = asyncOwnerOf(holder)
      if (flow === undefined) throw this.notHeld('unlock', holder)
      this.unlockAsync(flow)
    } else if (this.reentrant && this.i32[this.at + EXTRA] > 0) this.i32[this.at + EXTRA]--
    else if (!this.core.unlock(owner)) throw this.notHeld('unlock')
    else if (owner.tid === currentTid()) countUnlock()
  }

  /**
   * @internal Unlocks it however often it was locked, for a wait at a condition. Returns the depth that
   * `relocked` restores.
   */
  unlockWholly(owner: LockOwner): number {
    const depth = this.i32[this.at + EXTRA]
    if (observer !== null) for (let hold = 0; hold <= depth; hold++) observer.released(this, owner.tid)
    if (this.reentrant) this.i32[this.at + EXTRA] = 0
    this.unlockAs(owner)
    return depth
  }

  /** @internal After a wait at a condition: waits until it has the lock again. */
  *reacquire(owner: LockOwner): Generator<number, void, unknown> {
    if (this.core.tryRelock(owner)) {
      countLock()
      return
    }
    const long = HolderWatch.of(owner.tid, this)
    try {
      yield* this.core.lockTask('wait', owner, undefined, long)
    } finally {
      long.end(currentFutexes().context)
    }
    countLock()
    this.core.relocked()
  }

  /** @internal */
  reacquireSync(owner: LockOwner): void {
    countLock()
    if (this.core.tryRelock(owner)) return
    this.core.lockSync('wait', owner, undefined, null)
    this.core.relocked()
  }

  /** @internal */
  async reacquireAsync(owner: LockOwner): Promise<void> {
    if (this.core.tryRelock(owner)) return
    await this.core.lockAsync('wait', owner, undefined)
    this.core.relocked()
  }

  /** @internal */
  relocked(owner: LockOwner, depth: number): void {
    if (this.reentrant) this.i32[this.at + EXTRA] = depth
    if (observer !== null) for (let hold = 0; hold <= depth; hold++) this.tellAcquired(owner)
  }

  /** @internal */
  objectId(context: FutexContext): number {
    return this.queue.objectId(context)
  }

  /** @internal */
  describe(): string {
    return this.name === undefined ? 'the mutex' : `the mutex '${this.name}'`
  }

  /** @internal */
  notHeld(what: string, holder: number = this.holder()): SyncError {
    if (holder === NOBODY) return disposedError(what)
    const why = holder === 0 ? 'is not locked' : `is held by ${holder}, and the caller is ${currentTid()}`
    return new SyncError('ERR_HEDDLE_NOT_HELD', `${what}: ${this.describe()} ${why}`)
  }

  /** @internal The TID of its holder, or 0. */
  holder(): number {
    return this.core.holder()
  }

  private unlockAsync(owner: LockOwner): void {
    if (observer !== null) observer.released(this, owner.tid)
    if (!this.core.unlock(owner)) throw this.notHeld('unlock')
    returnOwner(owner)
  }

  /** The slow path of `lock` and of `lockIfAvailable`, in a task. */
  private waitInTask(
    what: 'lock' | 'lockIfAvailable',
    owner: LockOwner,
    options: WaitOptions | undefined,
  ): Iterator<number, UnlockToken | null, unknown> & object {
    if (this.core instanceof HandoffLock && LockCall.canRestart(options))
      return LockCall.of(this, what, options)
    return this.lockSlowly(what, owner, options) as Generator<number, UnlockToken | null, unknown>
  }

  /**
   * @internal Only `lockIfAvailable` returns null when the time is over. `call`: the task may leave this wait
   * for another CPU, and then this returns LEAVES.
   */
  *lockSlowly(
    what: 'lock' | 'lockIfAvailable',
    owner: LockOwner,
    options: WaitOptions | undefined,
    call: LockCall | null = null,
  ): Generator<number, UnlockToken | null | typeof LEAVES, unknown> {
    if (observer !== null) this.tellWaits(owner)
    let isHeld: boolean | typeof LEAVES = false
    const long = HolderWatch.of(owner.tid, this, call?.site)
    try {
      isHeld = yield* this.core.lockTask(what, owner, options, long)
    } finally {
      long.end(currentFutexes().context)
      if (observer !== null) observer.waited(this, owner.tid)
    }
    if (isHeld === LEAVES) {
      if (call !== null) call.site = long.site
      return LEAVES
    }
    if (isHeld) {
      countLock()
      if (observer !== null) this.tellAcquired(owner)
      return this.token
    }
    if (what === 'lock') throw timedOut(what, call === null ? options : call.options)
    return null
  }

  /** @internal The task has come from another CPU, and waits here no more, or begins again. */
  cameAs(owner: LockOwner): void {
    if (this.core instanceof HandoffLock) this.core.came(owner)
  }

  private blockFor(what: string, owner: LockOwner, options: WaitOptions | undefined): boolean {
    if (!this.core.tryLockSoon(owner, true) && !this.blockInLine(what, owner, options)) return false
    countLock()
    return true
  }

  private blockInLine(what: string, owner: LockOwner, options: WaitOptions | undefined): boolean {
    if (observer !== null) this.tellWaits(owner)
    const long = HolderWatch.of(owner.tid, this)
    try {
      return this.core.lockSync(what, owner, options, long)
    } finally {
      long.end(currentFutexes().context)
      if (observer !== null) observer.waited(this, owner.tid)
    }
  }

  private async awaitLock(options: WaitOptions | undefined): Promise<UnlockToken | null> {
    checkWait(options)
    const owner = asyncOwner()
    let isHeld = false
    try {
      isHeld = this.core.tryLock(owner)
      if (!isHeld) {
        if (options?.timeout === 0) return null
        isHeld = await this.awaitTurn(owner, options)
      }
      if (isHeld && observer !== null) this.tellAcquired(owner)
      return isHeld ? new UnlockToken(this, owner, false) : null
    } finally {
      if (!isHeld) returnOwner(owner)
    }
  }

  private async awaitTurn(owner: LockOwner, options: WaitOptions | undefined): Promise<boolean> {
    if (observer !== null) this.tellWaits(owner)
    try {
      return await this.core.lockAsync('lockAsync', owner, options)
    } finally {
      if (observer !== null) observer.waited(this, owner.tid)
    }
  }

  private tellWaits({ tid }: LockOwner): void {
    observer?.waits(this, 'mutex', this.name, tid)
  }

  private tellAcquired({ tid }: LockOwner): void {
    observer?.acquired(this, 'mutex', this.name, tid)
  }
}

const NOT_AVAILABLE = new Finished<null>(null)

blockingMethods(Mutex.prototype)
restartableMethods(Mutex.prototype, 'lock', 'lockIfAvailable')
