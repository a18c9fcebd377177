/** A waiter that moves, with few preemptions, and its broken variants (handoff.check.ts explores more). */
import { expect, test } from 'vitest'
import { check, type CheckOptions, found } from '../checker/check.ts'
import { ROBUST } from '../futex/robust/mutex.ts'
import { deathOf, follows, leavesWithTheWakeup } from '../../testing/handoff/fixtures/followprograms.ts'

const options: CheckOptions = {
  races: false,
  rerun: false,
  explorer: 'preemption-bounded',
  preemptions: 1,
  allowIncomplete: true,
}
const none: CheckOptions = { ...options, preemptions: 0 }

test.each(['yield', 'sleep'] as const)('a waiter leaves at its %s, as the holder unlocks', at => {
  expect(check('leaves', options, follows({ at, other: false }))).toMatchObject({ ok: true })
})

test('a waiter that leaves with the wakeup of an unlock forgets the other waiter', () => {
  expect(found(follows({ killed: true }, leavesWithTheWakeup), options)).toMatch(
    /blocked|sleeps|lost wakeup|deadlock/i,
  )
})

test('a waiter that moves with its record on the queue is forgotten when its old CPU dies', () => {
  const setup = follows({ carries: true, other: false, dies: 'CPU A' })
  // Both recovery and the task free the record, or the task is never woken.
  expect(found(setup, { ...none, ...deathOf('CPU A') })).toMatch(/double free|lost wakeup/)
})

test.each(['CPU A', 'CPU B', 'the holder'] as const)('%s dies while a waiter moves', dies => {
  const setup = follows({ dies, kind: ROBUST, other: false })
  expect(check('dies', { ...none, ...deathOf(dies) }, setup)).toMatchObject({ ok: true })
})
