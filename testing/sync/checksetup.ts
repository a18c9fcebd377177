import { assert } from '../../src/arena/assert.ts'
import { pending } from '../../src/checker/instrument/runtime.ts'
import { checkedFutexes } from '../futex/checksetup.ts'
import type { Futexes } from '../../src/futex/core/futexes.ts'
import { enterAsChecked } from './checkedthreads.ts'
import type { FutexContext } from '../../src/futex/core/context.ts'
import { EINTR } from '../../src/futex/core/errno.ts'
import { LockOwner, makeOwner } from '../../src/futex/core/owner.ts'
import { Futex, THREAD, Waiter } from '../../src/futex/core/records.ts'
import { recoverFutexes } from '../../src/futex/recovery/recover.ts'
import { finishWait, threadWaiter } from '../../src/futex/core/sleep.ts'
import type { ParkingQueue } from '../../src/sync/wait/queue.ts'
import { abandon, sleepOn, type Wait } from '../../src/sync/wait/waiting.ts'

/**
 * The library on the virtual threads of the model checker: each has its own futex context over one small
 * arena, and the thread context is that of the running one. Each thread makes its own objects over the same
 * words, as real threads do.
 *
 * A check is about an object's own words. How the futex of a queue is created and freed is explored in
 * futex/operations/waitwake.check.ts, so here it exists throughout (`keep`). Waits are numbered for each
 * thread by itself. A waiter may be asleep from the start (`asleep`), so that the check explores how it is
 * woken, leaves, or is granted something as a thread dies.
 */
export class CheckedThreads {
  readonly view: Int32Array<SharedArrayBuffer>
  readonly contexts: readonly FutexContext[]
  readonly owners: readonly LockOwner[]
  readonly tids: readonly number[]
  private readonly keeper: number
  private readonly mortal: boolean
  private readonly sleepers: number[] = []
  /** A word for each sleeper: whether its turn has come. */
  private readonly turns = new Int32Array(new SharedArrayBuffer(32))

  /**
   * One more thread, after those of the check, recovers and keeps the queues. `mortal`: one thread may die. A
   * recovery reads every record, step by step, beside the survivors, so there are few records. Otherwise each
   * thread has a word of the bitmaps for itself.
   */
  constructor(threads: number, mortal = false) {
    const count = threads + 1
    this.mortal = mortal
    const made = checkedFutexes(count, 32 * count, 8)
    this.contexts = made.threads.map(({ context }) => context)
    for (const [id, { i32, layout }] of this.contexts.entries()) {
      Object.assign(layout, { counter: layout.threadIds + id * COUNTERS })
      Atomics.store(i32, layout.counter + 2, TAG)
    }
    this.owners = this.contexts.map(
      context => new LockOwner(context, makeOwner(context, { kind: THREAD, priority: 128 })),
    )
    this.tids = this.owners.map(({ tid }) => tid)
    this.keeper = this.owners[threads].record
    this.view = words()
    this.install()
  }

  /**
   * Begins a wait, and returns the rest of it, which is true when the wait was served. `mayTimeOut`: the
   * explorer decides whether its time is over. Where a thread may die, the sleepers return one after the
   * other, each when the one before it has called `after`; unless they wait for each other (`inTurn`).
   */
  asleep(
    id: number,
    wait: Wait,
    mayTimeOut = false,
    { inTurn = true, after }: { inTurn?: boolean; after?: () => void } = {},
  ): () => boolean {
    const context = this.contexts[id]
    const waiters = wait.begin(context, threadWaiter())
    assert(waiters.length > 0, 'it has to wait')
    const turn = this.sleepers.push(id) - 1
    return () => {
      // Where a thread may die this one is really asleep, and runs only after the recovery, unless the dead
      // thread woke it. What it sees on its way to sleep, and how sleepers meet as they return, is explored
      // without a death.
      if (this.mortal && inTurn && turn > 0) waitFor(this.turns, turn)
      if (this.mortal && !mayTimeOut) {
        Atomics.wait(context.i32, waiters[0] + Waiter.signal, 0)
        if (Atomics.load(this.turns, DIED) === 1) waitFor(this.turns, RECOVERED)
      }
      try {
        const served = sleepOn(context, wait, waiters, mayTimeOut ? 1 : Infinity)
        after?.()
        return served
      } finally {
        if (this.mortal) pass(this.turns, turn + 1)
      }
    }
  }

  /** Begins a wait, and returns a function that cancels it, at any moment. */
  cancelled(id: number, wait: Wait): () => void {
    const context = this.contexts[id]
    const waiters = wait.begin(context, threadWaiter())
    assert(waiters.length > 0, 'it has to wait')
    return () => {
      finishWait(context, waiters, -EINTR)
      abandon(context, wait, waiters)
    }
  }

  /**
   * The queues exist from now on, and each thread knows them. For each queue a list of the objects of the
   * threads.
   */
  keep(...queues: ParkingQueue[][]): void {
    for (const own of queues) {
      own.forEach((queue, id) => {
        const context = this.contexts[id]
        queue.lock(context)
        const { futex } = queue as unknown as { futex: number }
        // A futex with an owner outlives its last waiter.
        Atomics.store(context.i32, futex + Futex.pi, this.keeper)
        queue.unlock(context)
      })
    }
  }

  /**
   * The recovery without its last part, which frees the records of the dead thread: requeue.check.ts explores
   * that. `then`: what the dead thread owed to its waiters.
   */
  recover(dead: number, then?: () => void): void {
    Atomics.store(this.turns, DIED, 1)
    const context = this.contexts[this.contexts.length - 1]
    const { waiters, owners, futexes, mappings, backings } = context.layout
    for (const slab of [waiters, owners, futexes, mappings, backings]) slab.reclaim = () => 0
    recoverFutexes(context, dead)
    then?.()
    pass(this.turns, RECOVERED)
    const turn = this.sleepers.indexOf(dead)
    if (turn >= 0) pass(this.turns, turn + 1)
  }

  private install(): void {
    const futexes = this.contexts.map(
      (context, id) => ({ context, mayBlock: true, self: this.owners[id] }) as unknown as Futexes,
    )
    enterAsChecked(() => futexes.at(pending.current) as Futexes)
  }
}

/** One thread may die, at any of its steps. */
export const DIES = (
  thread: number,
): { readonly crashes: { max: number; threads: number[] }; readonly rerun: boolean } => ({
  crashes: { max: 1, threads: [thread] },
  rerun: false,
})

/**
 * For programs with too many orders to explore. The name of such a check ends with `ONE`; with `NONE`, if
 * `preemptions` is 0.
 */
export const BOUNDED = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
export const ONE = '(at most one preemption)'
export const NONE = '(no preemption)'

/** Each thread's own object over the same words. */
export function each<T>(threads: number, make: (id: number) => T): T[] {
  return Array.from({ length: threads + 1 }, (_, id) => make(id))
}

/** Words beside the turns. */
const DIED = 6
const RECOVERED = 7

const TAG = 77
const OBJECTS = 8
const COUNTERS = 4

/** Room for a few objects, whose ids are claimed in advance. */
function words(): Int32Array<SharedArrayBuffer> {
  const view = new Int32Array(new SharedArrayBuffer(1024))
  for (let object = 0; object < OBJECTS; object++) {
    view[object * 4 + 1] = object + 1
    view[object * 4 + 2] = TAG
  }
  return view
}

function waitFor(turns: Int32Array, turn: number): void {
  Atomics.wait(turns, turn, 0)
}

function pass(turns: Int32Array, turn: number): void {
  Atomics.store(turns, turn, 1)
  Atomics.notify(turns, turn)
}
