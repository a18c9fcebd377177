import { initList, isListed, ListNode, listPush } from '../../arena/trees/list.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { acquire, breakLock, Lock, nudgeLock, release } from '../../arena/sync/spinlock.ts'
import type { KernelThread } from '../../arena/sync/thread.ts'
import { adoptCallbacks } from '../../sched/balance/hotplug.ts'
import type { FutexContext } from '../core/context.ts'
import { endOwner } from './exit.ts'
import { findOwner, FUTEX_TID_MASK } from '../core/owner.ts'
import { detachOwner, inherit, unblock, walkChain } from '../pi/pichain.ts'
import { endMove, enqueue, takeOff, wakeAll } from '../core/queue.ts'
import {
  Bucket,
  DEAD,
  QUEUE_ENDED,
  Futex,
  Mapping,
  movingBy,
  Owner,
  OWNER_ALIVE,
  OWNER_DEAD,
  OWNER_EXITING,
  PI_NONE,
  QUEUE_RESTARTED,
  Space,
  Waiter,
  QUEUE_WOKEN,
} from '../core/records.ts'
import { restartObjects } from './restartobjects.ts'
import { signalLater } from '../core/signal.ts'
import { retire, unlockFutexUnlessDead } from '../core/table.ts'
import { freeWaiter, giveUpParcel, MATCH_ANY, wakeKey } from '../operations/waitwake.ts'

/**
 * After a thread has died, at whatever step of whatever call: its locks are broken and what they guarded is
 * rebuilt, its own waits leave their queues, and whoever it was about to wake is woken. Runs on any other
 * thread; others may make calls meanwhile.
 *
 *   structure           what is always true of it          rebuilt from
 *   count of a space    a mapping is alive or not           the mappings that name the space
 *   chain of a bucket   it is whole                         left as it is, but for a futex that was only just being made
 *   queue of a futex    a waiter's queue word               the waiters whose word names the futex, by priority and order
 *   lock of a slot      it outlives what is made there      free, unless something is there
 *   waiters of bucket   never too low                       left as it is: one too many costs a look
 *   pi state of a futex the word                            by its waiters: each begins its call anew
 *   an owner's list     a futex's owner word                the futexes that name the owner
 *
 * Who waited for a pi lock whose futex was being changed finds out from the word alone what came of it: it
 * says that the lock is its own, or another's, or that of an owner that is no more, and then the first to see
 * it takes it. So nothing has to be guessed here of what the dead thread had meant to do.
 *
 * A waiter that the dead thread was moving is woken: a wakeup for nothing is allowed, a sleeper that nobody
 * will wake is not.
 */
export function recoverFutexes(context: FutexContext, dead: number): void {
  const { i32, layout } = context
  context.rcu.offline(i32, dead)
  context.enter()
  for (let space = layout.spaces.after(i32, 0); space !== 0; space = layout.spaces.after(i32, space)) {
    repairSpace(context, space, dead)
  }
  for (let at = 0; at < layout.buckets; at++)
    repairBucket(context, layout.table.start + at * Bucket.words, dead)
  for (let owner = layout.owners.after(i32, 0); owner !== 0; owner = layout.owners.after(i32, owner)) {
    repairOwner(context, owner, dead)
  }
  for (let futex = layout.futexes.after(i32, 0); futex !== 0; futex = layout.futexes.after(i32, futex)) {
    if (layout.futexes.isPublished(i32, futex)) repairQueue(context, futex, dead)
  }
  freeSlots(context, dead)
  for (let waiter = layout.waiters.after(i32, 0); waiter !== 0; waiter = layout.waiters.after(i32, waiter)) {
    settleWaiter(context, waiter, dead)
  }
  endOwners(context, dead)
  takeOrphans(context)
  restartObjects(context)
  context.leave()
  layout.waiters.reclaim(i32, dead)
  layout.owners.reclaim(i32, dead)
  layout.futexes.reclaim(i32, dead)
  layout.mappings.reclaim(i32, dead)
  layout.backings.reclaim(i32, dead)
  adoptAndRetire(context, dead)
  // Last of all: they find everything as it should be.
  wakeAll(context)
}

const NONE: ReadonlySet<number> = new Set()

/**
 * What the dead thread was to free when nobody looks at it any more is freed by this one; and what it had
 * found DEAD, and not got that far with.
 */
function adoptAndRetire(context: FutexContext, dead: number): void {
  const { i32, thread, layout, rcu, scheduler } = context
  if (scheduler !== undefined && dead < scheduler.cpus) adoptCallbacks(scheduler, dead)
  else rcu.adopt(thread, dead)
  // Whatever was on its list is another's from here on: what is left in its name is on no list.
  for (let futex = layout.futexes.after(i32, 0); futex !== 0; futex = layout.futexes.after(i32, futex)) {
    if (!layout.futexes.isPublished(i32, futex) || Atomics.load(i32, futex + Futex.state) !== DEAD) continue
    if (rcu.leftBy(i32, futex + Futex.rcu, dead, NONE)) retire(context, futex, true)
  }
}

