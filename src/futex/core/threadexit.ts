import type { FutexContext } from './context.ts'
import { endOwner } from '../recovery/exit.ts'
import { takeOff, wakeAll } from './queue.ts'
import { isMoving, Owner, OWNER_ALIVE, Waiter } from './records.ts'
import { wakeOrphans } from '../recovery/recover.ts'
import { freeWaiter, giveUpHandover } from '../operations/waitwake.ts'

/**
 * A thread ends in good order, with promises of its own still waiting that nobody will hear of any more, and
 * async flows that hold locks. Its waits leave their queues first: one left there would be woken in the place
 * of a live one, or be made the owner of a lock as somebody who is no more. Then its owners end, as if they
 * had died. By the thread itself, outside of all calls; it makes none afterwards.
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
