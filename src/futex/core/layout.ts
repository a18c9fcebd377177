import type { Arena, ArenaPlan, Region } from '../../arena/memory/arena.ts'
import { lockRank } from '../../arena/sync/lockorder.ts'
import { Rcu } from '../../arena/sync/rcu.ts'
import { Slab } from '../../arena/memory/slab.ts'
import { initLock } from '../../arena/sync/spinlock.ts'
import { THREAD_MAX } from '../../arena/sync/thread.ts'
import { Backing, Bucket, Futex, Mapping, Owner, Space, Waiter } from './records.ts'

export interface FutexSizes {
  /** How many threads, tasks and promises may wait at the same time, over all words. */
  readonly waiters?: number
  /** How many SharedArrayBuffers may be mapped at the same time, counted per space. */
  readonly mappings?: number
  readonly spaces?: number
  /** Words for the lock table of debug mode. */
  readonly lockTable?: number
  /** Buckets of the futex table: a power of two. */
  readonly buckets?: number
  /** How many tasks, threads and async flows may own locks at the same time. Default: as many as can wait. */
  readonly owners?: number
  /** Thread ids that make calls are less than this. */
  readonly threads?: number
}

/** The regions of the futexes in the arena. Every thread computes the same layout. */
export interface FutexLayout {
  readonly table: Region
  readonly buckets: number
  readonly counter: number
  readonly spaces: Slab
  readonly backings: Slab
  readonly mappings: Slab
  readonly futexes: Slab
  readonly waiters: Slab
  readonly owners: Slab
  /** One word for each thread id: whether it is in use. */
  readonly threadIds: number
  /** The holders and waiters of locks in debug mode (sync/debug/locktable.ts). Otherwise unused. */
  readonly lockTable: Region
  readonly rcu: Region
  readonly ownRcu: boolean
  readonly threads: number
}

const LOCK_TABLE_WORDS_MIN = 16

/**
 * `rcu`: the scheduler's region, if there is one. It is shared, so that a waker can keep a reference to a
 * task.
 */
export function reserveFutexes(plan: ArenaPlan, sizes: FutexSizes = {}, rcu?: Region): FutexLayout {
  const { waiters = 1 << 17, mappings = 4096, spaces = 256, buckets = 1024, threads = THREAD_MAX } = sizes
  const owners = sizes.owners ?? waiters
  if (!Number.isInteger(buckets) || buckets < 1 || (buckets & (buckets - 1)) !== 0) {
    throw new RangeError(`buckets: ${buckets} is not a power of two; give a power of two`)
  }
  return {
    table: plan.reserve('futex table', buckets * Bucket.words),
    buckets,
    counter: plan.reserve('futex order', 1).start,
    spaces: new Slab(plan, { name: 'spaces', capacity: spaces, words: Space.words, option: 'spaces' }),
    backings: new Slab(plan, {
      name: 'backings',
      capacity: mappings,
      words: Backing.words,
      option: 'mappings',
    }),
    mappings: new Slab(plan, {
      name: 'mappings',
      capacity: mappings,
      words: Mapping.words,
      option: 'mappings',
    }),
    // A futex exists only while it has waiters, and for a grace period after that.
    futexes: new Slab(plan, { name: 'futexes', capacity: waiters, words: Futex.words, option: 'waiters' }),
    waiters: new Slab(plan, { name: 'waiters', capacity: waiters, words: Waiter.words, option: 'waiters' }),
    owners: new Slab(plan, { name: 'lock owners', capacity: owners, words: Owner.words, option: 'owners' }),
    threadIds: plan.reserve('thread ids', THREAD_MAX).start,
    lockTable: plan.reserve(
      'lock table',
      LOCK_TABLE_WORDS_MIN + (sizes.lockTable ?? (waiters > 4096 ? 1 << 18 : 0)),
    ),
    rcu: rcu ?? Rcu.reserve(plan, threads),
    ownRcu: rcu === undefined,
    threads: rcu === undefined ? threads : THREAD_MAX,
  }
}

/** Called once, by the thread that created the arena. */
export function initializeFutexes(arena: Arena, layout: FutexLayout): void {
  const { i32 } = arena
  const rank = lockRank('futex table')
  for (let bucket = 0; bucket < layout.buckets; bucket++) {
    initLock(i32, layout.table.start + bucket * Bucket.words + Bucket.lock, rank)
  }
  const { spaces, backings, mappings, futexes, waiters, owners } = layout
  for (const slab of [spaces, backings, mappings, futexes, waiters, owners]) slab.initialize(i32)
  if (layout.ownRcu) new Rcu(layout.rcu, layout.threads).initialize(i32)
}
