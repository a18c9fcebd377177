import { expect, test } from 'vitest'
import { ListNode } from '../../arena/trees/list.ts'
import { found } from '../../checker/check.ts'
import { MOVE } from '../../futex/core/decision.ts'
import { ROBUST } from '../../futex/robust/mutex.ts'
import { FUTEX_WAITERS } from '../../futex/core/owner.ts'
import { enqueue, wakeAll } from '../../futex/core/queue.ts'
import { Bucket, Waiter } from '../../futex/core/records.ts'
import { lockOrCreateFutex, unlockFutex } from '../../futex/core/table.ts'
import type { notify } from './notify.ts'
import { notifyAtWord } from '../../../testing/sync/notifyatword.ts'

/** Says in the word that others wait, and only then queues them there. */
const saysBeforeQueueing: typeof notify = (context, _place, { waiting }) => {
  const { i32 } = context
  waiting.lock(context)
  const first = waiting.first(context)
  const word = context.buffers.get(i32[first + Waiter.target])!.word(context, i32[first + Waiter.targetIndex])
  let waiter = waiting.walk(context, { decide: () => MOVE })
  waiting.unlockQuietly(context)
  Atomics.or(word.i32, word.index, FUTEX_WAITERS)
  context.enter()
  const futex = lockOrCreateFutex(context, word.sharedBucket, word.mapped.backing, word.index, 0)
  while (waiter !== 0) {
    const next = i32[waiter + Waiter.links + ListNode.next]
    i32[waiter + Waiter.links + ListNode.next] = 0
    Atomics.add(i32, word.sharedBucket + Bucket.waiters, 1)
    enqueue(context, futex, waiter)
    waiter = next
  }
  unlockFutex(context, futex)
  context.leave()
  wakeAll(context)
  return 1
}

test('a notify that sets the flag in the word before it queues the waiters leaves them asleep when the mutex is unlocked in between', () => {
  const broken = notifyAtWord({ kind: ROBUST, waiters: 1, holds: false, notifies: saysBeforeQueueing })
  expect(found(broken)).toMatch(/asleep|blocked/)
  expect(() => found(notifyAtWord({ kind: ROBUST, waiters: 1, holds: false }))).toThrow('nothing was found')
})
