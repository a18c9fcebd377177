import { checkMethodFace } from '../../coroutine/core/faces.ts'
import { runnerOrNull, switchStamp } from '../../coroutine/core/runner.ts'
import type { Ambient } from '../../futex/core/ambient.ts'
import { ambient, currentAmbient } from '../../futex/core/ambient.ts'
import type { LockOwner } from '../../futex/core/owner.ts'
import { SyncError } from './errors.ts'

/**
 * Who calls: a task of the kernel, a coroutine of a schedule, or the thread. Each has a TID, which stands in
 * the words of the locks that it holds.
 */
export function currentTid(): number {
  const here = currentAmbient() ?? ambient()
  return switchStamp() === knownAt && here === knownIn ? knownTid : findTid(here)
}

/** Of the task or coroutine that runs, found once for each time that it is switched to. */
let knownTid = 0
let knownAt = -1
let knownIn: Ambient | null = null

function findTid(here: Ambient): number {
  const runner = runnerOrNull()
  if (runner === null) return here.tid
  const task = here.currentTask()
  knownTid = task === null ? coroutineTid(here, runner.running?.() ?? null) : task.tid
  knownAt = switchStamp()
  knownIn = here
  return knownTid
}

const coroutines = new WeakMap<object, LockOwner>()
/** The one that asked last. */
let last: object | null = null
let lastTid = 0

const ended = new FinalizationRegistry<() => void>(close => close())

/** The same as an owner of locks that keep lists of them. */
export function currentOwner(): LockOwner {
  const here = currentAmbient() ?? ambient()
  const task = here.currentTask()
  if (task !== null) return task.owner
  const co = runnerOrNull()?.running?.() ?? null
  if (co === null) return here.futexes.self
  coroutineTid(here, co)
  return coroutines.get(co) as LockOwner
}

/**
 * A coroutine of a schedule gets an owner record with its first lock, and gives it back when the engine drops
 * it.
 */
function coroutineTid(here: Ambient, co: object | null): number {
  if (co === null) return here.tid
  if (co === last) return lastTid
  let known = coroutines.get(co)
  if (known === undefined) {
    const { futexes } = here
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
  if (runnerOrNull() !== null) {
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
  if (runnerOrNull() === null) return
  throw new SyncError(
    'ERR_HEDDLE_WRONG_VERB',
    `${what}Sync() would block the whole thread, and a task is running on it: in a task use yield* ${what}(), or in a 'use task' function plainly ${what}()`,
  )
}

/** `lockSync` and its like, where it has to wait and must not. */
export function refuseBlocking(here: Ambient, what: string): void {
  if (here.mayBlock) return
  throw new SyncError(
    'ERR_HEDDLE_WRONG_VERB',
    `${what}Sync() would block, and this thread may not (a page's main thread): await ${what}Async()`,
  )
}
