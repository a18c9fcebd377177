import { ArenaFullError } from '../../arena/memory/arena.ts'
import { checkMethodFace } from '../../coroutine/core/faces.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
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
  const { tid } = here
  return tid === 0 ? findTid() : tid
}

function findTid(): number {
  const tid = here.runner === null ? currentFutexes().self.tid : currentOwner().tid
  if (!here.counts) here.uncounted = tid
  return (here.tid = tid)
}

/** The caller as an owner of locks. */
export function currentOwner(): LockOwner {
  const task = currentTask()
  if (task !== null) return task.owner
  const futexes = currentFutexes()
  const co = here.runner?.running?.() ?? null
  return co === null ? futexes.self : coroutineOwner(futexes, co)
}

const coroutines = new WeakMap<object, LockOwner>()
/** The coroutine that called last, and its owner. */
let last: object | null = null
let lastOwner: LockOwner | null = null

interface CoroutineOwner {
  readonly co: WeakRef<object>
  readonly owner: LockOwner
  readonly futexes: Futexes
}

const byTid = new Map<number, CoroutineOwner>()
/** Coroutines have ended in waits of these owners that are not over yet. */
const leaving = new Set<number>()

const collected = new FinalizationRegistry<number>(tid => close(tid))

/** At so many owners, those of ended coroutines are freed: the engine may collect none for very long. */
const SWEEP_LEAST = 4096
let sweepAt = SWEEP_LEAST

function close(tid: number): void {
  const known = byTid.get(tid)
  if (known === undefined) return
  byTid.delete(tid)
  known.futexes.closeOwner(known.owner)
}

function sweep(): void {
  for (const tid of byTid.keys()) if (coroutineHasEnded(tid) && !leaving.has(tid)) close(tid)
  sweepAt = Math.max(SWEEP_LEAST, byTid.size * 2)
}

function ownerFor(futexes: Futexes): LockOwner {
  if (byTid.size >= sweepAt) sweep()
  try {
    return futexes.makeOwner()
  } catch (full) {
    if (!(full instanceof ArenaFullError)) throw full
    sweep()
    return futexes.makeOwner()
  }
}

/** An error was thrown into the coroutine, and its wait for a lock ends a moment later. */
export function leavesWait({ tid }: LockOwner, wait: Promise<unknown>): void {
  leaving.add(tid)
  const left = (): void => void leaving.delete(tid)
  wait.then(left, left)
}

/**
 * A coroutine of a schedule gets an owner record with its first lock. The record is freed when the coroutine
 * is collected, or has ended when there are many.
 */
function coroutineOwner(futexes: Futexes, co: object): LockOwner {
  if (co === last) return lastOwner as LockOwner
  let owner = coroutines.get(co)
  if (owner === undefined) {
    owner = ownerFor(futexes)
    collected.register(co, owner.tid)
    coroutines.set(co, owner)
    byTid.set(owner.tid, { co: new WeakRef(co), owner, futexes })
  }
  last = co
  lastOwner = owner
  return owner
}

/** Whether a coroutine of a schedule of this thread had this TID and has ended. */
export function coroutineHasEnded(tid: number): boolean {
  const known = byTid.get(tid)
  if (known === undefined) return false
  const alive = known.co.deref() as { readonly state?: string } | undefined
  return alive === undefined || alive.state === 'STOP'
}

/** For verbs like `lock`, where no task or coroutine runs, or its code cannot be suspended. */
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

/** For verbs like `lockSync`, in a task: they would block the CPU, and all tasks on it. */
export function refuseInTask(what: string): void {
  if (here.runner === null) return
  throw new SyncError(
    'ERR_HEDDLE_WRONG_VERB',
    `${what}Sync() would block the whole thread, and a task is running on it: in a task use yield* ${what}(), or in a 'use task' function plainly ${what}()`,
  )
}

/** For verbs like `lockSync`, on a thread that must not block. */
export function refuseBlocking(futexes: Futexes, what: string): void {
  if (futexes.mayBlock) return
  throw new SyncError(
    'ERR_HEDDLE_WRONG_VERB',
    `${what}Sync() would block, and this thread may not (a page's main thread): await ${what}Async()`,
  )
}
