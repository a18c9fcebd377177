import type { FutexContext } from '../../futex/core/context.ts'
import { findOwner } from '../../futex/core/owner.ts'
import { Owner } from '../../futex/core/records.ts'
import type { LongWait } from '../../futex/core/sleep.ts'
import { nextOrder } from '../../futex/operations/waitwake.ts'
import { hostPlatform } from '../../machine/core/platform.ts'
import { here } from '../../kernel/cpu/here.ts'
import { reportDeadlock } from '../../kernel/recovery/deadlock.ts'
import { shortStack, siteOf } from './callsite.ts'
import { LockTable, type TableEntry } from './locktable.ts'
import { callerName } from './callername.ts'

/**
 * Deadlocks, found by those who wait. A lock says who holds it in a word that only those see who have the
 * lock; and who waits runs no code. So each who has waited for LOOK_MS puts on record, in its own owner
 * record, that it waits and for whom, and again every LOOK_MS:
 *
 *   wantsSince   the number of its wait, from when it was first put on record; 0: it does not wait, or not for long
 *   (A) wantsAt  a number, taken before (B)
 *   (B) wants    the TID of the holder, as the word of the lock says it
 *
 * Numbers grow over all threads. Whoever has done this follows `wants` from owner to owner. A link from X to
 * Y counts only if Y's wait was on record before X looked: wantsSince of Y is below wantsAt of X. Then Y
 * waited at (B) of X, and held the lock. One who waits lets go of nothing:
 *
 *   X                          Y, holds the lock                Z
 *   -                          -----------------                -
 *   (A) 7, (B) Y
 *                              unlocks
 *                                                               locks it
 *                              waits for X: wantsSince 8
 *   Y's wait is younger than what X saw: no link. At its next look X finds Z
 *
 * The walk goes round twice. Where every wait is the same in both rounds, all of them went on in between, and
 * all of the links held then: it is a deadlock, and lasts. Of those in it, the one whose wait is youngest
 * reports it, once. Two looks of each are enough, so it is found three times LOOK_MS after the last of them
 * began to wait, at the latest.
 *
 * An unlocker may hand the lock to a waiter, which is then its holder while its wait is still on record. The
 * waiter does not take that for a wait for itself: `waitsForItself` says whether it held the lock before it
 * began to wait.
 *
 * Waits that are shorter than LOOK_MS pay for a stack of a few frames and no more, and an uncontended lock
 * has no part in this. Async code is not on record: it holds each lock as another owner, so that nothing says
 * who waits for whom.
 */
const CIRCLE_MAX = 64

/** What a wait for a lock is about. */
export interface WatchedLock {
  /** The TID of its holder, or 0. */
  holder(): number
  /** Whether this TID is its holder, or one of them. */
  isHeldBy(tid: number): boolean
  readonly kind: string
  readonly name: string | undefined
  /** By which others know it. */
  objectId(context: FutexContext): number
}

export class HolderWatch implements LongWait {
  private readonly tid: number
  private readonly lock: WatchedLock
  /** Where the wait began: afterwards nothing of the program is on the stack. */
  private readonly site: Error = shortStack()
  private since = 0
  private told = false
  /** The waiter held the lock before it began to wait for it: only then does it wait for itself. */
  private readonly waitsForItself: boolean

  private constructor(tid: number, lock: WatchedLock, waitsForItself: boolean) {
    this.tid = tid
    this.lock = lock
    this.waitsForItself = waitsForItself
  }

  /** To be called before the waiter is queued: from then on the lock may be handed to it. */
  static of(tid: number, lock: WatchedLock): HolderWatch {
    return new HolderWatch(tid, lock, lock.isHeldBy(tid))
  }

  checkDeadlock(context: FutexContext): void {
    const { i32 } = context
    const record = findOwner(context, this.tid)
    if (record === 0) return
    if (this.since === 0) this.begin(context, record)
    const at = nextOrder(context) // (A)
    const holder = this.holder() // (B)
    Atomics.store(i32, record + Owner.wants, 0)
    Atomics.store(i32, record + Owner.wantsAt, at)
    Atomics.store(i32, record + Owner.wants, holder)
    if (holder === 0 || this.told) return
    const circle = findCircle(context, this.tid)
    if (circle === null || youngestOf(circle) !== this.tid) return
    this.told = true
    const message = circleInWords(context, circle)
    if (message !== null) tell(message)
  }

  /** A waiter that the unlocker made the holder, and that has not run since, waits for no other. */
  private holder(): number {
    const holder = this.lock.holder()
    return holder === this.tid && !this.waitsForItself ? 0 : holder
  }

