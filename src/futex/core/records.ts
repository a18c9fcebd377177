import { float64, type Layout, LINE_WORDS, record, word, words } from '../../arena/memory/record.ts'
import { ListHead, ListNode } from '../../arena/trees/list.ts'
import { RcuNode } from '../../arena/sync/rcu.ts'
import { Lock } from '../../arena/sync/spinlock.ts'

/**
 * A **space** is a group of threads and tasks that share mappings, as a process does. A **mapping** is a
 * SharedArrayBuffer in one space; its **backing** is the buffer itself, one for all spaces. A **futex** is
 * the queue of one word: of a mapping's word for a private call, of the backing's word for a shared call. So
 * two mappings of one buffer have the same shared futexes, but different private ones. A futex exists while
 * it has waiters.
 */
export const Space: Layout<'lock' | 'mappings'> = record('space', {
  lock: words(Lock.words),
  mappings: word,
})

export const Backing: Layout<'alive' | 'mappings'> = record('backing', { alive: word, mappings: word })

export const Mapping: Layout<'alive' | 'space' | 'backing'> = record('mapping', {
  alive: word,
  space: word,
  backing: word,
})

/**
 * `state`: ALIVE from creation; DEAD after its last waiter has left, or its owner was unmapped. Written under
 * `lock`. A thread that finds a dead futex ignores it; RCU frees it. `chain` links the futexes of a bucket,
 * under the bucket's lock.
 */
export const Futex: Layout<
  | 'lock'
  | 'waiters'
  | 'owner'
  | 'index'
  | 'state'
  | 'chain'
  | 'bucket'
  | 'rcu'
  | 'pi'
  | 'contended'
  | 'topPriority'
  | 'boosted'
> = record('futex', {
  lock: words(Lock.words),
  waiters: words(ListHead.words),
  owner: word,
  index: word,
  state: word,
  chain: word,
  bucket: word,
  rcu: words(RcuNode.words),
  /**
   * The pi state: the owner record of the lock's holder; 0 while no owner waits for it as a lock, and while
   * the lock is pending.
   */
  pi: word,
  /**
   * The node in its owner's list of contended locks, and the best priority of its waiters; under the owner's
   * lock.
   */
  contended: words(ListNode.words),
  topPriority: word,
  /** 1: the lock is pending, and the priority in its word is too low for its top waiter (boost.ts). */
  boosted: word,
})

/** The number of the RCU callback that frees the slot of a futex; the scheduler uses the lower numbers. */
export const FREE_FUTEX = 8

export const ALIVE = 1
export const DEAD = 2

const HANDOVER_WORDS = 4

/**
 * One wait at one futex. Its `queue` word is its state, and every thread decides the wait by writing this
 * word:
 *
 *   a futex             [1] queued there; written under that futex's lock
 *   QUEUE_MOVING        [2] off one queue and not yet on the next, while a requeue runs
 *   QUEUE_WOKEN         [3] off the queue, by a wake. From now on only the sleeper accesses the waiter
 *   QUEUE_ENDED         [4] off the queue, because its mapping was unmapped
 *   0                   [5] off the queue by the sleeper itself: timeout, signal, cancellation
 *   QUEUE_RESTARTED     [6] off the queue, because a thread died while it changed it: the sleeper
 *                           restarts its call
 *
 * `sleeper` is the waiter whose `signal` word the sleeper sleeps at: itself, or the first of a vector.
 */
export const Waiter: Layout<
  | 'links'
  | 'queue'
  | 'bitset'
  | 'priority'
  | 'order'
  | 'sleeper'
  | 'signal'
  | 'kind'
  | 'task'
  | 'pi'
  | 'thread'
  | 'lockOwner'
  | 'called'
  | 'since'
  | 'target'
  | 'targetIndex'
  | 'claim'
  | 'handover'
> = record('waiter', {
  links: words(ListNode.words),
  queue: word,
  bitset: word,
  priority: word,
  order: word,
  sleeper: word,
  signal: word,
  kind: word,
  task: word,
  /** PI_…: the purpose of the wait, if it is not for a wake. */
  pi: word,
  thread: word,
  /** The owner record of the waiting owner, for the pi calls. */
  lockOwner: word,
  /**
   * 1: the lock that it waits for is pending, and it is called to take it (pending.ts). Written under the
   * futex's lock.
   */
  called: word,
  /**
   * When it began to wait for the lock, in whole milliseconds; STARVING once it has lost the lock to equals
   * for too long. Under the futex's lock.
   */
  since: word,
  /** PI_REQUEUE: the key of the only word that it may be moved to. */
  target: word,
  targetIndex: word,
  /** For a sleeper with several waiters: which of them was served, from 1; 0: none yet. */
  claim: word,
  /**
   * Values that are handed over to the waiter or by it; the walker of the queue defines them. The first word
   * is 0 while there are none, and in a free record. HEAP_HANDOVER there says that the second word is a block
   * of the kernel's heap, which the waiter owns.
   */
  handover: words(HANDOVER_WORDS),
})

