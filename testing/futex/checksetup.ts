import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { assert } from '../../src/arena/assert.ts'
import { Rcu } from '../../src/arena/sync/rcu.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { FutexContext } from '../../src/futex/core/context.ts'
import { EAGAIN } from '../../src/futex/core/errno.ts'
import { type FutexSizes, initializeFutexes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { Futex, QUEUE_NONE, Waiter } from '../../src/futex/core/records.ts'
import { sleepThread, threadWaiter } from '../../src/futex/core/sleep.ts'
import { AddressSpace, type FutexWord, type MappedBuffer } from '../../src/futex/core/space.ts'
import { makeWaiter, queueWaiter, wake } from '../../src/futex/operations/waitwake.ts'

/**
 * A minimal set of futexes for the model checker: a few buckets, a waiter for each thread created in advance,
 * and on each of two words a resident waiter that no wake matches, so that the queues exist throughout. Each
 * virtual thread has its own objects over one arena, as on real threads. They spin for kernel locks and do
 * not park: spinlock.check.ts explores parking at a lock and deaths there.
 */
export interface CheckedThread {
  readonly context: FutexContext
  readonly space: AddressSpace
  readonly mapped: MappedBuffer
  readonly waiter: number
  readonly words: readonly FutexWord[]
}

export interface CheckedFutexes {
  readonly i32: Int32Array
  readonly threads: readonly CheckedThread[]
  readonly view: Int32Array
}

const WORDS = 2
/** The bitset of the checks' waits and wakes; the residents have another bit, and come last. */
const BITS = 1
export const RESIDENT = { bits: 2, priority: 1000 }

/**
 * `slots`: the number of waiters and futexes. By default each thread has its own bitmap word in the slabs.
 */
export function checkedFutexes(threads: number, slots: number = 32 * threads, buckets = 8): CheckedFutexes {
  const small: FutexSizes = { waiters: slots, mappings: 1, spaces: 1, buckets, threads }
  const plan = new ArenaPlan()
  const first = reserveFutexes(plan, small)
  const arena = Arena.create(plan)
  const { i32 } = arena
  initializeFutexes(arena, first)
  const buffer = new SharedArrayBuffer(WORDS * 4)
  const made: CheckedThread[] = []
  for (let id = 0; id < threads; id++) {
    const layout = id === 0 ? first : reserveFutexes(new ArenaPlan(), small)
    layout.futexes.spread(id, threads)
    layout.waiters.spread(id, threads)
    const thread = new KernelThread(arena, id, false, 0)
    const rcu = new Rcu(layout.rcu, threads)
    const context = new FutexContext(thread, layout, () => 0, undefined, rcu)
    rcu.online(thread)
    const space = id === 0 ? AddressSpace.create(context) : AddressSpace.join(context, made[0].space.handle)
    const mapped = id === 0 ? space.map(buffer) : space.adopt(buffer, made[0].mapped.handles)
    const words = Array.from({ length: WORDS }, (_, index) => mapped.word(context, index))
    assert(
      buckets === 1 || words[0].privateBucket !== words[1].privateBucket,
      'the two words are in different buckets',
    )
    const waiter = makeWaiter(context, BITS, threadWaiter())
    if (id === 0) {
      for (const word of words) {
        const resident = makeWaiter(context, RESIDENT.bits, {
          ...threadWaiter(),
          priority: RESIDENT.priority,
        })
        assert(queueWaiter(context, word, false, 0, resident) === 0, 'the residents wait from the start')
      }
    } else {
      words.forEach((word, index) => {
        word.privateHint = made[0].words[index].privateHint
      })
    }
    made.push({ context, space, mapped, waiter, words })
  }
  return { i32, threads: made, view: new Int32Array(buffer) }
}

/**
 * A private wait. Returns 0, or an error, negated. With `mayTimeOut` the explorer decides whether it times
 * out.
 */
export function waitAt(thread: CheckedThread, index: number, expected: number, mayTimeOut = false): number {
  const { context, waiter, words } = thread
  if (Atomics.load(words[index].i32, index) !== expected) return -EAGAIN
  const error = queueWaiter(context, words[index], false, expected, waiter)
  return error !== 0 ? error : sleepThread(context, [waiter], mayTimeOut ? 1 : Infinity)
}

export function wakeAt({ context, words }: CheckedThread, index: number, count: number): number {
  return wake(context, words[index], false, count, BITS)
}

/** Which queue a thread's waiter is on: the index of a word, or -1. */
export function queueOf({ i32, threads }: CheckedFutexes, id: number): number {
  const queue = Atomics.load(i32, threads[id].waiter + Waiter.queue)
  return queue > QUEUE_NONE ? i32[queue + Futex.index] : -1
}
