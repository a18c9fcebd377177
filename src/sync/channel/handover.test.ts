import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { DIES } from '../../../testing/sync/checksetup.ts'
import { dyingWithPayload } from '../../../testing/sync/handoverprograms.ts'

test('a payload that has no owner while a thread sends it is never freed', () => {
  expect(found(dyingWithPayload('sends', 'settles first'), DIES(0))).toMatch(/no block is left/)
})

test('a sender that accesses a payload after the ring has it finds a freed block', () => {
  expect(found(dyingWithPayload('sends', 'settles afterwards'))).toMatch(/touched while it is one/)
})

test('a payload that still belongs to the thread when the ring names it is freed while it is in the ring', () => {
  expect(found(dyingWithPayload('sends', 'marks nothing'), DIES(0))).toMatch(
    /freed once|no block is left|touched while it is one/,
  )
})
