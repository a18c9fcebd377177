import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import type { Futexes } from '../../futex/core/futexes.ts'
import type { LockOwner } from '../../futex/core/owner.ts'

/**
 * Async code holds a lock as an owner of its own, because two flows of one thread must exclude each other.
 */
class Flows {
  readonly futexes: Futexes
  readonly idle: LockOwner[] = []

  constructor(futexes: Futexes) {
    this.futexes = futexes
  }
}

const IDLE_MAX = 64

/** The owners of the domain that this thread is in. A thread that boots a kernel changes its domain. */
let flows: Flows | null = null
const inUse = new Map<number, { readonly owner: LockOwner; readonly flows: Flows }>()

export function asyncOwner(): LockOwner {
  const futexes = currentFutexes()
  if (flows?.futexes !== futexes) flows = new Flows(futexes)
  const owner = flows.idle.pop() ?? futexes.makeOwner()
  inUse.set(owner.tid, { owner, flows })
  return owner
}

/** The owner holds no lock any more, and is kept for reuse. */
export function returnOwner(owner: LockOwner): void {
  const used = inUse.get(owner.tid)
  if (used === undefined) return
  inUse.delete(owner.tid)
  if (used.flows.idle.length < IDLE_MAX) used.flows.idle.push(owner)
  else used.flows.futexes.closeOwner(owner)
}

/** The owner of async code of this thread that has this TID. */
export function asyncOwnerOf(tid: number): LockOwner | undefined {
  return inUse.get(tid)?.owner
}
