import { listFirst } from '../../arena/trees/list.ts'
import { acquire, release } from '../../arena/sync/spinlock.ts'
import type { LockHooks } from '../../sched/core/scheduler.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { FutexContext } from '../core/context.ts'
import { freeOwner } from '../core/owner.ts'
import { handOver, writeOwner } from '../pi/pi.ts'
import { callTop, detachOwner, topWaiter, walkChain } from '../pi/pichain.ts'
import { wakeAll } from '../core/queue.ts'
import { Futex, Owner, OWNER_ALIVE, OWNER_DEAD, OWNER_EXITING, TASK, Waiter } from '../core/records.ts'
import { exitRobustList } from '../robust/robust.ts'
import { unlockFutexUnlessDead } from '../core/table.ts'

/**
 * The end of an owner: a task that exits or is killed, a thread that ends or has died, an async flow that is
 * done. Its locks pass to others, in this order:
 *
 *   1. EXITING, under its lock: no futex attaches to it any more; a locker that finds it waits for 4
 *   2. its robust list: each word gets OWNER_DIED, a waiter at a plain lock is woken
 *   3. its contended pi locks pass to their top waiters, with OWNER_DIED, also those on no list
 *   4. DEAD: a locker that finds its TID gets ESRCH; and its record is freed
 *
 *   locker                                   ending thread
 *   ------                                   -------------
 *   word is the owner's TID
 *                                            (A) EXITING
 *   finds its record: EXITING, restarts
 *                                            2, 3: the word is no longer its TID, or is on no list
 *                                            (B) DEAD
 *   the word has changed: takes it, or
 *   finds no owner: ESRCH
 *
 * If 2 were before (A), a locker could attach after 3 and wait for an owner that no thread will end.
 */
export function exitOwner(context: FutexContext, owner: number): void {
  endOwner(context, owner)
  wakeAll(context)
}

/**
 * The thread that was ending the owner is dead: finishes that. No lock is held. Several threads may do this:
 * every step is idempotent.
 */
export function finishExit(context: FutexContext, owner: number, dead: number): void {
  const { i32, thread } = context
  acquire(thread, owner + Owner.lock)
  const left = i32[owner + Owner.exiter] === dead + 1
  if (left) i32[owner + Owner.exiter] = 0
  release(thread, owner + Owner.lock)
  if (left) exitOwner(context, owner)
}

/** As exitOwner, but leaves the woken sleepers in the wake queue. */
export function endOwner(context: FutexContext, owner: number): void {
  const { i32, thread } = context
  acquire(thread, owner + Owner.lock)
  const state = Atomics.load(i32, owner + Owner.state)
  // If its ending thread died, the recovering thread ends the owner: every step is idempotent.
  const left = (state === OWNER_EXITING || state === OWNER_DEAD) && i32[owner + Owner.exiter] === 0
  const mine = state === OWNER_ALIVE || left
  if (mine) {
    i32[owner + Owner.exiter] = thread.ownerTag
    Atomics.store(i32, owner + Owner.state, OWNER_EXITING) // (A) 1
  }
  release(thread, owner + Owner.lock)
  if (!mine) return
  exitRobustList(context, owner) // 2
  exitContended(context, owner) // 3
  acquire(thread, owner + Owner.lock)
  Atomics.store(i32, owner + Owner.state, OWNER_DEAD) // (B) 4
  release(thread, owner + Owner.lock)
  freeOwner(context, owner)
}

/**
 * Ends the owner record of a task that has ended, or whose CPU has died, before the task's record is freed.
 * Idempotent.
 */
export function exitTaskOwner(context: FutexContext, task: number): void {
  const { i32 } = context
  const owner = Atomics.load(i32, task + TaskRecord.owner)
  if (owner === 0) return
  // If an earlier caller died in between, the record may belong to another owner by now.
  if (i32[owner + Owner.kind] === TASK && i32[owner + Owner.task] === task) exitOwner(context, owner)
  Atomics.store(i32, task + TaskRecord.owner, 0)
}

/** 3. Each contended pi lock passes to its best waiter. */
function exitContended(context: FutexContext, owner: number): void {
  const { i32, thread } = context
  context.enter()
  for (;;) {
    acquire(thread, owner + Owner.lock)
    const node = listFirst(i32, owner + Owner.contended)
    release(thread, owner + Owner.lock)
    if (node === 0) break
    const futex = node - Futex.contended
    acquire(thread, futex + Futex.lock)
    // Between the two locks its last waiter may have timed out: then it has no owner.
    if (Atomics.load(i32, futex + Futex.pi) === owner) passOn(context, futex)
    unlockFutexUnlessDead(context, futex)
  }
  context.leave()
}

function passOn(context: FutexContext, futex: number): void {
  const { i32 } = context
  const top = topWaiter(i32, futex)
  if (top === 0) {
    detachOwner(context, futex)
    return
  }
  const mapped = context.buffers.get(i32[futex + Futex.owner])
  if (!mapped?.isBacked(i32)) {
    // [11] of pi.ts. This thread cannot access the word; the called waiter can.
    detachOwner(context, futex)
    callTop(context, futex)
    return
  }
  writeOwner(mapped.i32, i32[futex + Futex.index], i32[i32[top + Waiter.lockOwner] + Owner.tid])
  handOver(context, futex, top)
}

/** The scheduler's hooks into this layer, for the locks of its tasks. */
export class TaskLockHooks implements LockHooks {
  private readonly context: FutexContext

  constructor(context: FutexContext) {
    this.context = context
  }

  exiting(task: number): void {
    exitTaskOwner(this.context, task)
  }

  priorityChanged(task: number): void {
    const { context } = this
    const owner = Atomics.load(context.i32, task + TaskRecord.owner)
    context.enter()
    if (owner !== 0) walkChain(context, owner)
    context.leave()
    if (context.wakeQueue.length > 0) wakeAll(context)
  }
}
