import { wait as waitForPromise } from '../../coroutine/core/blocking.ts'
import { ambient } from '../../futex/core/ambient.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import {
  EBUSY,
  EDEADLK,
  EINTR,
  ENOTRECOVERABLE,
  EOWNERDEAD,
  ESRCH,
  ETIMEDOUT,
} from '../../futex/core/errno.ts'
import { type MutexKind, PI, PLAIN, ROBUST, WordMutex } from '../../futex/robust/mutex.ts'
import { awaitOwner } from '../../futex/recovery/awaitowner.ts'
import { FUTEX_WAITERS, holderOf, type LockOwner } from '../../futex/core/owner.ts'
import { Bucket } from '../../futex/core/records.ts'
import type { AddressSpace, FutexWord } from '../../futex/core/space.ts'
import type { LongWait } from '../../futex/core/sleep.ts'
import { MATCH_ANY, wake } from '../../futex/operations/waitwake.ts'
import { lockTag } from '../../futex/core/locktag.ts'
import { HandoffMutex, type RealMutex } from '../../handoff/mutex.ts'
import { domainTag } from '../../futex/core/domainwords.ts'
import { here } from '../../kernel/cpu/here.ts'
import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { SyncError } from '../wait/errors.ts'
import { EXTRA, type Place, viewOf } from '../wait/place.ts'
import { limitOf, type WaitOptions } from '../wait/waiting.ts'

/**
 * Locks that keep their own queue: those that pass priorities on, that survive their owner, or that are
 * handed over. They wait at a futex of a mapped buffer, so the mapping is found once for each lock, and its
 * handle is kept beside it:
 *
 *   words 0 to 3    as every object's
 *   words 4 to 9    the mutex itself (futex/robust/mutexrecord.ts)
 *   word 10         the tag of the domain that the mapping is in; CLAIMED less the TID of the thread that is about to make it
 *   words 12 to 15  the handles of mapping and backing, as float64s
 *
 * Whoever finds that the thread which claimed it has died claims it instead.
 */
export const ENGINE_WORDS = 16
const CLAIM = 10
const WORD = 4
const HANDLES = 12
const CLAIMED = -2

export type Protocol = 'none' | 'inherit' | 'handoff'

export class LockEngine {
  private readonly place: Place
  private readonly protocol: Protocol
  private readonly kind: MutexKind
  private known: { readonly futexes: Futexes; readonly real: RealMutex; readonly word: FutexWord } | null =
    null
  /** Who locked it last through this object, and the lock as it sees it: an owner stays on its thread. */
  private lastOwner: LockOwner | null = null
  private lastReal: RealMutex | null = null
  /** The last owner died with it, and `makeConsistent` has not been called since. */
  ownerDied = false

  constructor(place: Place, protocol: Protocol, robust: boolean) {
    this.place = place
    this.protocol = protocol
    this.kind = ((protocol === 'inherit' ? PI : PLAIN) | (robust ? ROBUST : 0)) as MutexKind
    if (place.at % 2 !== 0)
      throw new RangeError('new Mutex({ index }): with a protocol, or robust, it starts at an even word')
  }

  /**
   * It is about to be given to others: this thread can see its word from here on. If one of them dies with
   * it, who sees to what the dead left (the thread that booted the kernel) has to be able to write there.
   */
  announce(): void {
    this.real()
  }

  /** The TID of its holder, or 0. */
  holder(): number {
    return holderOf(Atomics.load(this.place.i32, this.place.at + WORD))
  }

  tryLock(owner: LockOwner): boolean {
    const result = this.realOf(owner).tryLock(owner)
    return result !== -EBUSY && this.took(result, 'lock')
  }

  /** As tryLock, for one who would wait: it looks on for a moment where that may help. */
  tryLockSoon(owner: LockOwner): boolean {
    const real = this.realOf(owner)
    if (!(real instanceof HandoffMutex)) return false
    const result = real.tryLockSoon(owner)
    return result !== -EBUSY && this.took(result, 'lock')
  }

  lockSync(owner: LockOwner, options: WaitOptions | undefined, long: LongWait | null = null): boolean {
    return this.took(this.real().lockSync(owner, limitOf(options), long), 'lockSync')
  }

  async lockAsync(owner: LockOwner, options: WaitOptions | undefined): Promise<boolean> {
    const result = await this.real().lockAsync(owner, limitOf(options), options?.signal)
    return this.took(result, 'lockAsync')
  }

  /** `owner` is the coroutine's, where it is one of a schedule and not a task. */
  *lockTask(
    owner: LockOwner,
    options: WaitOptions | undefined,
    long: LongWait | null = null,
  ): Generator<number, boolean, unknown> {
    const task = currentTask()
    const timeout = limitOf(options)
    if (task !== null) {
      const result = yield* this.real().lockTask(task, timeout, options?.signal, long)
      if (result === -EINTR) options?.signal?.throwIfAborted()
      return this.took(result, 'lock')
    }
    const giveUp = new AbortController()
    const signal =
      options?.signal === undefined ? giveUp.signal : AbortSignal.any([giveUp.signal, options.signal])
    const locking = this.real().lockAsync(owner, timeout, signal)
    let settled = false
    try {
      const result = yield* waitForPromise(locking)
      settled = true
      return this.took(result, 'lock')
    } finally {
      // Thrown into: whatever it gets after that, it gives back.
      if (!settled) {
        giveUp.abort()
        locking.then(
          result => {
            if (result === 0 || result === -EOWNERDEAD) this.real().unlock(owner)
          },
          () => undefined,
        )
      }
    }
  }

