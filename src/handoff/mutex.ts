import { pause } from '../arena/sync/pause.ts'
import { restOf } from '../futex/core/deadline.ts'
import { EBUSY, EOWNERDEAD, EPERM } from '../futex/core/errno.ts'
import type { LockOwner } from '../futex/core/owner.ts'
import { PLAIN, WordMutex } from '../futex/robust/mutex.ts'
import type { OwnedLock } from '../futex/robust/ownedlock.ts'
import { LEAVES, type LongWait, type TaskWaiter } from '../futex/core/sleep.ts'
import {
  type Attempts,
  contendAsync,
  contendSync,
  contendTask,
  FOLLOWS,
  type GiveWay,
  LOCKED,
} from './contend.ts'
import type { Handoff } from './handoff.ts'
import { LockEntry, SectionSlot } from './layout.ts'

const { where: WHERE, waiters: WAITERS } = LockEntry
const { tid: SECTION_TID } = SectionSlot
const NO_TID = -1
const NO_WORDS = new Int32Array(0)

/**
 * The lock shim: a lock, and hints around it. Mutual exclusion and wakeups are the inner lock's alone, so a
 * thread that uses the lock through the shim and one that uses it directly exclude each other, with a policy
 * or without.
 */
export class HandoffMutex implements OwnedLock {
  private readonly inner: OwnedLock
  private readonly handoff: Handoff
  private readonly tag: number
  private readonly giveWay: GiveWay | undefined
  private readonly i32: Int32Array
  /** The word of a plain inner lock: a TID, or 0. */
  private readonly words: Int32Array
  private readonly index: number
  private readonly isPlain: boolean
  /** The first way of the lock's bucket: its entry is there unless another lock has this way. */
  private readonly entry: number
  /** The TID that locked it last through this object, and its section slot. */
  private tid = 0
  private section = 0
  /** The same TID if the inner lock is plain; else no TID. */
  private again = NO_TID
  /** What that owner wrote in the lock's entry. */
  private where = 0

  /** `tag`: the same on every thread (`lockTag`). */
  constructor(inner: OwnedLock, handoff: Handoff, tag: number, giveWay?: GiveWay) {
    this.inner = inner
    this.handoff = handoff
    this.tag = tag
    this.giveWay = giveWay
    this.i32 = handoff.i32
    this.entry = handoff.bucketOf(tag)
    const plain = inner instanceof WordMutex && inner.kind === PLAIN ? inner.word : null
    this.isPlain = plain !== null
    this.words = plain?.i32 ?? NO_WORDS
    this.index = plain?.index ?? 0
  }

  looksFree(): boolean {
    return this.inner.looksFree()
  }

  tryLock(owner: LockOwner): number {
    const result = this.inner.tryLock(owner)
    return result === 0 && this.enterAgain(owner.tid) ? 0 : this.entered(owner.tid, result)
  }

  /**
   * As tryLock, for the TID that locked it last through this object, at a lock that is free: the
   * compare-exchange and two stores. Small, so that it is inlined into its callers. False: use tryLock.
   */
  tryLockAgain(tid: number): boolean {
    if (tid !== this.again || Atomics.compareExchange(this.words, this.index, 0, tid) !== 0) return false
    if (!this.enterAgain(tid)) this.entered(tid, 0)
    return true
  }

  /**
   * As unlock, for the TID that locked it last through this object, if no waiter is published. False: use
   * unlock.
   */
  unlockAgain(tid: number): boolean {
    const { i32, entry } = this
    if (tid !== this.again || i32[entry] !== this.tag || i32[entry + WAITERS] !== 0) return false
    i32[this.section]--
    i32[entry] = 0
    return Atomics.compareExchange(this.words, this.index, tid, 0) === tid || this.notUnlocked()
  }

  /** Writes the hints of a lock that this TID holds now. False: they are not those that it wrote last. */
  private enterAgain(tid: number): boolean {
    const { i32, entry, section } = this
    // Any other owner of the entry has changed the generation; another TID that took the section slot is
    // there.
    if (tid !== this.tid || i32[entry + WHERE] !== this.where || i32[section + SECTION_TID] !== tid)
      return false
    i32[section]++
    i32[entry] = this.tag
    this.handoff.acquisitions++
    return true
  }

  /**
   * Spins, because a short section ends before a yield would. Not if the owner is on this CPU, where it
   * cannot run meanwhile. It counts turns instead of time: reading the clock costs as much as a short
   * section.
   */
  tryLockSoon(owner: LockOwner): number {
    const { inner, handoff } = this
    for (let looks = 0; looks < handoff.looks; looks++) {
      if (inner.looksFree()) {
        const result = inner.tryLock(owner)
        if (result !== -EBUSY) {
          handoff.countSpun()
          return this.entered(owner.tid, result)
        }
      }
      if (looks === 0 && handoff.ownerCpu(this.tag) === handoff.cpu) break
      pause()
    }
    return -EBUSY
  }

  lockSync(owner: LockOwner, timeoutMs: number = Infinity, long: LongWait | null = null): number {
    const first = this.tryLock(owner)
    if (first !== -EBUSY) return first
    const attempt = new Attempt(this.inner, owner)
    const begun = this.handoff.contends(this.tag)
    if (contendSync(this.handoff, this.tag, owner.tid, attempt, begun))
      return this.handedOff(owner, attempt.result, begun)
    return this.fellBack(owner, this.inner.lockSync(owner, timeoutMs, long), begun)
  }

