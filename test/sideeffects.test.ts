import { join } from 'node:path'
import { expect, test } from 'vitest'
import { wrongSideEffects } from '../scripts/sideeffects.ts'

const root = join(import.meta.dirname, '..')

test('sideEffects of package.json names the modules that do something as they load, and no others', () => {
  expect(wrongSideEffects(root)).toEqual([])
})
