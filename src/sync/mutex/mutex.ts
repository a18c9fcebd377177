import { checkOptions, type Kinds } from '../../coroutine/core/knownoptions.ts'
import { pause } from '../../arena/sync/pause.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { runnerOrNull } from '../../coroutine/core/runner.ts'
import { ambient } from '../../futex/core/ambient.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import type { FutexWord } from '../../futex/core/space.ts'
import { defaultProtocol } from '../../handoff/protocol.ts'
import { asyncOwner, asyncOwnerOf, returnOwner } from '../wait/asyncowner.ts'
import { disposedError, SyncError } from '../wait/errors.ts'
import { ENGINE_WORDS, LockEngine, type Protocol } from './futexlock.ts'
import { LockWait, NOBODY, passOn, releaseWord, takeWord, TID_MASK } from './parkinglock.ts'
import { HolderWatch, type WatchedLock } from '../debug/longwait.ts'
import { observer, tellMade } from '../debug/observer.ts'
import { currentOwner, currentTid, refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import {
  EXTRA,
  handleOf,
  openHandle,
  type OwnPlace,
  type Place,
  placeFor,
  placeKinds,
  PLACE_WORDS,
  type SyncHandle,
  HAS_WAITERS,
} from '../wait/place.ts'
import { ParkingQueue } from '../wait/queue.ts'
import { UnlockToken } from './locktoken.ts'
import {
  blockingMethods,
  checkWait,
  WAIT_SPINS,
  Finished,
  timedOut,
  waitAsync,
  type WaitOptions,
  waitSync,
  waitTask,
} from '../wait/waiting.ts'

export interface MutexOptions extends OwnPlace {
  /**
   * 'inherit': who waits lends its priority to the holder. 'handoff': contended, it is handed over by the
   * scheduler's policy.
   */
  readonly protocol?: Protocol | undefined
  /** If its holder dies, the next gets the lock and is told: `ownerDied`. */
  readonly robust?: boolean | undefined
  /**
   * What its own holder is told who locks it again: nothing, and it waits for itself; that it may; or an
   * error.
   */
  readonly type?: 'normal' | 'recursive' | 'errorcheck' | undefined
  /** For messages and for `locks()`. */
  readonly name?: string | undefined
}

const mutexKinds: Kinds<MutexOptions> = {
  ...placeKinds,
  protocol: 'checked',
  robust: 'boolean',
  type: 'checked',
  name: 'string',
}

/**
 * Mutual exclusion between tasks, threads and promises. Free and uncontended, locking is one compare-exchange
 * and so is unlocking. States of the word: parkinglock.ts.
 */
export class Mutex implements Place, WatchedLock {
  /** @internal For reports. */
  readonly kind = 'mutex'
  /** With a protocol, or robust, `engineWords`. */
  static readonly words: number = PLACE_WORDS
  static readonly engineWords: number = ENGINE_WORDS

  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  /** @internal */
  heldSince = 0
  readonly protocol: Protocol
  readonly robust: boolean
  readonly type: 'normal' | 'recursive' | 'errorcheck'
  readonly name: string | undefined
  /** @internal */
  readonly queue: ParkingQueue
  private readonly token: UnlockToken
  private readonly finished: Finished<UnlockToken>
  private readonly reentrant: boolean
  private readonly inherits: boolean
  private readonly engine: LockEngine | null

  constructor(options: MutexOptions = {}) {
    checkOptions('new Mutex(options)', options, mutexKinds)
    const { type = 'normal', robust = false, name } = options
    const protocol = options.protocol ?? (defaultProtocol() === 'handoff' ? 'handoff' : 'none')
    if (protocol !== 'none' && protocol !== 'inherit' && protocol !== 'handoff') {
      throw new TypeError(`new Mutex({ protocol: ${String(protocol)} }): give 'none', 'inherit' or 'handoff'`)
    }
    if (type !== 'normal' && type !== 'recursive' && type !== 'errorcheck') {
      throw new TypeError(`new Mutex({ type: ${String(type)} }): give 'normal', 'recursive' or 'errorcheck'`)
    }
    const keepsQueue = protocol !== 'none' || robust
    const { i32, at } = placeFor('Mutex', keepsQueue ? ENGINE_WORDS : PLACE_WORDS, options)
    this.i32 = i32
    this.at = at
    this.protocol = protocol
    this.robust = robust
    this.type = type
    this.name = name
    this.engine = keepsQueue ? new LockEngine({ i32, at }, protocol, robust) : null
    this.reentrant = type === 'recursive'
    this.inherits = protocol === 'inherit'
    this.queue = new ParkingQueue(this)
    this.token = new UnlockToken(this, null, true)
    this.finished = new Finished(this.token)
    tellMade()
  }

  /** For `postMessage`; the receiver calls `Mutex.from`. */
  get handle(): SyncHandle {
    this.engine?.announce()
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
    if (!facesOpen()) refuseOutsideTask('lock')
    if (options !== undefined) checkWait(options)
    if (this.engine !== null) {
      const owner = currentOwner()
      if (!this.tryEngine(this.engine, owner) && !this.engine.tryLockSoon(owner)) {
        return toRun('lock', this.lockSlowly('lock', owner.tid, options)) as Blocking<UnlockToken>
      }
      if (observer !== null) this.tellAcquired(owner.tid)
      return this.finished as unknown as Blocking<UnlockToken>
    }
    const tid = currentTid()
    if (Atomics.compareExchange(this.i32, this.at, 0, tid) !== 0 && !this.attempt(tid)) {
      return toRun('lock', this.lockSlowly('lock', tid, options)) as Blocking<UnlockToken>
    }
    if (observer !== null) this.tellAcquired(tid)
    return this.finished as unknown as Blocking<UnlockToken>
  }

  /** On a thread: blocks it until it has the lock. */
  lockSync(options?: WaitOptions): UnlockToken {
    if (runnerOrNull() !== null) refuseInTask('lock')
    if (options !== undefined) checkWait(options)
    const tid = currentTid()
    if (
      this.engine !== null ||
      (Atomics.compareExchange(this.i32, this.at, 0, tid) !== 0 && !this.attempt(tid))
    ) {
      if (!this.blockFor('lock', tid, options)) throw timedOut('lockSync', options)
    }
    if (observer !== null) this.tellAcquired(tid)
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
    const tid = currentTid()
    if (this.engine !== null) {
      if (!this.tryEngine(this.engine, currentOwner())) return null
    } else if (Atomics.compareExchange(this.i32, this.at, 0, tid) !== 0 && !this.attempt(tid)) return null
    if (observer !== null) this.tellAcquired(tid)
    return this.token
  }

  /** In a task: the lock if it can be had within `timeout` milliseconds, else null. */
  lockIfAvailable(timeout = 0, options?: Pick<WaitOptions, 'signal'>): Blocking<UnlockToken | null> {
    if (!facesOpen()) refuseOutsideTask('lockIfAvailable')
    checkWait({ ...options, timeout })
    const token = this.tryLock()
    if (token !== null || timeout === 0) {
      return (token === null ? NOT_AVAILABLE : this.finished) as unknown as Blocking<UnlockToken | null>
    }
    const within = { ...options, timeout }
    return toRun(
      'lockIfAvailable',
      this.lockSlowly('lockIfAvailable', currentTid(), within),
    ) as Blocking<UnlockToken | null>
  }

  lockIfAvailableSync(timeout = 0, options?: Pick<WaitOptions, 'signal'>): UnlockToken | null {
    refuseInTask('lockIfAvailable')
    checkWait({ ...options, timeout })
    const token = this.tryLock()
    if (token !== null || timeout === 0) return token
    const tid = currentTid()
    if (!this.blockFor('lockIfAvailable', tid, { ...options, timeout })) return null
    if (observer !== null) this.tellAcquired(tid)
    return this.token
  }

  lockIfAvailableAsync(timeout = 0, options?: Pick<WaitOptions, 'signal'>): Promise<UnlockToken | null> {
    return this.awaitLock({ ...options, timeout })
  }

  /** Only its holder may. In async code prefer the token's `unlock`. */
  unlock(): void {
    if (this.engine !== null && !this.reentrant) {
      this.unlockEngine(this.engine, currentOwner())
      return
    }
    const tid = currentTid()
    if (observer !== null) observer.released(this, tid)
    if (this.engine === null && !this.reentrant && this.letGo(tid)) return
    this.unlockAs(tid)
  }

  /** Whether someone holds it, as of now. */
  get locked(): boolean {
    const owner = this.holder()
    return owner !== 0 && owner !== NOBODY
  }

  /**
   * The mutex is robust, its last holder died with it, and what it guards may be half-changed: mend it, and
   * call `makeConsistent`.
   */
  get ownerDied(): boolean {
    return this.engine?.ownerDied ?? false
  }

  /**
   * What the mutex guards is whole again. Unlocked without, a mutex whose holder died is lost for everyone.
   */
  makeConsistent(): void {
    if (this.engine === null)
      throw new SyncError('ERR_HEDDLE_NOT_HELD', 'makeConsistent: the mutex is not robust')
    this.engine.makeConsistent(asyncOwnerOf(this.holder()) ?? currentOwner())
  }

  /** Nobody may use it from here on, on any thread. It must be free. */
  [Symbol.dispose](): void {
    if (this.engine !== null && this.locked) {
      throw new SyncError('ERR_HEDDLE_BUSY', 'dispose: the mutex is held')
    }
    const before = Atomics.compareExchange(this.i32, this.at, 0, HAS_WAITERS | NOBODY)
    if (before === 0 || (before & TID_MASK) === NOBODY) return
    throw new SyncError('ERR_HEDDLE_BUSY', 'dispose: the mutex is held, or someone waits for it')
  }

  /** @internal Without waiting. */
  attempt(tid: number): boolean {
    if (takeWord(this, tid)) return true
    const owner = Atomics.load(this.i32, this.at) & TID_MASK
    if (owner === NOBODY) throw disposedError('lock')
    return owner === tid && this.again()
  }

  /** Its holder locks it once more. */
  private again(): boolean {
    if (this.reentrant) {
      this.i32[this.at + EXTRA]++
      return true
    }
    if (this.type === 'errorcheck') {
      throw new SyncError(
        'ERR_HEDDLE_DEADLOCK',
        `lock: the caller holds ${this.describe()} already, and would wait for itself`,
      )
    }
    return false
  }

  /** @internal False: it is not the caller's. */
  unlockIfHeld(): boolean {
    if (this.reentrant) {
      const tid = currentTid()
      const held = this.isHeldBy(tid)
      if (held) this.unlock()
      return held
    }
    if (this.engine !== null) {
      const owner = currentOwner()
      if (observer !== null && this.isHeldBy(owner.tid)) observer.released(this, owner.tid)
      return this.engine.unlockIfHeld(owner)
    }
    const tid = currentTid()
    if (observer === null && this.letGo(tid)) return true
    if (!this.isHeldBy(tid)) return false
    this.unlock()
    return true
  }

  /** @internal */
  isHeldBy(tid: number): boolean {
    return this.holder() === tid
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

  /** From [2]. Whoever has it next through this object may not have waited for it. */
  private letGo(tid: number): boolean {
    if (Atomics.compareExchange(this.i32, this.at, tid, 0) !== tid) return false
    this.heldSince = 0
    return true
  }

  /** @internal From [2] or [3]; `tid` must be its holder. */
  unlockAs(tid: number): void {
    const { i32, at } = this
    const owner = this.holder()
    if (owner !== tid) {
      const flow = asyncOwnerOf(owner)
      if (flow === undefined) throw this.notHeld('unlock', owner)
      this.unlockAsync(flow)
      return
    }
    if (this.reentrant && i32[at + EXTRA] > 0) i32[at + EXTRA]--
    else if (this.engine !== null) this.engine.unlock(asyncOwnerOf(tid) ?? currentOwner())
    else if (!this.letGo(tid)) releaseWord(ambient().futexes.context, this, this.queue)
  }

  /**
   * @internal Lets go however often it was locked, for a wait at a condition. Returns what `relocked` needs.
   */
  unlockWholly(tid: number): number {
    const depth = this.i32[this.at + EXTRA]
    if (observer !== null) for (let hold = 0; hold <= depth; hold++) observer.released(this, tid)
    if (this.reentrant) this.i32[this.at + EXTRA] = 0
    this.unlockAs(tid)
    return depth
  }

  /** @internal */
  relocked(depth: number): void {
    if (this.reentrant) this.i32[this.at + EXTRA] = depth
    if (observer !== null) for (let hold = 0; hold <= depth; hold++) this.tellAcquired(this.holder())
  }

  /** @internal Whether its waiters are on `queue`, and others may be moved there. */
  get movesWaiters(): boolean {
    return this.engine === null
  }

  /**
   * @internal The word that those who were notified at a condition are moved to, where the mutex keeps its
   * own queue.
   */
  get target(): { readonly word: FutexWord; readonly inherits: boolean } | null {
    return this.engine === null ? null : { word: this.engine.target, inherits: this.engine.inherits }
  }

  /** @internal One who was notified does not come back to the mutex: its turn is another's. */
  passOnTurn(): void {
    if (this.engine?.inherits === false) this.engine.passOn()
  }

  /** A wait at a condition ended with the lock: it was given it. */
  private isGranted(engine: LockEngine, owner: LockOwner): boolean {
    if (!engine.inherits || engine.holder() !== owner.tid) return false
    engine.granted(owner)
    return true
  }

  /** @internal After a wait at a condition: the lock again, whatever it takes. */
  *reacquire(tid: number): Generator<number, void, unknown> {
    const { engine } = this
    if (engine !== null) {
      const owner = currentOwner()
      if (this.isGranted(engine, owner)) return
      const long = HolderWatch.of(tid, this)
      try {
        yield* engine.lockTask(owner, undefined, long)
      } finally {
        long.end(ambient().futexes.context)
      }
      if (!engine.inherits) engine.wakesNext()
      return
    }
    if (takeWord(this, tid)) return
    const long = HolderWatch.of(tid, this)
    try {
      yield* waitTask(this.waitFor('wait', tid, long), undefined)
    } catch (thrown) {
      // It may have been woken, at the condition, to take the lock.
      passOn(ambient().futexes.context, this, this.queue)
      throw thrown
    } finally {
      long.end(ambient().futexes.context)
    }
  }

  /** @internal */
  reacquireSync(tid: number): void {
    const { engine } = this
    if (engine !== null) {
      const owner = currentOwner()
      if (this.isGranted(engine, owner)) return
      engine.lockSync(owner, undefined)
      if (!engine.inherits) engine.wakesNext()
    } else if (!takeWord(this, tid)) waitSync(this.waitFor('wait', tid), undefined)
  }

  /** @internal */
  async reacquireAsync(tid: number): Promise<void> {
    const { engine } = this
    if (engine !== null) {
      const owner = asyncOwnerOf(tid) ?? currentOwner()
      if (this.isGranted(engine, owner)) return
      await engine.lockAsync(owner, undefined)
      if (!engine.inherits) engine.wakesNext()
    } else if (!takeWord(this, tid)) await waitAsync(this.waitFor('wait', tid), undefined)
  }

  /** @internal */
  waitFor(what: string, tid: number, long: HolderWatch | null = null): LockWait {
    return new LockWait(what, this, this.queue, tid, long)
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
  notHeld(what: string, owner: number = this.holder()): SyncError {
    if (owner === NOBODY) return disposedError(what)
    const why = owner === 0 ? 'is not locked' : `is held by ${owner}, and the caller is ${currentTid()}`
    return new SyncError('ERR_HEDDLE_NOT_HELD', `${what}: ${this.describe()} ${why}`)
  }

  private unlockAsync(owner: LockOwner): void {
    const { tid } = owner
    if (observer !== null) observer.released(this, tid)
    if (this.engine !== null) this.engine.unlock(owner)
    else if (!this.letGo(tid)) releaseWord(ambient().futexes.context, this, this.queue)
    returnOwner(owner)
  }

  /** The rest of `lock` and of `lockIfAvailable`: only the latter ends with null when the time is over. */
  private *lockSlowly(
    what: 'lock' | 'lockIfAvailable',
    tid: number,
    options: WaitOptions | undefined,
  ): Generator<number, UnlockToken | null, unknown> {
    const { engine } = this
    if (observer !== null) this.tellWaits(tid)
    let held = false
    const long = HolderWatch.of(tid, this)
    try {
      held =
        engine === null
          ? yield* waitTask(this.waitFor(what, tid, long), options)
          : yield* engine.lockTask(currentOwner(), options, long)
    } finally {
      long.end(ambient().futexes.context)
      if (observer !== null) observer.waited(this, tid)
    }
    if (held) {
      if (observer !== null) this.tellAcquired(tid)
      return this.token
    }
    if (what === 'lock') throw timedOut(what, options)
    return null
  }

  /** Recursion and the error of it, before the engine, which knows neither. */
  private tryEngine(engine: LockEngine, owner: LockOwner): boolean {
    if (Atomics.load(this.i32, this.at) !== 0) throw disposedError('lock')
    // One that inherits says itself that its holder would wait for itself: it is asked second.
    if (!this.inherits && engine.tryLock(owner)) return true
    if (engine.holder() === owner.tid) return this.again()
    return this.inherits && engine.tryLock(owner)
  }

  private unlockEngine(engine: LockEngine, owner: LockOwner): void {
    if (observer !== null) observer.released(this, owner.tid)
    if (engine.holder() === owner.tid) engine.unlock(owner)
    else this.unlockAs(owner.tid)
  }

  /** @internal The TID of its holder, or 0. */
  holder(): number {
    return this.engine === null ? Atomics.load(this.i32, this.at) & TID_MASK : this.engine.holder()
  }

  private blockFor(what: string, tid: number, options: WaitOptions | undefined): boolean {
    const { engine } = this
    const owner = engine === null ? null : currentOwner()
    if (engine !== null && owner !== null) {
      if (this.tryEngine(engine, owner)) return true
    } else if (this.spin(tid)) return true
    if (observer !== null) this.tellWaits(tid)
    const long = HolderWatch.of(tid, this)
    try {
      if (engine !== null && owner !== null) return engine.lockSync(owner, options, long)
      return waitSync(this.waitFor(what, tid, long), options)
    } finally {
      long.end(ambient().futexes.context)
      if (observer !== null) observer.waited(this, tid)
    }
  }

  /** Before it blocks, a thread looks on for a moment: most locks are held for less. */
  private spin(tid: number): boolean {
    const { spins } = ambient().futexes.context.thread
    for (let spin = 0; spin < WAIT_SPINS && spin < spins; spin++) {
      pause()
      if (Atomics.load(this.i32, this.at) === 0 && takeWord(this, tid)) return true
    }
    return false
  }

  private async awaitLock(options: WaitOptions | undefined): Promise<UnlockToken | null> {
    checkWait(options)
    const { engine } = this
    const owner = asyncOwner()
    const { tid } = owner
    let held = false
    try {
      held = engine === null ? takeWord(this, tid) : this.tryEngine(engine, owner)
      if (!held) {
        if (engine === null && this.holder() === NOBODY) throw disposedError('lockAsync')
        if (options?.timeout === 0) return null
        held = await this.awaitTurn(owner, options)
      }
      if (held && observer !== null) this.tellAcquired(tid)
      return held ? new UnlockToken(this, owner, false) : null
    } finally {
      if (!held) returnOwner(owner)
    }
  }

  private async awaitTurn(owner: LockOwner, options: WaitOptions | undefined): Promise<boolean> {
    const { tid } = owner
    if (observer !== null) this.tellWaits(tid)
    try {
      if (this.engine !== null) return await this.engine.lockAsync(owner, options)
      return await waitAsync(this.waitFor('lockAsync', tid), options)
    } finally {
      if (observer !== null) observer.waited(this, tid)
    }
  }

  private tellWaits(tid: number): void {
    observer?.waits(this, 'mutex', this.name, tid)
  }

  private tellAcquired(tid: number): void {
    observer?.acquired(this, 'mutex', this.name, tid)
  }
}

const NOT_AVAILABLE = new Finished<null>(null)

blockingMethods(Mutex.prototype, 'lock', 'lockIfAvailable')
