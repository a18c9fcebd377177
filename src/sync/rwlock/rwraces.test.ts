import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { isGranted } from '../wait/countgrant.ts'
import { scene } from '../../../testing/sync/rwprograms.ts'
import { WriteWait } from './rwwaits.ts'

/** Leaves without waking the next, although it was woken to compete for the lock. */
class LeavesSilently extends WriteWait {
  override leave(context: FutexContext, waiters: readonly number[], index: number): void {
    if (index < 0 || isGranted(context.i32, waiters[0])) super.leave(context, waiters, index)
  }
}

test('a writer that is woken and cancelled, and does not wake the next, leaves it asleep at a free lock', () => {
  const waiting = scene({
    held: 'write',
    others: [
      ['is cancelled as it waits to', 'write'],
      ['waits to', 'write'],
    ],
    Write: LeavesSilently,
  })
  expect(found(waiting)).toMatch(/deadlock/)
})
