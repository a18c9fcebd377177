import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { type Decision, MOVE, WAKE } from '../../futex/core/decision.ts'
import { wakeAll } from '../../futex/core/queue.ts'
import type { notify } from './notify.ts'
import { notifyByStranger } from '../../../testing/sync/notifyprograms.ts'

/** Wakes the first waiter, and only then queues the others where each holder of the mutex finds the next. */
const wakeBeforeMoving: typeof notify = (context, _place, { waiting, notified }) => {
  let woken = false
  const decision: Decision = {
    decide() {
      const what = woken ? MOVE : WAKE
      woken = true
      return what
    },
  }
  waiting.lock(context)
  const moved = waiting.walk(context, decision)
  waiting.unlockQuietly(context)
  if (moved !== 0) {
    notified.lock(context)
    notified.addMoved(context, moved)
    notified.unlockQuietly(context)
  }
  wakeAll(context)
  return 2
}

test('a notify that wakes the first waiter before the others are queued leaves them asleep when the first was about to leave', () => {
  expect(found(notifyByStranger(wakeBeforeMoving))).toMatch(/patient is (asleep|blocked)/)
})
