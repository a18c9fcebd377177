import { pending } from '../checker/runtime.ts'
import { checkedFutexes } from '../futex/checksetup.ts'
import { type Ambient, ambient, setAmbient } from '../futex/ambient.ts'
import type { FutexContext } from '../futex/context.ts'
import { EINTR } from '../futex/errno.ts'
import { LockOwner, makeOwner } from '../futex/owner.ts'
import { THREAD } from '../futex/records.ts'
import { finishWait, threadWaiter } from '../futex/sleep.ts'
import { abandon, OneQueue, type Wait } from './waiting.ts'

/**
 * The library on the virtual threads of the model checker: each has its own futex context over one small arena, and what a thread waits with is
 * found by which of them runs. Each thread makes its own objects over the same words, as real threads do.
 */
export function checkedThreads(count: number): Int32Array<SharedArrayBuffer> {
  return checkedContexts(count).view
}

/** The same, with what each thread waits with. Each has an owner record, so that one that has died is known to be dead. */
export function checkedContexts(count: number): {
  readonly view: Int32Array<SharedArrayBuffer>
  readonly contexts: readonly FutexContext[]
  readonly tids: readonly number[]
} {
  const { threads } = checkedFutexes(count, 32 * count, 8)
  const contexts: FutexContext[] = threads.map(({ context }) => context)
  const tids = contexts.map(tidOf)
  const ambients: Ambient[] = contexts.map((context, id) => ({
    futexes: { context } as Ambient['futexes'],
    tid: tids[id],
    mayBlock: true,
    currentTask: () => null,
  }))
  const here = (): Ambient => ambients[Math.max(0, pending.current)]
  setAmbient({
    get futexes() {
      return here().futexes
    },
    get tid() {
      return here().tid
    },
    mayBlock: true,
    currentTask: () => null,
  })
  const [{ i32, layout }] = contexts
  Atomics.store(i32, layout.counter + 2, TAG)
  const words = new Int32Array(new SharedArrayBuffer(1024))
  // The objects' ids are claimed in advance, unless the check is about that.
  for (let object = 0; object < OBJECTS; object++) {
    words[object * 4 + 1] = object + 1
    words[object * 4 + 2] = TAG
  }
  return { view: words, contexts, tids }
}

function tidOf(context: FutexContext): number {
  return new LockOwner(context, makeOwner(context, { kind: THREAD, priority: 128 })).tid
}

const TAG = 77
const OBJECTS = 4

/**
 * A wait that is thrown into as soon as it sleeps: it leaves its queues, unless a wake is first, and gives up. True: it did not have to wait.
 */
export function waitAndCancel(wait: Wait): boolean {
  const { context } = ambient().futexes
  const parking = new OneQueue(wait)
  const waiters = parking.begin(context, threadWaiter())
  if (waiters.length === 0) return true
  finishWait(context, waiters, -EINTR)
  abandon(context, parking, waiters)
  return false
}
