import { type Layout, LINE_WORDS, record, word, words } from '../arena/record.ts'
import { ListHead, ListNode } from '../arena/list.ts'
import { RcuNode } from '../arena/rcu.ts'
import { Lock } from '../arena/spinlock.ts'

/**
 * The nouns. A **space** is a group of threads and tasks that share mappings, as a process does. A **mapping** is a
 * SharedArrayBuffer as one space sees it; its **backing** is the buffer itself, one for all spaces. A **futex** is the queue
 * of one word: of a mapping's word when the call is private, of the backing's when it is shared, so two mappings of one
 * buffer share their shared futexes and not their private ones. A futex exists while someone waits at it.
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
 * `state`: ALIVE from creation; DEAD from when its last waiter has left, or its owner was unmapped. Written under `lock`.
 * A dead futex is passed over by whoever meets it, and freed through RCU. `chain` links the futexes of a bucket,
 * under the bucket's lock.
 */
export const Futex: Layout<
  'lock' | 'waiters' | 'owner' | 'index' | 'state' | 'chain' | 'bucket' | 'rcu' | 'pi'
> = record('futex', {
  lock: words(Lock.words),
  waiters: words(ListHead.words),
  owner: word,
  index: word,
  state: word,
  chain: word,
  bucket: word,
  rcu: words(RcuNode.words),
  /** The pi state of the word, 0 for a plain futex. */
  pi: word,
})

export const ALIVE = 1
export const DEAD = 2

/**
 * One wait at one futex. `queue` says where it is, and everyone who decides its fate decides it by writing this word:
 *
 *   a futex   [1] queued there; written under that futex's lock
 *   MOVING    [2] taken off one queue and not yet on the next; only for as long as a requeue takes
 *   WOKEN     [3] off the queue for good, by a wake. Nobody but the sleeper touches the waiter from here on
 *   ENDED     [4] off the queue for good, because its mapping went away
 *   0         [5] off the queue by the sleeper itself: timeout, signal, cancellation
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
  /** Not 0: it waits for the pi lock of another word, or for this one's; a plain wake must not meet it. */
  pi: word,
  thread: word,
})

export const OFF = 0
export const WOKEN = -1
export const ENDED = -2
const MOVING = -16

/** MOVING, with who moves it: should that thread die, its waiters can be told from another's. */
export function movingBy(thread: number): number {
  return MOVING - thread
}

export function isMoving(queue: number): boolean {
  return queue <= MOVING
}

/** Who sleeps: a thread in `Atomics.wait`, a promise of `Atomics.waitAsync`, a task in the scheduler. */
export const THREAD = 0
export const PROMISE = 1
export const TASK = 2

/** A bucket of the table of futexes, a line each. `waiters` counts those that wait or are about to. */
export const Bucket: Layout<'lock' | 'first' | 'waiters' | 'rest'> = record('bucket', {
  lock: words(Lock.words),
  first: word,
  waiters: word,
  rest: words(LINE_WORDS - Lock.words - 2),
})
