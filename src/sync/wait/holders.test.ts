import { expect, test } from 'vitest'
import { found } from '../../checker/check.ts'
import { DIES } from '../../../testing/sync/checksetup.ts'
import { dyingHolder, nameLast, namesFirst } from '../../../testing/sync/holderprograms.ts'

test('a holder that writes its name before it takes its share loses a share that it never had', () => {
  expect(found(dyingHolder(namesFirst), DIES(0))).toMatch(/counted|given back/)
})

test('a holder that removes its name after its share has it released twice', () => {
  expect(found(dyingHolder(undefined, nameLast), DIES(0))).toMatch(/counted|given back/)
})