  unlock(owner: LockOwner): void {
    const result = this.realOf(owner).unlock(owner)
    if (result === 0) return
    throw new SyncError('ERR_HEDDLE_NOT_HELD', `unlock: the caller does not hold the mutex (${-result})`)
  }

  /** The word that its waiters are queued at. */
  get target(): FutexWord {
    return this.here().word
  }

  /** Whoever waits lends its priority: its queue takes waiters with their owners, and gives them the lock. */
  get inherits(): boolean {
    return (this.kind & PI) !== 0
  }

  /** The lock was given to this owner as it waited at a condition. */
  granted(owner: LockOwner): void {
    const real = this.real()
    if (real instanceof WordMutex) this.took(real.granted(owner), 'wait')
  }

  /**
   * Its holder was woken as the first of those who had been moved from a condition to the word: unlocking
   * wakes the next of them, though nobody has said in the word that it waits.
   */
  wakesNext(): void {
    const { word, futexes } = this.here()
    const { i32 } = futexes.context
    if (Atomics.load(i32, word.sharedBucket + Bucket.waiters) > 0)
      Atomics.or(word.i32, word.index, FUTEX_WAITERS)
  }

  /** One who was woken so does not take the lock: the next is woken in its place. */
  passOn(): void {
    const { word, futexes } = this.here()
    wake(futexes.context, word, true, 1, MATCH_ANY)
  }

  /** False: it is not this owner's. */
  unlockIfHeld(owner: LockOwner): boolean {
    return this.realOf(owner).unlock(owner) === 0
  }

  makeConsistent(owner: LockOwner): void {
    if (this.real().makeConsistent(owner) < 0) {
      throw new SyncError(
        'ERR_HEDDLE_NOT_HELD',
        'makeConsistent: the caller does not hold the mutex, or no owner has died with it',
      )
    }
    this.ownerDied = false
  }

  /** True: it has the lock. False: the time was over. */
  private took(result: number, what: string): boolean {
    if (result === 0) {
      if (this.ownerDied) this.ownerDied = false
      return true
    }
    if (result === -ETIMEDOUT) return false
    this.ownerDied = result === -EOWNERDEAD
    if (!this.ownerDied) throw lockError(result, what)
    // However often the dead one had locked it.
    this.place.i32[this.place.at + EXTRA] = 0
    return true
  }

  private realOf(owner: LockOwner): RealMutex {
    const { lastReal } = this
    if (owner === this.lastOwner && lastReal !== null) return lastReal
    const real = this.real()
    this.lastOwner = owner
    this.lastReal = real
    return real
  }

  private real(): RealMutex {
    return this.here().real
  }

  private here(): NonNullable<LockEngine['known']> {
    const { futexes } = ambient()
    if (this.known?.futexes !== futexes) {
      const word = this.word(futexes)
      this.known = { futexes, word, real: this.make(futexes, word) }
    }
    return this.known
  }

  private make(futexes: Futexes, word: FutexWord): RealMutex {
    const handoff = this.protocol === 'handoff' ? (here.view?.handoff ?? null) : null
    const real = new WordMutex(futexes, word, this.kind, handoff !== null)
    if (handoff === null) return real
    return new HandoffMutex(real, handoff, lockTag(word.mapped.backing, word.index))
  }

  private word(futexes: Futexes): FutexWord {
    const { i32, at } = this.place
    const { context, space } = futexes
    const tag = domainTag(context)
    const handles = new Float64Array(i32.buffer, (at + HANDLES) * 4, 2)
    for (;;) {
      const seen = Atomics.load(i32, at + CLAIM)
      if (seen === tag) break
      const isClaimed = seen < CLAIMED
      if (seen === 0 || (isClaimed && awaitOwner(context, i32, at + CLAIM, seen, CLAIMED - seen))) {
        const mine = CLAIMED - futexes.self.tid
        if (Atomics.compareExchange(i32, at + CLAIM, seen, mine) === seen) this.map(space, handles, mine, tag)
      } else if (!isClaimed) {
        throw new SyncError(
          'ERR_HEDDLE_DOMAIN',
          'the mutex belongs to another domain, or has been disposed of',
        )
      }
    }
    const own = { mapping: handles[0], backing: handles[1] }
    const known = space.findBuffer(viewOf(i32.buffer).buffer)
    const mapped = known?.handles.mapping === own.mapping ? known : space.adopt(i32.buffer, own)
    return mapped.word(context, at + WORD)
  }

  /** This thread has claimed it. Without room for a mapping, the next may try. */
  private map(space: AddressSpace, handles: Float64Array, mine: number, tag: number): void {
    const { i32, at } = this.place
    let isMapped = false
    try {
      const mapped = space.findBuffer(i32.buffer) ?? space.map(i32.buffer)
      handles[0] = mapped.handles.mapping
      handles[1] = mapped.handles.backing
      isMapped = true
    } finally {
      Atomics.compareExchange(i32, at + CLAIM, mine, isMapped ? tag : 0)
    }
  }
}

function lockError(result: number, what: string): Error {
  switch (result) {
    case -ENOTRECOVERABLE:
      return new SyncError(
        'ERR_HEDDLE_NOT_RECOVERABLE',
        `${what}: an owner died with the mutex, and the next unlocked it without makeConsistent()`,
      )
    case -EDEADLK:
      return new SyncError('ERR_HEDDLE_DEADLOCK', `${what}: the caller would wait for itself`)
    case -ESRCH:
      return new SyncError(
        'ERR_HEDDLE_NOT_RECOVERABLE',
        `${what}: the owner of the mutex died with it, and it is not robust`,
      )
    default:
      return new SyncError(
        'ERR_HEDDLE_INTERRUPTED',
        `${what}: the task was interrupted while it waited (${result})`,
      )
  }
}
