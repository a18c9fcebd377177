import { CONTENDED_WORDS } from '../memory/arena.ts'
import { assert, fail } from '../assert.ts'
import { lockOrder } from './lockorder.ts'
import { pause } from './pause.ts'
import { type Layout, record, word } from '../memory/record.ts'
import type { KernelThread } from './thread.ts'

/**
 * The kernel's spin lock: spins briefly, then parks, because the operating system may deschedule the holder.
 *
 * The lock word, all four combinations:
 *
 *   owner | SLEEPERS | meaning
 *   ------+---------+--------------------------------------------------------------------------
 *     0   |    0    | [1] free
 *     0   |    1    | never: a thread that parks sets SLEEPERS beside an owner, and release stores 0
 *    tag  |    0    | [2] held by thread tag - 1, no thread parked
 *    tag  |    1    | [3] held, and a thread may be parked: release must notify
 *
 * The race that parking must not lose:
 *
 *   waiter                                  holder
 *   ------                                  ------
 *   reads [2], spins in vain
 *   (A) compare-exchange [2] -> [3]
 *                                           (B) compare-exchange [2] -> [1] fails: it sees [3]
 *                                           (C) stores [1], notifies one
 *   (D) wait(word, [3]): the word is [1],
 *       returns 'not-equal'
 *
 * If (B) came first, (A) would fail and the waiter would read the word again. A woken waiter takes the lock
 * as [3] and not [2], because other waiters may still be parked: one needless notify at worst, never a lost
 * one.
 *
 * A notify wakes one, and that one may die before it takes the lock:
 *
 *   holder                     a waiter                   another waiter
 *   ------                     --------                   --------------
 *                              (E) writes down the lock;  (D)
 *                              (D)
 *   (C) stores [1], notifies
 *                              wakes up, and dies         sleeps at a free lock
 *
 * No other thread would wake the second waiter: the lock is [1], so the next holder takes it as [2]. A holder
 * that dies between (C) and its notify leaves the same state. So each thread writes down the lock that it
 * parks at or releases (E), and the recovering thread wakes one waiter there (`nudgeContended`). One word is
 * enough: a thread that parks has made every notify that it owed, and a thread that releases a lock has taken
 * every lock that it was woken for.
 */
export const Lock: Layout<'word' | 'rank'> = record('lock', { word, rank: word })

const SLEEPERS = 0x100
const OWNER = 0xff

/** How long a thread that can see deaths waits before it checks for one: far longer than a lock is held. */
export const STUCK_MS = 2

/** Sets the lock free and gives it its place in the lock order. Before any other thread can see it. */
export function initLock(i32: Int32Array, lock: number, rank: number): void {
  assert(rank >= 0 && rank < lockOrder.length, 'a lock rank is an index into lockOrder')
  i32[lock + Lock.rank] = rank
  Atomics.store(i32, lock + Lock.word, 0)
}

/** Takes the lock; on return this thread is its owner. Not recursive. */
export function acquire(thread: KernelThread, lock: number): void {
  if (thread.debug) checkOrder(thread, lock)
  if (Atomics.compareExchange(thread.i32, lock + Lock.word, 0, thread.ownerTag) !== 0) {
    acquireContended(thread, lock)
  }
  thread.sections++
  if (thread.outerLock === 0) thread.outerLock = lock
  if (thread.debug) thread.heldLocks.push(lock)
}

/** Takes the lock if it is free. Returns whether it did. It never waits, so any order of locks is safe. */
export function tryAcquire(thread: KernelThread, lock: number): boolean {
  if (Atomics.compareExchange(thread.i32, lock + Lock.word, 0, thread.ownerTag) !== 0) return false
  thread.sections++
  if (thread.outerLock === 0) thread.outerLock = lock
  if (thread.debug) thread.heldLocks.push(lock)
  return true
}

/** Releases the lock. Only its owner may. */
export function release(thread: KernelThread, lock: number): void {
  if (thread.debug) forgetHeld(thread, lock)
  const tag = thread.ownerTag
  if (Atomics.compareExchange(thread.i32, lock + Lock.word, tag, 0) !== tag) {
    releaseContended(thread, lock) // (B)
  }
  thread.sections--
  if (thread.outerLock === lock) thread.outerLock = 0
}

function acquireContended(thread: KernelThread, lock: number): void {
  const i32 = thread.i32
  const at = lock + Lock.word
  const tag = thread.ownerTag
  const { rescuer } = thread
  // A thread that may not block spins on, and checks each time whether the holder is alive.
  for (let spin = 0; spin < thread.spins || !thread.mayBlock; spin += spin < thread.spins ? 1 : 0) {
    const seen = Atomics.load(i32, at)
    if (seen === 0) {
      if (Atomics.compareExchange(i32, at, 0, tag) === 0) return
    } else {
      if ((seen & OWNER) === tag) fail('a thread took a spin lock that it holds already')
      if (spin === thread.spins && rescuer !== null) rescuer.repairDead((seen & OWNER) - 1, lock)
      pause()
    }
  }
  Atomics.store(i32, CONTENDED_WORDS + thread.id, lock) // (E)
  // From here on this thread may have been parked beside others: it takes the lock as [3].
  for (;;) {
    const seen = Atomics.load(i32, at)
    if (seen === 0) {
      if (Atomics.compareExchange(i32, at, 0, tag | SLEEPERS) === 0) return
      continue
    }
    if ((seen & SLEEPERS) !== 0 || Atomics.compareExchange(i32, at, seen, seen | SLEEPERS) === seen) {
      // (A) above, (D) here
      if (rescuer === null) Atomics.wait(i32, at, seen | SLEEPERS)
      else if (Atomics.wait(i32, at, seen | SLEEPERS, STUCK_MS) === 'timed-out')
        rescuer.repairDead((seen & OWNER) - 1, lock)
    }
  }
}

