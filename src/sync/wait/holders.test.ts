import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { DIES } from '../../../testing/sync/checksetup.ts'
import { dyingHolder, nameLast, namesFirst } from '../../../testing/sync/holderprograms.ts'

test('a holder that puts its name before its share has one given back that it never had', () => {
  expect(found(dyingHolder(namesFirst), DIES(0))).toMatch(/counted|given back/)
})

test('a holder that takes its name off after its share has it given back twice', () => {
  expect(found(dyingHolder(undefined, nameLast), DIES(0))).toMatch(/counted|given back/)
})