const SPACE = lockRank('space')
const TABLE = lockRank('futex table')
const QUEUE = lockRank('futex queue')
const OWNER = lockRank('lock owner')

/**
 * A thread waits at this lock, whose holder is dead: breaks it, and repairs what it guards. It may hold locks
 * that are outer to it. False: it is no lock of this layer.
 */
export function rescueFutexLock(context: FutexContext, dead: number, lock: number): boolean {
  switch (context.i32[lock + Lock.rank]) {
    case SPACE:
      repairSpace(context, lock - Space.lock, dead)
      return true
    case TABLE:
      repairBucket(context, lock - Bucket.lock, dead)
      return true
    case QUEUE:
      if (context.layout.futexes.isPublished(context.i32, lock - Futex.lock))
        repairQueue(context, lock - Futex.lock, dead)
      else freeLock(context.thread, lock, dead)
      return true
    case OWNER:
      repairOwner(context, lock - Owner.lock, dead)
      return true
    default:
      return false
  }
}

/** Counts the mappings of a space again. */
function repairSpace(context: FutexContext, space: number, dead: number): void {
  const { i32, thread, layout } = context
  const lock = space + Space.lock
  if (!breakLock(thread, lock, dead)) {
    nudgeLock(i32, lock)
    return
  }
  let mappings = 0
  for (
    let mapping = layout.mappings.after(i32, 0);
    mapping !== 0;
    mapping = layout.mappings.after(i32, mapping)
  ) {
    if (!layout.mappings.isPublished(i32, mapping) || i32[mapping + Mapping.space] !== space) continue
    if (Atomics.load(i32, mapping + Mapping.alive) !== 0) mappings++
  }
  i32[space + Space.mappings] = mappings
  release(thread, lock)
}

/**
 * The chain is whole at every step of whoever changes it: a futex comes and goes with one write. One that the
 * dead thread had put there and not settled is taken off: reclaim frees it. Those that are DEAD stay, for
 * whoever is about to take them off.
 */
function repairBucket(context: FutexContext, bucket: number, dead: number): void {
  const { i32, thread, layout } = context
  const lock = bucket + Bucket.lock
  if (!breakLock(thread, lock, dead)) {
    nudgeLock(i32, lock)
    return
  }
  const first = i32[bucket + Bucket.first]
  if (first !== 0 && !layout.futexes.isPublished(i32, first))
    i32[bucket + Bucket.first] = i32[first + Futex.chain]
  release(thread, lock)
}

function repairQueue(context: FutexContext, futex: number, dead: number): void {
  const { i32, thread, layout } = context
  const lock = futex + Futex.lock
  if (!breakLock(thread, lock, dead)) {
    nudgeLock(i32, lock)
    return
  }
  const waiters: number[] = []
  for (let waiter = layout.waiters.after(i32, 0); waiter !== 0; waiter = layout.waiters.after(i32, waiter)) {
    if (Atomics.load(i32, waiter + Waiter.queue) === futex) waiters.push(waiter)
  }
  waiters.sort((a, b) => (i32[a + Waiter.order] - i32[b + Waiter.order]) | 0)
  initList(i32, futex + Futex.waiters)
  for (const waiter of waiters) {
    for (let field = 0; field < ListNode.words; field++) i32[waiter + Waiter.links + field] = 0
    if (i32[waiter + Waiter.pi] === PI_NONE) enqueue(context, futex, waiter)
    else restart(context, futex, waiter)
  }
  detachOwner(context, futex)
  unlockFutexUnlessDead(context, futex)
}

/**
 * The locks of slots that have no futex or owner: the dead thread was making one there, or freeing it, or had
 * come by an old handle (lockIfKey). A slot's lock outlives its records, so left as it is it would meet
 * whoever makes the next one there: a thread of the same id as one that it holds already.
 */
function freeSlots({ i32, thread, layout: { futexes, owners } }: FutexContext, dead: number): void {
  for (let futex = futexes.afterUsed(i32, 0); futex !== 0; futex = futexes.afterUsed(i32, futex)) {
    if (!futexes.isPublished(i32, futex)) freeLock(thread, futex + Futex.lock, dead)
  }
  for (let owner = owners.afterUsed(i32, 0); owner !== 0; owner = owners.afterUsed(i32, owner)) {
    if (!owners.isAllocated(i32, owner)) freeLock(thread, owner + Owner.lock, dead)
  }
}

/** Breaks a lock that guards nothing just now. */
function freeLock(thread: KernelThread, lock: number, dead: number): void {
  if (breakLock(thread, lock, dead)) release(thread, lock)
}

/**
 * The waiter is off the queue, and its sleeper begins anew, once everything is as it should be: until then it
 * is on its way from one queue to another. The futex is locked, and the waiter on no list.
 */