  /** The wait has ended, before its end shows in anything else. */
  end(context: FutexContext): void {
    if (this.since === 0) return
    this.since = 0
    const record = findOwner(context, this.tid)
    if (record !== 0) {
      Atomics.store(context.i32, record + Owner.wantsSince, 0)
      Atomics.store(context.i32, record + Owner.wants, 0)
    }
    if (LockTable.isOn(context)) return
    const table = new LockTable(context)
    table.locked(() => table.removeWait(this.lock.objectId(context), this.tid))
  }

  private begin(context: FutexContext, record: number): void {
    while (this.since === 0) this.since = nextOrder(context)
    Atomics.store(context.i32, record + Owner.wantsSince, this.since)
    // Debug mode has it there already, since it began to wait.
    if (LockTable.isOn(context)) return
    const table = new LockTable(context)
    const { kind, name } = this.lock
    const { tid } = this
    const object = this.lock.objectId(context)
    const entry = { object, tid, kind, name, who: callerName(tid), stack: siteOf(this.site) }
    table.locked(() => table.addWait(entry))
  }
}

interface Link {
  readonly tid: number
  readonly since: number
}

/** The circle that this wait is part of, or null. */
function findCircle(context: FutexContext, tid: number): readonly Link[] | null {
  const first = goRound(context, tid)
  const second = first === null ? null : goRound(context, tid)
  if (first === null || second === null || first.length !== second.length) return null
  return first.every(({ tid: one, since }, at) => second[at].tid === one && second[at].since === since)
    ? first
    : null
}

function goRound(context: FutexContext, origin: number): Link[] | null {
  const { i32 } = context
  const links: Link[] = []
  let tid = origin
  let record = findOwner(context, tid)
  do {
    const since = record === 0 ? 0 : Atomics.load(i32, record + Owner.wantsSince)
    if (since === 0 || links.length > CIRCLE_MAX) return null
    links.push({ tid, since })
    const wants = Atomics.load(i32, record + Owner.wants)
    const at = Atomics.load(i32, record + Owner.wantsAt)
    const next = wants === 0 ? 0 : findOwner(context, wants)
    const nextSince = next === 0 ? 0 : Atomics.load(i32, next + Owner.wantsSince)
    if (nextSince === 0 || ((at - nextSince) | 0) <= 0) return null
    tid = wants
    record = next
  } while (tid !== origin)
  return links
}

function youngestOf(circle: readonly Link[]): number {
  let [youngest] = circle
  for (const link of circle) if (((link.since - youngest.since) | 0) > 0) youngest = link
  return youngest.tid
}

/**
 * Null where debug mode has every wait and every lock of the circle on record: then it was told as it closed.
 */
function circleInWords(context: FutexContext, circle: readonly Link[]): string | null {
  const table = new LockTable(context)
  const { waits, holds } = table.locked(() => ({ waits: table.waits(), holds: table.holds() }))
  if (LockTable.isOn(context) && circle.every((_, at) => isOnRecord(circle, at, waits, holds))) return null
  const lines = circle.map(({ tid }, at) => {
    const holder = circle[(at + 1) % circle.length].tid
    const wait = waits.find(entry => entry.tid === tid)
    if (wait === undefined) return `${tid} waits, and there was no room to put on record where`
    const hold = holds.find(entry => entry.tid === holder && entry.object === wait.object)
    const holderName = waits.find(entry => entry.tid === holder)?.who ?? `${holder}`
    const since = hold === undefined ? '' : ` since\n${indent(hold.stack)}`
    return `${wait.who} waits for ${lockName(wait)}, at\n${indent(wait.stack)}\n  which ${holderName} holds${since}`
  })
  const hint =
    holds.length > 0 ? '' : '\nwhere each lock was taken is on record with Kernel.boot({ debug: true })'
  return `deadlock: each of these waits for the next, and the last for the first\n${lines.join('\n')}${hint}`
}

function isOnRecord(
  circle: readonly Link[],
  at: number,
  waits: readonly TableEntry[],
  holds: readonly TableEntry[],
): boolean {
  const holder = circle[(at + 1) % circle.length].tid
  const wait = waits.find(entry => entry.tid === circle[at].tid)
  return wait !== undefined && holds.some(({ tid, object }) => tid === holder && object === wait.object)
}

export function lockName({ kind, name, object }: TableEntry): string {
  return name === undefined ? `${kind} #${object}` : `${kind} '${name}'`
}

export function indent(stack: string): string {
  return stack
    .split('\n')
    .map(line => `    ${line.trim()}`)
    .join('\n')
}

/** The program hears of it from its kernel, or, where there is none, as a warning. */
export function tell(message: string): void {
  const { view } = here
  if (view !== null) reportDeadlock(view, message)
  else hostPlatform().warn?.(message)
}
