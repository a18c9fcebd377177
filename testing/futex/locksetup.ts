import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { Rcu } from '../../src/arena/sync/rcu.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { type FutexSizes, initializeFutexes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { type MutexKind, WordMutex } from '../../src/futex/robust/mutex.ts'
import type { LockOwner } from '../../src/futex/core/owner.ts'

/**
 * A minimal set of mutexes for the model checker: one bucket, as few records as possible, an owner for each
 * thread created in advance. Each virtual thread has its own objects over one arena, as on real threads, and
 * spins for kernel locks instead of parking.
 */
export interface CheckedOwner {
  readonly fx: Futexes
  readonly owner: LockOwner
  readonly mutexes: readonly WordMutex[]
}

export interface CheckedLocks {
  readonly i32: Int32Array
  readonly view: Int32Array
  readonly threads: readonly CheckedOwner[]
}

const LOCKS = 3
const STRIDE = 8
/** From the best to the worst. */
export const PRIORITIES: readonly number[] = [40, 60, 80, 100, 120]

interface Sizes {
  readonly waiters?: number
  readonly buckets?: number
  /** The first `owners` threads get an owner; the others only recover. */
  readonly owners?: number
  /** Priorities of the owners; by default from the best to the worst. */
  readonly priorities?: readonly number[]
}

export function checkedLocks(kind: MutexKind, threads: number, sizes: Sizes = {}): CheckedLocks {
  const { waiters = threads, buckets = 1, owners = threads, priorities = PRIORITIES } = sizes
  const small: FutexSizes = { waiters, owners, mappings: 1, spaces: 1, buckets, threads }
  const plan = new ArenaPlan()
  const first = reserveFutexes(plan, small)
  const arena = Arena.create(plan)
  initializeFutexes(arena, first)
  const buffer = new SharedArrayBuffer(LOCKS * STRIDE * 4)
  const made: CheckedOwner[] = []
  for (let id = 0; id < threads; id++) {
    const layout = id === 0 ? first : reserveFutexes(new ArenaPlan(), small)
    const thread = new KernelThread(arena, id, false, 0)
    const rcu = new Rcu(layout.rcu, threads)
    const space = made[0]?.fx.space.handle
    const fx = new Futexes(thread, layout, { now: () => 0, rcu, ...(space !== undefined && { space }) })
    rcu.online(thread)
    const mapped =
      id === 0
        ? fx.map(buffer)
        : fx.space.adopt(
            buffer,
            made[0].fx.space.findBuffer(made[0].mutexes[0].word.mapped.buffer)?.handles as never,
          )
    const mutexes = Array.from(
      { length: LOCKS },
      (_, lock) => new WordMutex(fx, mapped.word(fx.context, lock * STRIDE), kind),
    )
    const owner = id < owners ? fx.makeOwner({ priority: priorities[id] }) : undefined
    made.push({ fx, owner: owner as LockOwner, mutexes })
  }
  return { i32: arena.i32, view: new Int32Array(buffer), threads: made }
}

export function wordAt({ view }: CheckedLocks, lock: number): number {
  return Atomics.load(view, lock * STRIDE)
}
