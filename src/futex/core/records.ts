import { float64, type Layout, LINE_WORDS, record, word, words } from '../../arena/memory/record.ts'
import { ListHead, ListNode } from '../../arena/trees/list.ts'
import { RcuNode } from '../../arena/sync/rcu.ts'
import { Lock } from '../../arena/sync/spinlock.ts'

/**
 * The nouns. A **space** is a group of threads and tasks that share mappings, as a process does. A
 * **mapping** is a SharedArrayBuffer as one space sees it; its **backing** is the buffer itself, one for all
 * spaces. A **futex** is the queue of one word: of a mapping's word when the call is private, of the
 * backing's when it is shared, so two mappings of one buffer share their shared futexes and not their private
 * ones. A futex exists while someone waits at it.
 */
export const Space: Layout<'lock' | 'alive' | 'mappings'> = record('space', {
  lock: words(Lock.words),
  alive: word,
  mappings: word,
})

export const Backing: Layout<'alive' | 'mappings'> = record('backing', { alive: word, mappings: word })

export const Mapping: Layout<'alive' | 'space' | 'backing' | 'bytes'> = record('mapping', {
  alive: word,
  space: word,
  backing: word,
  bytes: word,
})

/**
 * `state`: ALIVE from creation; DEAD from when its last waiter has left, or its owner was unmapped. Written
 * under `lock`. A dead futex is passed over by whoever meets it, and freed through RCU. `chain` links the
 * futexes of a bucket, under the bucket's lock.
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
   * The pi state: the owner record of the lock's holder; 0 while nothing waits for it as a lock, and while
   * the lock is pending.
   */
  pi: word,
  /**
   * On that owner's list of locks that others wait for, and the best priority among them; under the owner's
   * lock.
   */
  contended: words(ListNode.words),
  topPriority: word,
  /** 1: the lock is pending, and its word says less than the priority of its top waiter (boost.ts). */
  boosted: word,
})

/** The number of the RCU callback that gives a futex's slot back; the scheduler's numbers come before it. */
export const FREE_FUTEX = 8

export const ALIVE = 1
export const DEAD = 2

const PARCEL_WORDS = 4

/**
 * One wait at one futex. `queue` says where it is, and everyone who decides its fate decides it by writing
 * this word:
 *
 *   a futex   [1] queued there; written under that futex's lock
 *   QUEUE_MOVING    [2] taken off one queue and not yet on the next; only for as long as a requeue takes
 *   QUEUE_WOKEN     [3] off the queue for good, by a wake. Nobody but the sleeper touches the waiter from here on
 *   QUEUE_ENDED     [4] off the queue for good, because its mapping went away
 *   0         [5] off the queue by the sleeper itself: timeout, signal, cancellation
 *   QUEUE_RESTARTED [6] off the queue because a thread died in the middle of changing it: the sleeper begins its call anew
 *
 * `sleeper` is the waiter whose `signal` the sleeper sleeps at: itself, or the first of a vector.
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
  | 'who'
  | 'called'
  | 'since'
  | 'target'
  | 'targetIndex'
  | 'claim'
  | 'parcel'
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
  /** PI_ below: what it waits for, if not for a wake. */
  pi: word,
  thread: word,
  /** The owner record of who waits, for the pi calls. */
  who: word,
  /**
   * 1: the lock that it waits for is pending, and it is to come and take it (pending.ts). Set and cleared
   * under the futex's lock.
   */
  called: word,
  /**
   * When it began to wait for the lock, in whole milliseconds; INSISTS once it has lost the lock to equals
   * for too long. Under the futex's lock.
   */
  since: word,
  /** PI_REQUEUE: the key of the only word that it may be moved to. */
  target: word,
  targetIndex: word,
  /** Of a sleeper: which of its waiters was served, from 1; 0: none yet. Only where one of several may be. */
  claim: word,
  /**
   * What is handed over to it or by it, in the words of who walks the queue. Its first word is 0 while
   * nothing is, and in a free record: HEAP_PARCEL there says that the second names a block of the kernel's
   * heap, which is the waiter's.
   */
  parcel: words(PARCEL_WORDS),
})

/** `since` of a waiter that gets the lock at the next unlock. */
export const INSISTS = -1

/** Waits for a wake. */
export const PI_NONE = 0
/** Waits to own the lock that its word is. */
export const PI_LOCK = 1
/** Waits to be moved to a word that is such a lock. A plain wake must meet neither this nor the last. */
export const PI_REQUEUE = 2
/** Was made the owner by a thread that cannot see the word: the new owner writes it. */
export const PI_UNWRITTEN = 3

/** The first word of a parcel that owns a block of the kernel's heap. */
export const HEAP_PARCEL = 9

export const QUEUE_NONE = 0
export const QUEUE_WOKEN = -1
export const QUEUE_ENDED = -2
export const QUEUE_RESTARTED = -3
const QUEUE_MOVING = -16

/** QUEUE_MOVING, with who moves it: should that thread die, its waiters can be told from another's. */
export function movingBy(thread: number): number {
  return QUEUE_MOVING - thread
}

export function moverOf(queue: number): number {
  return QUEUE_MOVING - queue
}

export function isMoving(queue: number): boolean {
  return queue <= QUEUE_MOVING
}

/** Who sleeps: a thread in `Atomics.wait`, a promise of `Atomics.waitAsync`, a task in the scheduler. */
export const THREAD = 0
export const PROMISE = 1
export const TASK = 2

/** A bucket of the table of futexes, a line each. `waiters` counts those that wait or are about to. */
export const Bucket: Layout<'lock' | 'first' | 'waiters' | 'boosted' | 'rest'> = record('bucket', {
  lock: words(Lock.words),
  first: word,
  waiters: word,
  /** How many of its futexes are boosted (boost.ts). */
  boosted: word,
  rest: words(LINE_WORDS - Lock.words - 3),
})

/**
 * Whoever can own a lock: a task, a thread, or one flow of async code, of which a thread can have many. The
 * TID in a word is made of the record's number and of how many lives it has had, so a dead owner's TID finds
 * no record.
 *
 *   guarded by `lock`        blockedOn, contended, state; and the three priorities of those that are not tasks
 *   its owner's alone        the robust list's place; wants, wantsAt and wantsSince, which others read
 *   whoever ends it          exiter
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
  /** 0: nobody. */
  tid: word,
  lives: word,
  state: word,
  /** The thread that ends it, plus one. */
  exiter: word,
  kind: word,
  task: word,
  /** The thread that it dies with; -1 for a task, which dies by itself. */
  thread: word,
  /** The waiter with which it waits to own a lock; 0: it does not. */
  blockedOn: word,
  /** The futexes that it owns and others wait for. */
  contended: words(ListHead.words),
  basePriority: word,
  inherited: word,
  priority: word,
  /** Where the head of its robust list is, a pointer as robust.ts has them; 0: none. */
  robust: float64,
  /** A head for those that bring none of their own. */
  head: { words: 6, align: 2, ownLine: false },
  /**
   * Of one that has waited for long for a lock (sync/debug/longwait.ts): the TID of the lock's holder, when
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