  async lockAsync(owner: LockOwner, timeoutMs: number = Infinity, signal?: AbortSignal): Promise<number> {
    const first = this.tryLock(owner)
    if (first !== -EBUSY) return first
    const attempt = new Attempt(this.inner, owner)
    const begun = this.handoff.contends(this.tag)
    if (await contendAsync(this.handoff, this.tag, owner.tid, attempt, begun, signal))
      return this.handedOff(owner, attempt.result, begun)
    return this.fellBack(owner, await this.inner.lockAsync(owner, timeoutMs, signal), begun)
  }

  *lockTask(
    parking: TaskWaiter,
    timeoutMs: number = Infinity,
    signal?: AbortSignal,
    long: LongWait | null = null,
  ): Generator<number, number, unknown> {
    const { owner } = parking
    const first = this.tryLock(owner)
    if (first !== -EBUSY) return first
    const soon = this.tryLockSoon(owner)
    if (soon !== -EBUSY) return soon
    const attempt = new Attempt(this.inner, owner)
    const { handoff, tag, giveWay } = this
    const begun = handoff.contends(tag)
    // A task that may follow asks again after each wakeup in vain: it has waited longer by then.
    for (let now = begun; ; now = handoff.now()) {
      const contended = yield* contendTask(handoff, tag, parking, attempt, begun, now, signal, giveWay)
      if (contended === LOCKED) return this.handedOff(owner, attempt.result, begun)
      if (contended === FOLLOWS) return LEAVES
      const left = restOf(timeoutMs, now - begun)
      const result = yield* this.inner.lockTask(parking, left, signal, long, parking.mayFollow)
      if (result !== -EBUSY) return this.fellBack(owner, result, begun)
    }
  }

  unlock(owner: LockOwner): number {
    const { i32, entry } = this
    const { tid } = owner
    if (tid !== this.tid || i32[entry] !== this.tag) return this.unlockUnhinted(owner)
    i32[this.section]--
    i32[entry] = 0
    const wanted = i32[entry + WAITERS] !== 0
    const result = this.inner.unlock(owner)
    if (result !== 0) {
      this.notUnlocked()
      return result
    }
    if (wanted) this.handoff.handOver(this.tag, tid)
    return 0
  }

  isHeldBy(owner: LockOwner): boolean {
    return this.inner.isHeldBy(owner)
  }

  /** The lock's entry has the second way, or none, or another owner used this object last. */
  private unlockUnhinted(owner: LockOwner): number {
    if (!this.inner.isHeldBy(owner)) return -EPERM
    const wanted = this.handoff.leave(this.tag, owner.tid)
    const result = this.inner.unlock(owner)
    if (wanted) this.handoff.handOver(this.tag, owner.tid)
    return result
  }

  /** The caller does not hold the lock: the hints are again those of the holder. */
  private notUnlocked(): boolean {
    this.i32[this.section]++
    this.i32[this.entry] = this.tag
    return false
  }

  makeConsistent(owner: LockOwner): number {
    return this.inner.makeConsistent(owner)
  }

  granted(owner: LockOwner): number {
    return this.entered(owner.tid, this.inner.granted(owner))
  }

  /** The owner has the lock and did not sleep; or it can never have the lock. */
  private handedOff(owner: LockOwner, result: number, begun: number): number {
    this.handoff.countContended(true)
    return this.waited(owner, result, begun)
  }

  private fellBack(owner: LockOwner, result: number, begun: number): number {
    this.handoff.countContended(false)
    return this.waited(owner, result, begun)
  }

  private waited(owner: LockOwner, result: number, begun: number): number {
    const isHeld = result === 0 || result === -EOWNERDEAD
    if (isHeld) this.handoff.acquired(this.tag, begun)
    const entered = this.entered(owner.tid, result)
    if (isHeld) this.handoff.noteWait(this.tag, begun)
    return entered
  }

  /** The owner has come to this CPU, and begins its wait again. */
  came({ tid }: LockOwner): void {
    this.handoff.came(tid)
  }

  private entered(tid: number, result: number): number {
    if (result !== 0 && result !== -EOWNERDEAD) return result
    this.handoff.enter(this.tag, tid)
    if (tid !== this.tid) {
      this.tid = tid
      if (this.isPlain) this.again = tid
      this.section = this.handoff.sectionOf(tid)
    }
    // Only if the lock has the first way: the fast path does not use the second.
    this.where = this.i32[this.entry] === this.tag ? this.i32[this.entry + WHERE] : -1
    return result
  }
}

/** Tries the inner lock until the owner has it, or can never have it. */
class Attempt implements Attempts {
  result: number = -EBUSY
  private readonly inner: OwnedLock
  private readonly owner: LockOwner

  constructor(inner: OwnedLock, owner: LockOwner) {
    this.inner = inner
    this.owner = owner
  }

  looksFree(): boolean {
    return this.inner.looksFree()
  }

  tryLock(): boolean {
    this.result = this.inner.tryLock(this.owner)
    return this.result !== -EBUSY
  }
}
