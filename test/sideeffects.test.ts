import { join } from 'node:path'
import { expect, test } from 'vitest'
import { wrongSideEffects } from '../scripts/sideeffects.ts'

const root = join(import.meta.dirname, '..')

test('sideEffects of package.json names exactly the modules that have an effect when they are loaded', () => {
  expect(wrongSideEffects(root)).toEqual([])
})
