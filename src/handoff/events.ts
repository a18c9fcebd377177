import { LOCK_HANDOFF } from '../arena/rings/events.ts'
import type { FutexContext } from '../futex/core/context.ts'
import { actorOfTid } from '../futex/core/events.ts'
import { actorOf } from '../sched/core/events.ts'

/**
 * A lock was unlocked for the waiter with the TID `to` (0: not known any more). The caller has checked that
 * recording is on.
 */
export function tellHandedOver(context: FutexContext, lock: number, to: number): void {
  const s = context.scheduler
  if (s === undefined) return
  s.events?.write(LOCK_HANDOFF, s.now(), actorOf(s), lock, actorOfTid(context, to), 0, 0)
}
