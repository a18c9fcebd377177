import { checkMethodFace } from '../../coroutine/core/faces.ts'
import { type Ambient, ambient } from '../../futex/core/ambient.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import { here } from '../../kernel/cpu/here.ts'
import { currentTask } from '../../kernel/cpu/taskwaiter.ts'
import { SyncError } from './errors.ts'

/**
 * The TID of the caller: a task of a kernel, a coroutine of a schedule, or the thread. It stands in the words
 * of the locks that the caller holds.
 */
export function currentTid(): number {
  return here.tid === 0 ? findTid() : here.tid
}

function findTid(): number {
  const { futexes } = ambient()
  if (here.runner === null) return futexes.self.tid
  const task = currentTask()
  return (here.tid = task === null ? coroutineTid(futexes, here.runner.running?.() ?? null) : task.owner.tid)
}

const coroutines = new WeakMap<object, LockOwner>()
/** The one that asked last. */
let last: object | null = null
let lastTid = 0

const ended = new FinalizationRegistry<() => void>(close => close())

/** The same as an owner of locks that keep lists of them. */
export function currentOwner(): LockOwner {
  const task = currentTask()
  if (task !== null) return task.owner
  const { futexes } = ambient()
  const co = here.runner?.running?.() ?? null
  if (co === null) return futexes.self
  coroutineTid(futexes, co)
  return coroutines.get(co) as LockOwner
}

/**
 * A coroutine of a schedule gets an owner record with its first lock, and gives it back when the engine drops
 * it.
 */
function coroutineTid(futexes: Futexes, co: object | null): number {
  if (co === null) return futexes.self.tid
  if (co === last) return lastTid
  let known = coroutines.get(co)
  if (known === undefined) {
    const owner = futexes.makeOwner()
    ended.register(co, () => {
      byTid.delete(owner.tid)
      futexes.closeOwner(owner)
    })
    known = owner
    coroutines.set(co, known)
    byTid.set(owner.tid, new WeakRef(co))
  }
  last = co
  lastTid = known.tid
  return lastTid
}

const byTid = new Map<number, WeakRef<object>>()

/** Whether a coroutine of a schedule of this thread had this TID and has ended. */
export function coroutineHasEnded(tid: number): boolean {
  const co = byTid.get(tid)
  if (co === undefined) return false
  const alive = co.deref() as { readonly state?: string } | undefined
  return alive === undefined || alive.state === 'STOP'
}

/** `lock` and its like, where no task or coroutine runs, or its code cannot be suspended. */
export function refuseOutsideTask(what: string): void {
  if (here.runner !== null) {
    checkMethodFace(what)
    return
  }
  throw new SyncError(
    'ERR_HEDDLE_WRONG_VERB',
    `${what}() is the verb of a task, and none is running here: use ${what}Sync() on a thread that may block, or await ${what}Async()`,
  )
}

/** `lockSync` and its like, in a task: it would block the CPU, and all tasks on it. */
export function refuseInTask(what: string): void {
  if (here.runner === null) return
  throw new SyncError(
    'ERR_HEDDLE_WRONG_VERB',
    `${what}Sync() would block the whole thread, and a task is running on it: in a task use yield* ${what}(), or in a 'use task' function plainly ${what}()`,
  )
}

/** `lockSync` and its like, where it has to wait and must not. */
export function refuseBlocking({ futexes }: Ambient, what: string): void {
  if (futexes.mayBlock) return
  throw new SyncError(
    'ERR_HEDDLE_WRONG_VERB',
    `${what}Sync() would block, and this thread may not (a page's main thread): await ${what}Async()`,
  )
}
