import type { FutexContext } from './context.ts'
import { endOwner } from '../recovery/exit.ts'
import { takeOff, wakeAll } from './queue.ts'
import { isMoving, Owner, OWNER_ALIVE, Waiter } from './records.ts'
import { wakeOrphans } from '../recovery/recover.ts'
import { freeWaiter, giveUpHandover } from '../operations/waitwake.ts'

/**
 * A thread ends in good order while promises of its own still wait, whose results no code will get, and while
 * its async flows hold locks. Its waiters leave their queues first: a waiter that stayed there would be woken
 * in the place of a live one, or would become the owner of a lock after its end. Then its owners end, as if
 * they had died. The thread itself calls this, outside of all other calls, and makes no call afterwards.
 */
export function leaveFutexes(context: FutexContext): void {
  const { i32, thread, layout } = context
  for (let waiter = layout.waiters.after(i32, 0); waiter !== 0; waiter = layout.waiters.after(i32, waiter)) {
    if (layout.waiters.allocatedBy(i32, waiter) !== thread.id) continue
    const queue = Atomics.load(i32, waiter + Waiter.queue)
    if (queue > 0 || isMoving(queue)) takeOff(context, waiter)
    giveUpHandover(context, waiter)
    freeWaiter(context, waiter)
  }
  for (let owner = layout.owners.after(i32, 0); owner !== 0; owner = layout.owners.after(i32, owner)) {
    // Those of tasks are settled: they outlive the thread that made them.
    const own = layout.owners.allocatedBy(i32, owner) === thread.id
    if (own && Atomics.load(i32, owner + Owner.state) === OWNER_ALIVE) endOwner(context, owner)
  }
  wakeAll(context)
  wakeOrphans(context)
}