function releaseContended(thread: KernelThread, lock: number): void {
  const at = lock + Lock.word
  const seen = Atomics.load(thread.i32, at)
  if (seen !== (thread.ownerTag | SLEEPERS)) fail('a thread released a spin lock that it does not hold')
  Atomics.store(thread.i32, CONTENDED_WORDS + thread.id, lock) // (E)
  Atomics.store(thread.i32, at, 0) // (C)
  Atomics.notify(thread.i32, at, 1)
}

/** The id of the thread that holds the lock, or -1. A snapshot: it may be stale when it is read. */
export function lockOwner(i32: Int32Array, lock: number): number {
  return (Atomics.load(i32, lock + Lock.word) & OWNER) - 1
}

/** Whether this thread holds the lock. Exact: no other thread can change the answer. */
export function holds(thread: KernelThread, lock: number): boolean {
  return lockOwner(thread.i32, lock) === thread.id
}

/**
 * Recovery only: passes a lock that the dead thread `deadId` held to this thread, which then repairs what
 * the lock guards and releases it. False if the dead thread did not hold it. Parked threads stay parked
 * until that release.
 */
export function breakLock(thread: KernelThread, lock: number, deadId: number): boolean {
  const i32 = thread.i32
  const at = lock + Lock.word
  for (;;) {
    const seen = Atomics.load(i32, at)
    if ((seen & OWNER) !== deadId + 1) return false
    // As [3]: the dead thread may have died between (C) and its notify, or a waiter may park meanwhile.
    if (Atomics.compareExchange(i32, at, seen, thread.ownerTag | SLEEPERS) === seen) {
      thread.sections++
      if (thread.outerLock === 0) thread.outerLock = lock
      if (thread.debug) thread.heldLocks.push(lock)
      return true
    }
  }
}

/**
 * Recovery only: a dead thread may leave a free lock with sleepers. Waking one is enough, as it takes the
 * lock as [3]; on a lock that is fine it is a spurious wakeup, which is harmless.
 */
export function nudgeLock(i32: Int32Array, lock: number): void {
  Atomics.notify(i32, lock + Lock.word, 1)
}

/** The same for the one lock that the dead thread may have left free with sleepers: (E). */
export function nudgeContended(i32: Int32Array, deadId: number): void {
  const lock = Atomics.load(i32, CONTENDED_WORDS + deadId)
  if (lock !== 0) nudgeLock(i32, lock)
}

/**
 * A thread that sees deaths (`stuck`) may wait for a living one that waits for a dead one:
 *
 *   a thread that sees deaths  a living thread            a dead thread
 *   -------------------------  ---------------            -------------
 *                                                         holds L2
 *                              holds L1, parks at L2
 *   parks at L1
 *
 * No other thread would break L2. So the thread that sees deaths follows (E) from the `owner` of the `lock`
 * that it wants, as long as each lock is inner to the one before: so the last lock is inner to all that the
 * caller holds, also where (E) is old. If a dead thread holds that lock, it is rescued. If it is free, it may
 * have been left with sleepers, and one of them is woken.
 */
export function rescueBehind(
  i32: Int32Array,
  owner: number,
  lock: number,
  isDead: (thread: number) => boolean,
  rescue: (dead: number, lock: number) => void,
): void {
  if (owner < 0) return
  const at = Atomics.load(i32, CONTENDED_WORDS + owner)
  if (at === 0 || !isInner(i32, at, lock)) return
  const holder = lockOwner(i32, at)
  if (holder < 0) nudgeLock(i32, at)
  else if (isDead(holder)) rescue(holder, at)
  else rescueBehind(i32, holder, at, isDead, rescue)
}

/** Whether the lock may be taken while `outer` is held. */
function isInner(i32: Int32Array, lock: number, outer: number): boolean {
  const rank = i32[lock + Lock.rank]
  const outerRank = i32[outer + Lock.rank]
  return outerRank < rank || (outerRank === rank && lockOrder[rank].sameRank === 'by address' && outer < lock)
}

function checkOrder(thread: KernelThread, lock: number): void {
  const { i32, heldLocks } = thread
  if (holds(thread, lock)) fail('recursive acquire: this thread holds the spin lock already')
  const rank = i32[lock + Lock.rank]
  for (const held of heldLocks) {
    if (isInner(i32, lock, held)) continue
    const inner = lockOrder[rank].name
    const outer = lockOrder[i32[held + Lock.rank]].name
    fail(
      `lock order: took a '${inner}' lock while holding a '${outer}' lock; the order is ${lockOrder.map(({ name }) => name).join(', ')}`,
    )
  }
}

function forgetHeld(thread: KernelThread, lock: number): void {
  if (!holds(thread, lock)) fail('foreign release: this thread does not hold the spin lock')
  const at = thread.heldLocks.lastIndexOf(lock)
  assert(at >= 0, 'a lock that is held is on the list of held locks')
  thread.heldLocks.splice(at, 1)
}
