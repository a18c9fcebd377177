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
 * Deadlocks, found by the waiters themselves. Only threads that have the lock can read from its word which
 * owner holds it, and a waiter runs no code. So each task or thread that has waited for DEADLOCK_CHECK_MS
 * publishes its wait in its own owner record, and repeats that every DEADLOCK_CHECK_MS:
 *
 *   wantsSince   the number of its wait, from the first publication; 0: it does not wait, or not for long
 *   (A) wantsAt  a number, taken before (B)
 *   (B) wants    the TID of the holder, read from the word of the lock
 *
 * Numbers increase over all threads. After that the waiter follows `wants` from owner to owner. A link from X
 * to Y counts only if Y's wait was published before X read the word: wantsSince of Y is less than wantsAt of
 * X. Then Y was waiting at (B) of X, and held the lock. A waiter unlocks nothing:
 *
 *   X                          Y, holds the lock                Z
 *   -                          -----------------                -
 *   (A) 7, (B) Y
 *                              unlocks
 *                                                               locks it
 *                              waits for X: wantsSince 8
 *   Y's wait is younger than what X read: no link. At its next check X finds Z
 *
 * The waiter follows the cycle twice. If every wait is the same in both rounds, all of them lasted in
 * between, and all links were true then: it is a deadlock. The youngest wait of the cycle reports it, once.
 * Two checks of each waiter are enough, so the deadlock is found within three times DEADLOCK_CHECK_MS after
 * the last of these waits began.
 *
 * An unlocker may hand the lock to a waiter, which is then its holder while its wait is still published. The
 * waiter does not take that for a wait for itself: `waitsForItself` says whether it held the lock before it
 * began to wait.
 *
 * A shorter wait costs a stack trace of a few frames, and an uncontended lock nothing. The waits of async
 * code are not published: it holds each lock as another owner, so no record says which owner waits for which.
 */
const CYCLE_MAX = 64

/** A lock, as the search for deadlocks sees it. */
export interface WatchedLock {
  /** The TID of its holder, or 0. */
  holder(): number
  /** Whether this TID is its holder, or one of its holders. */
  isHeldBy(tid: number): boolean
  readonly kind: string
  readonly name: string | undefined
  /** The id of the lock, which is the same on all threads. */
  objectId(context: FutexContext): number
}

export class HolderWatch implements LongWait {
  private readonly tid: number
  private readonly lock: WatchedLock
  /** The stack where the wait began: during the wait it has no frame of the program. */
  private readonly begun: Error | string
  private since = 0
  private reported = false
  /** The waiter held the lock before it began to wait for it: only then does it wait for itself. */
  private readonly waitsForItself: boolean

  private constructor(tid: number, lock: WatchedLock, waitsForItself: boolean, begun: Error | string) {
    this.tid = tid
    this.lock = lock
    this.waitsForItself = waitsForItself
    this.begun = begun
  }

  /**
   * Called before the waiter is queued: after that an unlocker may hand it the lock. `site`: of a wait that
   * began on another CPU.
   */
  static of(tid: number, lock: WatchedLock, site: string | null = null): HolderWatch {
    return new HolderWatch(tid, lock, lock.isHeldBy(tid), site ?? shortStack())
  }

  /** Where the wait began, as text. */
  get site(): string {
    return typeof this.begun === 'string' ? this.begun : siteOf(this.begun)
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
    if (holder === 0 || this.reported) return
    const cycle = findCycle(context, this.tid)
    if (cycle === null || youngestOf(cycle) !== this.tid) return
    this.reported = true
    const message = describeCycle(context, cycle)
    if (message !== null) tell(message)
  }

  /** 0 for a waiter that the unlocker made the holder, and that has not run since. */
  private holder(): number {
    const holder = this.lock.holder()
    return holder === this.tid && !this.waitsForItself ? 0 : holder
  }

  /** The wait has ended. Called before any other effect of its end. */
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
    // In debug mode the table has the wait since it began.
    if (LockTable.isOn(context)) return
    const table = new LockTable(context)
    const { kind, name } = this.lock
    const { tid } = this
    const object = this.lock.objectId(context)
    const entry = { object, tid, kind, name, who: callerName(tid), stack: this.site }
    table.locked(() => table.addWait(entry))
  }
}

interface Link {
  readonly tid: number
  readonly since: number
}

/** The cycle that this wait is part of, or null. */
function findCycle(context: FutexContext, tid: number): readonly Link[] | null {
  const first = followCycle(context, tid)
  const second = first === null ? null : followCycle(context, tid)
  if (first === null || second === null || first.length !== second.length) return null
  return first.every(({ tid: one, since }, at) => second[at].tid === one && second[at].since === since)
    ? first
    : null
}

function followCycle(context: FutexContext, origin: number): Link[] | null {
  const { i32 } = context
  const links: Link[] = []
  let tid = origin
  let record = findOwner(context, tid)
  do {
    const since = record === 0 ? 0 : Atomics.load(i32, record + Owner.wantsSince)
    if (since === 0 || links.length > CYCLE_MAX) return null
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

function youngestOf(cycle: readonly Link[]): number {
  let [youngest] = cycle
  for (const link of cycle) if (((link.since - youngest.since) | 0) > 0) youngest = link
  return youngest.tid
}

/**
 * The report. Null if debug mode has recorded every wait and every lock of the cycle, and so has reported it
 * before.
 */
function describeCycle(context: FutexContext, cycle: readonly Link[]): string | null {
  const table = new LockTable(context)
  const { waits, holds } = table.locked(() => ({ waits: table.waits(), holds: table.holds() }))
  if (LockTable.isOn(context) && cycle.every((_, at) => isRecorded(cycle, at, waits, holds))) return null
  const lines = cycle.map(({ tid }, at) => {
    const holder = cycle[(at + 1) % cycle.length].tid
    const wait = waits.find(entry => entry.tid === tid)
    if (wait === undefined) return `${tid} waits, and the table had no room for its stack`
    const hold = holds.find(entry => entry.tid === holder && entry.object === wait.object)
    const holderName = waits.find(entry => entry.tid === holder)?.who ?? `${holder}`
    const since = hold === undefined ? '' : ` since\n${indent(hold.stack)}`
    return `${wait.who} waits for ${lockName(wait)}, at\n${indent(wait.stack)}\n  which ${holderName} holds${since}`
  })
  const hint = holds.length > 0 ? '' : '\nKernel.boot({ debug: true }) also records where each lock was taken'
  return `deadlock: each of these waits for the next, and the last for the first\n${lines.join('\n')}${hint}`
}

function isRecorded(
  cycle: readonly Link[],
  at: number,
  waits: readonly TableEntry[],
  holds: readonly TableEntry[],
): boolean {
  const holder = cycle[(at + 1) % cycle.length].tid
  const wait = waits.find(entry => entry.tid === cycle[at].tid)
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

/** Reports through the kernel of this thread; outside of a kernel, as a warning of the process. */
export function tell(message: string): void {
  const { view } = here
  if (view !== null) reportDeadlock(view, message)
  else hostPlatform().warn?.(message)
}
