import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { DIES } from '../../../testing/sync/checksetup.ts'
import { dyingWithPayload } from '../../../testing/sync/handoverprograms.ts'

test('a payload that nobody has while a thread sends it is left for good', () => {
  expect(found(dyingWithPayload('sends', 'settles first'), DIES(0))).toMatch(/no block is left/)
})

test('a sender that looks at a payload after the ring has it finds one that a receiver has freed', () => {
  expect(found(dyingWithPayload('sends', 'settles afterwards'))).toMatch(/touched while it is one/)
})

test('a payload that is the thread’s still when the ring names it is freed under the ring', () => {
  expect(found(dyingWithPayload('sends', 'marks nothing'), DIES(0))).toMatch(
    /freed once|no block is left|touched while it is one/,
  )
})