/** `since` of a waiter that gets the lock at the next unlock. */
export const STARVING = -1

/** It waits for a wake. */
export const PI_NONE = 0
/** It waits to own the lock of the word. */
export const PI_LOCK = 1
/** It waits to be moved to the word of such a lock. A plain wake must meet neither this nor PI_LOCK. */
export const PI_REQUEUE = 2

/** The first word of a handover that owns a block of the kernel's heap. */
export const HEAP_HANDOVER = 9

export const QUEUE_NONE = 0
export const QUEUE_WOKEN = -1
export const QUEUE_ENDED = -2
export const QUEUE_RESTARTED = -3
const QUEUE_MOVING = -16

/** QUEUE_MOVING with the number of the moving thread: if that thread dies, its waiters can be found. */
export function movingBy(thread: number): number {
  return QUEUE_MOVING - thread
}

export function moverOf(queue: number): number {
  return QUEUE_MOVING - queue
}

export function isMoving(queue: number): boolean {
  return queue <= QUEUE_MOVING
}

/**
 * The kinds of sleeper: a thread in `Atomics.wait`, a promise of `Atomics.waitAsync`, a task in the
 * scheduler.
 */
export const THREAD = 0
export const PROMISE = 1
export const TASK = 2

/**
 * A bucket of the table of futexes, on its own cache line. `waiters` counts threads that wait or are about to
 * wait.
 */
export const Bucket: Layout<'lock' | 'first' | 'waiters' | 'boosted' | 'padding'> = record('bucket', {
  lock: words(Lock.words),
  first: word,
  waiters: word,
  /** The number of its boosted futexes (boost.ts). */
  boosted: word,
  padding: words(LINE_WORDS - Lock.words - 3),
})

/**
 * An owner of locks: a task, a thread, or one flow of async code, of which a thread can have many. The TID in
 * a word consists of the record's number and of the count of its lives, so the TID of a dead owner finds no
 * record.
 *
 *   guarded by `lock`        blockedOn, contended, state; the three priorities of owners that are not tasks
 *   written by the owner     the robust list's position; wants, wantsAt and wantsSince, which others read
 *   written by its ender     exiter
 *
 * `state`: OWNER_FREE, OWNER_ALIVE, OWNER_EXITING while its locks are passed on, OWNER_DEAD until its slot is
 * free.
 */
export const Owner: Layout<
  | 'lock'
  | 'tid'
  | 'lives'
  | 'state'
  | 'exiter'
  | 'kind'
  | 'task'
  | 'thread'
  | 'blockedOn'
  | 'contended'
  | 'basePriority'
  | 'inherited'
  | 'priority'
  | 'robust'
  | 'head'
  | 'wants'
  | 'wantsAt'
  | 'wantsSince'
> = record('owner', {
  lock: words(Lock.words),
  /** 0: no owner. */
  tid: word,
  lives: word,
  state: word,
  /** The thread that ends the owner, plus one. */
  exiter: word,
  kind: word,
  task: word,
  /** The thread that the owner dies with; -1 for a task, which has its own end. */
  thread: word,
  /** The waiter with which the owner waits for a lock; 0: it does not wait. */
  blockedOn: word,
  /** The futexes that it owns and others wait for. */
  contended: words(ListHead.words),
  basePriority: word,
  inherited: word,
  priority: word,
  /** The head of its robust list, a pointer as in robust.ts; 0: none. */
  robust: float64,
  /** A head for owners that do not bring their own. */
  head: { words: 6, align: 2, ownLine: false },
  /**
   * For an owner that has waited long for a lock (sync/debug/longwait.ts): the TID of the lock's holder, when
   * that was read, and since when it waits.
   */
  wants: word,
  wantsAt: word,
  wantsSince: word,
})

export const OWNER_FREE = 0
export const OWNER_ALIVE = 1
export const OWNER_EXITING = 2
export const OWNER_DEAD = 3
