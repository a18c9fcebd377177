import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { endsAndStarts, rescuedAsItStarts } from '../../../testing/machine/deathprograms.ts'

test.each([
  ['starts again during a rescue', { startsAtOnce: true }],
  ['is checked before the rescue is announced', { looksFirst: true }],
  ['keeps its life in its record', { keepsLife: true }],
])('the lock of a living CPU is broken if a dead CPU %s', (_, broken) => {
  expect(found(rescuedAsItStarts(broken), {})).toMatch(/has the lock|does not hold/)
})

test('the lock of a living CPU is broken if a CPU that ended by itself counts as dead', () => {
  expect(found(endsAndStarts({ forgetsState: true }), {})).toMatch(/has the lock|does not hold/)
})
