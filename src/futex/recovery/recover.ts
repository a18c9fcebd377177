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
import { freeWaiter, giveUpHandover, MATCH_ANY, wakeKey } from '../operations/waitwake.ts'

/**
 * Recovery after a thread has died at any step of any call: its locks are broken and the data that they
 * guarded is rebuilt, its own waits leave their queues, and the waiters that it was about to wake are woken.
 * Runs on any other thread, while others make calls.
 *
 *   structure           invariant                          rebuilt from
 *   count of a space    a mapping is alive or not           the mappings that name the space
 *   chain of a bucket   it is whole                         unchanged, except for a futex under construction
 *   queue of a futex    a waiter's queue word               the waiters whose word names it, in order
 *   lock of a slot      it outlives the slot's records      free, unless the slot is in use
 *   waiters of bucket   never too low                       unchanged: a count too high costs one lookup
 *   pi state of a futex the word                            by its waiters: each restarts its call
 *   an owner's list     a futex's owner word                the futexes that name the owner
 *
 * A waiter for a pi lock whose futex was being changed learns the result from the word alone: the word names
 * the waiter's owner, or another one, or one that has ended, and then the first reader takes it. So recovery
 * does not have to guess what the dead thread was about to do.
 *
 * A waiter that the dead thread was moving is woken: a spurious wakeup is allowed, a sleeper that no thread
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
  // Last of all: the woken sleepers find consistent data.
  wakeAll(context)
}

const NONE: ReadonlySet<number> = new Set()

/**
 * This thread takes over the RCU callbacks of the dead one, and retires the futexes that it had marked DEAD.
 */
function adoptAndRetire(context: FutexContext, dead: number): void {
  const { i32, thread, layout, rcu, scheduler } = context
  if (scheduler !== undefined && dead < scheduler.cpus) adoptCallbacks(scheduler, dead)
  else rcu.adopt(thread, dead)
  // The callbacks on its list now belong to this thread: a futex left in its name is on no list.
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
 * A thread waits for this lock, whose holder is dead: breaks the lock, and repairs the data that it guards.
 * The caller may hold locks of lower rank. False: it is not a lock of this layer.
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
 * The chain is whole at every step: one write links or unlinks a futex. A futex that the dead thread had
 * linked and not published is unlinked; reclaim frees it. DEAD ones stay: the thread that marked them unlinks
 * them.
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
 * The locks of slots without a futex or owner: the dead thread was creating or freeing one there, or came by
 * an old handle (lockIfKey). A slot's lock outlives its records. Left held, it would block the next creator
 * there.
 */
function freeSlots({ i32, thread, layout: { futexes, owners } }: FutexContext, dead: number): void {
  for (let futex = futexes.afterUsed(i32, 0); futex !== 0; futex = futexes.afterUsed(i32, futex)) {
    if (!futexes.isPublished(i32, futex)) freeLock(thread, futex + Futex.lock, dead)
  }
  for (let owner = owners.afterUsed(i32, 0); owner !== 0; owner = owners.afterUsed(i32, owner)) {
    if (!owners.isAllocated(i32, owner)) freeLock(thread, owner + Owner.lock, dead)
  }
}

/** Breaks a lock that guards no data at this time. */
function freeLock(thread: KernelThread, lock: number, dead: number): void {
  if (breakLock(thread, lock, dead)) release(thread, lock)
}

/**
 * The waiter is off the queue, and its sleeper restarts at the end of recovery: until then the waiter is
 * marked as moving. The futex is locked, and the waiter is on no list.
 */
function restart(context: FutexContext, futex: number, waiter: number): void {
  const { i32, thread } = context
  unblock(context, waiter)
  Atomics.sub(i32, i32[futex + Futex.bucket] + Bucket.waiters, 1)
  Atomics.store(i32, waiter + Waiter.queue, movingBy(thread.id))
  context.restarts.push(waiter)
}

/** Rebuilds an owner's list from the futexes that name it. */
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
 * Ends the owners that died with the thread, and those that it was ending. The others recompute their
 * inherited priorities.
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
 * Wakes the waiters of mutexes without inheritance that no thread will unlock: the owner has ended, or has
 * unlocked and died before it woke a waiter. They check their lock again. Called once more after the tasks of
 * a dead CPU have been ended (exitTaskOwner).
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
    const wants = sleeps && i32[waiter + Waiter.lockOwner] !== 0 && i32[waiter + Waiter.pi] === PI_NONE
    const key = i32[futex + Futex.owner]
    const index = i32[futex + Futex.index]
    release(thread, futex + Futex.lock)
    if (!wants) continue
    const mapped = context.buffers.get(key)
    // This thread cannot access the word: its waiters can, and check again.
    const tid = mapped?.isBacked(i32) ? Atomics.load(mapped.i32, index) & FUTEX_TID_MASK : 0
    if (tid === 0 || findOwner(context, tid) === 0) wakeKey(context, key, index, 0x7fff_ffff, MATCH_ANY)
  }
  context.leave()
}

function settleWaiter(context: FutexContext, waiter: number, dead: number): void {
  const { i32, layout } = context
  const queue = Atomics.load(i32, waiter + Waiter.queue)
  // Not by the waiter's own words: one under construction has none yet.
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
    // The dead thread may have been about to signal it. A second signal is harmless, even to the slot's next
    // life.
    signalLater(context, Atomics.load(i32, waiter + Waiter.sleeper))
  }
  if (own) {
    giveUpHandover(context, waiter)
    freeWaiter(context, waiter)
  }
}
