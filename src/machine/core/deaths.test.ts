import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { endsAndStarts, rescuedAsItStarts } from '../../../testing/machine/deathprograms.ts'

test.each([
  ['starts again beside a rescue', { startsAtOnce: true }],
  ['is looked at before the rescue is told', { looksFirst: true }],
  ['has its life left in its record', { keepsLife: true }],
])('the lock of a living CPU is broken where one that died %s', (_, broken) => {
  expect(found(rescuedAsItStarts(broken), {})).toMatch(/has the lock|does not hold/)
})

test('the lock of a living CPU is broken where one that ended by itself counts as dead', () => {
  expect(found(endsAndStarts({ forgetsState: true }), {})).toMatch(/has the lock|does not hold/)
})
