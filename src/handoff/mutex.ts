import { pause } from '../arena/sync/pause.ts'
import { EBUSY, EOWNERDEAD } from '../futex/core/errno.ts'
import type { LockOwner } from '../futex/core/owner.ts'
import type { LongWait, TaskWaiter } from '../futex/core/sleep.ts'
import { type Attempts, contendAsync, contendSync, contendTask, type GiveWay } from './contend.ts'
import { type Handoff, nextGeneration } from './handoff.ts'
import { LockEntry } from './layout.ts'

const { where: WHERE, waiters: WAITERS } = LockEntry

/**
 * A lock that is right by itself: a mutex over a futex word (futex/robust/mutex.ts). Results are 0, or an
 * error, negated.
 */
export interface RealMutex {
  /** Whether nobody holds it, as of now. */
  looksFree(): boolean
  tryLock(owner: LockOwner): number
  lockSync(owner: LockOwner, timeoutMs?: number, long?: LongWait | null): number
  lockAsync(owner: LockOwner, timeoutMs?: number, signal?: AbortSignal): Promise<number>
  lockTask(
    parking: TaskWaiter,
    timeoutMs?: number,
    signal?: AbortSignal,
    long?: LongWait | null,
  ): Generator<number, number, unknown>
  unlock(owner: LockOwner): number
  makeConsistent(owner: LockOwner): number
}

/**
 * The lock shim: the same lock, and the hints around it. Mutual exclusion and wakeups are the real lock's
 * alone, so a thread that uses the lock through this and one that uses it plainly exclude each other, with a
 * policy or without.
 */
export class HandoffMutex implements RealMutex {
  private readonly real: RealMutex
  private readonly handoff: Handoff
  private readonly tag: number
  private readonly giveWay: GiveWay | undefined
  private readonly i32: Int32Array
  private readonly time: { readonly clock: number }
  /** The first way of the lock's bucket: where its entry is unless another lock has it. */
  private readonly entry: number
  /** Who locked it last through this object, and its section slot: often the same again. */
  private tid = 0
  private section = 0
  /** What it left in the lock's entry, and when. */
  private where = 0
  private moment = -1

  /** `tag`: the same on every thread (`lockTag`). */
  constructor(real: RealMutex, handoff: Handoff, tag: number, giveWay?: GiveWay) {
    this.real = real
    this.handoff = handoff
    this.tag = tag
    this.giveWay = giveWay
    this.i32 = handoff.i32
    this.time = handoff.time
    this.entry = handoff.bucketOf(tag)
  }

  looksFree(): boolean {
    return this.real.looksFree()
  }

  /** Uncontended, and by who had it last: the compare-exchange, and three stores. */
  tryLock(owner: LockOwner): number {
    const result = this.real.tryLock(owner)
    if (result !== 0) return this.entered(owner, result)
    const { i32, entry, handoff } = this
    const { tid } = owner
    const { where } = this
    // Whoever has written to the entry since has changed the generation.
    if (tid !== this.tid || i32[entry + WHERE] !== where || this.moment !== this.time.clock) {
      return this.entered(owner, 0)
    }
    const next = nextGeneration(where)
    this.where = next
    i32[this.section]++
    i32[entry + WHERE] = next
    i32[entry] = this.tag
    handoff.acquisitions++
    return 0
  }

  /**
   * Looks on for a moment: a short section is done before a yield would be, unless its owner is on this CPU,
   * where it cannot be done meanwhile. It is not timed: the clock costs as much as a short section.
   */
  tryLockSoon(owner: LockOwner): number {
    const { real, handoff } = this
    for (let looks = 0; looks < handoff.looks; looks++) {
      if (real.looksFree()) {
        const result = real.tryLock(owner)
        if (result !== -EBUSY) {
          handoff.countSpun()
          return this.entered(owner, result)
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
    const attempt = new Attempt(this.real, owner)
    const begun = this.handoff.contends(this.tag)
    if (contendSync(this.handoff, this.tag, owner.tid, attempt, begun))
      return this.handedOff(owner, attempt.result, begun)
    return this.fellBack(owner, this.real.lockSync(owner, timeoutMs, long), begun)
  }

  async lockAsync(owner: LockOwner, timeoutMs: number = Infinity, signal?: AbortSignal): Promise<number> {
    const first = this.tryLock(owner)
    if (first !== -EBUSY) return first
    const attempt = new Attempt(this.real, owner)
    const begun = this.handoff.contends(this.tag)
    if (await contendAsync(this.handoff, this.tag, owner.tid, attempt, begun, signal))
      return this.handedOff(owner, attempt.result, begun)
    return this.fellBack(owner, await this.real.lockAsync(owner, timeoutMs, signal), begun)
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
    const attempt = new Attempt(this.real, owner)
    const { handoff, tag, giveWay } = this
    const begun = handoff.contends(tag)
    if (yield* contendTask(handoff, tag, owner.tid, attempt, begun, signal, giveWay))
      return this.handedOff(owner, attempt.result, begun)
    return this.fellBack(owner, yield* this.real.lockTask(parking, timeoutMs, signal, long), begun)
  }

  unlock(owner: LockOwner): number {
    const { i32, entry } = this
    const { tid } = owner
    let wanted: boolean
    if (tid === this.tid && i32[entry] === this.tag) {
      i32[this.section]--
      i32[entry] = 0
      wanted = i32[entry + WAITERS] !== 0
    } else wanted = this.handoff.leave(this.tag, tid)
    const result = this.real.unlock(owner)
    if (wanted) this.handoff.handOver(this.tag, tid)
    return result
  }

  makeConsistent(owner: LockOwner): number {
    return this.real.makeConsistent(owner)
  }

  /** It has the lock without having slept; or can never have it. */
  private handedOff(owner: LockOwner, result: number, begun: number): number {
    this.handoff.countContended(true)
    return this.waited(owner, result, begun)
  }

  private fellBack(owner: LockOwner, result: number, begun: number): number {
    this.handoff.countContended(false)
    return this.waited(owner, result, begun)
  }

  private waited(owner: LockOwner, result: number, begun: number): number {
    if (result === 0 || result === -EOWNERDEAD) this.handoff.acquired(this.tag, begun)
    return this.entered(owner, result)
  }

  private entered({ tid }: LockOwner, result: number): number {
    if (result !== 0 && result !== -EOWNERDEAD) return result
    this.handoff.enter(this.tag, tid)
    if (tid !== this.tid) {
      this.tid = tid
      this.section = this.handoff.sectionOf(tid)
    }
    // Only if the first way is the lock's: in the second there is no short way.
    this.where = this.i32[this.entry] === this.tag ? this.i32[this.entry + WHERE] : -1
    this.moment = this.time.clock
    return result
  }
}

/** Tries the real lock until it is had, or can never be. */
class Attempt implements Attempts {
  result: number = -EBUSY
  private readonly real: RealMutex
  private readonly owner: LockOwner

  constructor(real: RealMutex, owner: LockOwner) {
    this.real = real
    this.owner = owner
  }

  looksFree(): boolean {
    return this.real.looksFree()
  }

  tryLock(): boolean {
    this.result = this.real.tryLock(this.owner)
    return this.result !== -EBUSY
  }
}
