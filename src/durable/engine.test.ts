import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { BOSS_MIN, checkBoss } from './engine.ts'

describe('the version of pg-boss', () => {
  test.each(['10.3.2', '11.99.0', '12.0.0', '12.34.9'])('%s is refused, with the fix', version => {
    expect(() => checkBoss(version)).toThrow(
      `it needs pg-boss ${BOSS_MIN} or later, and ${version} is installed; run npm install pg-boss@^${BOSS_MIN}`,
    )
  })

  test.each([BOSS_MIN, '12.100.0', '13.0.0', null])('%s is taken', version => {
    expect(() => checkBoss(version)).not.toThrow()
  })

  test('the range of the package begins with the oldest one that is taken', () => {
    const { peerDependencies } = JSON.parse(
      readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
    ) as { peerDependencies: Record<string, string> }
    expect(peerDependencies['pg-boss']).toBe(`^${BOSS_MIN}`)
  })
})
