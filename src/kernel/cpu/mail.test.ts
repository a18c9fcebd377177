import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { beginsTooLate, messageAgainstBegin } from '../../../testing/kernel/mailprograms.ts'

test('a CPU that looks for messages before it says that it has begun the task loses one', () => {
  expect(found(() => messageAgainstBegin(beginsTooLate))).toMatch(
    'the booting thread sends the message, or the CPU asks for it',
  )
})