function restart(context: FutexContext, futex: number, waiter: number): void {
  const { i32, thread } = context
  unblock(context, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  Atomics.store(i32, waiter + Waiter.queue, movingBy(thread.id))
  context.restarts.push(waiter)
}

/** Puts an owner's list together again, from the futexes that name it. */
function repairOwner(context: FutexContext, owner: number, dead: number): void {
  const { i32, thread, layout } = context
  const lock = owner + Owner.lock
  if (!breakLock(thread, lock, dead)) {
    nudgeLock(i32, lock)
    return
  }
  const head = owner + Owner.contended
  initList(i32, head)
  for (let futex = layout.futexes.after(i32, 0); futex !== 0; futex = layout.futexes.after(i32, futex)) {
    if (!layout.futexes.isPublished(i32, futex)) continue
    const node = futex + Futex.contended
    if (i32[node + ListNode.list] === head) i32[node + ListNode.list] = 0
    if (Atomics.load(i32, futex + Futex.pi) !== owner || isListed(i32, node)) continue
    listPush(i32, head, node)
  }
  inherit(context, owner, true)
  release(thread, lock)
}

/**
 * The owners that died with the thread, and those that it was ending, end; the others inherit what they
 * should.
 */
function endOwners(context: FutexContext, dead: number): void {
  const { i32, thread, layout } = context
  for (let owner = layout.owners.after(i32, 0); owner !== 0; owner = layout.owners.after(i32, owner)) {
    acquire(thread, owner + Owner.lock)
    const state = Atomics.load(i32, owner + Owner.state)
    const alive = state === OWNER_ALIVE
    const left = (state === OWNER_EXITING || state === OWNER_DEAD) && i32[owner + Owner.exiter] === dead + 1
    if (left) i32[owner + Owner.exiter] = 0
    const ends = left || (alive && i32[owner + Owner.thread] === dead)
    if (alive && !ends) inherit(context, owner, true)
    release(thread, owner + Owner.lock)
    if (ends) endOwner(context, owner)
    else if (alive) walkChain(context, owner)
  }
}

/**
 * Wakes those who sleep at a mutex without inheritance that nobody will let go: its owner is no more, or has
 * let go and died before it woke anyone. They look again, and find out. After the tasks of a CPU that died
 * have been ended (exitTaskOwner), once more.
 */
export function wakeOrphans(context: FutexContext): void {
  takeOrphans(context)
  context.enter()
  restartObjects(context)
  context.leave()
  wakeAll(context)
}

function takeOrphans(context: FutexContext): void {
  const { i32, thread, layout } = context
  context.enter()
  for (let waiter = layout.waiters.after(i32, 0); waiter !== 0; waiter = layout.waiters.after(i32, waiter)) {
    const futex = Atomics.load(i32, waiter + Waiter.queue)
    if (futex <= 0) continue
    acquire(thread, futex + Futex.lock)
    const sleeps = Atomics.load(i32, waiter + Waiter.queue) === futex
    const wants = sleeps && i32[waiter + Waiter.who] !== 0 && i32[waiter + Waiter.pi] === PI_NONE
    const key = i32[futex + Futex.owner]
    const index = i32[futex + Futex.index]
    release(thread, futex + Futex.lock)
    if (!wants) continue
    const mapped = context.buffers.get(key)
    // A word that this thread cannot see: whoever waits there can, and looks again.
    const tid = mapped?.isBacked(i32) ? Atomics.load(mapped.i32, index) & FUTEX_TID_MASK : 0
    if (tid === 0 || findOwner(context, tid) === 0) wakeKey(context, key, index, 0x7fff_ffff, MATCH_ANY)
  }
  context.leave()
}

function settleWaiter(context: FutexContext, waiter: number, dead: number): void {
  const { i32, layout } = context
  const queue = Atomics.load(i32, waiter + Waiter.queue)
  // Not by what the waiter says: one that is just being made does not say anything yet.
  const own = layout.waiters.allocatedBy(i32, waiter) === dead
  if (queue === movingBy(dead)) {
    const sleeper = Atomics.load(i32, waiter + Waiter.sleeper)
    if (endMove(context, waiter, queue)) signalLater(context, sleeper)
  } else if (own && queue > 0) {
    takeOff(context, waiter)
  } else if (
    queue === QUEUE_WOKEN ||
    queue === QUEUE_ENDED ||
    queue === QUEUE_RESTARTED ||
    Atomics.load(i32, waiter + Waiter.called) !== 0
  ) {
    // The dead thread may have been the one to signal it. Once more does no harm, even to the slot's next
    // life.
    signalLater(context, Atomics.load(i32, waiter + Waiter.sleeper))
  }
  if (own) {
    giveUpParcel(context, waiter)
    freeWaiter(context, waiter)
  }
}
