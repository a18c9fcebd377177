/** Public packages that are compiled whole so that they can move, and that move while they work. */
import { describe, expect, test } from 'vitest'
import { driveMoved } from '../differential/move.ts'
import { show } from '../differential/drive.ts'
import { fileOf, loadMovable } from './packages.ts'

function bytes(length: number): Uint8Array {
  let seed = 0x2545f491
  return Uint8Array.from({ length }, (_, i) => {
    seed = Math.imul(seed, 1_664_525) + 1_013_904_223
    return i % 7 < 4 ? 97 + (i % 13) : seed >>> 24
  })
}

const rows = Array.from({ length: 60 }, (_, id) => ({ id, name: `row ${id}`, tags: ['a', 'b'], at: id / 7 }))

/** A function of a package, and its arguments. */
const works: {
  name: string
  file: string
  from: string
  fn: string
  args: () => unknown[]
}[] = [
  {
    name: 'js-yaml writes rows',
    from: 'js-yaml',
    file: 'dist/js-yaml.mjs',
    fn: 'dump',
    args: () => [rows],
  },
  {
    name: 'fflate compresses',
    from: 'fflate',
    file: 'esm/browser.js',
    fn: 'zlibSync',
    args: () => [bytes(8000), { level: 6 }],
  },
]

describe('compiled whole, and moved', () => {
  test.each(works)('$name', ({ from, file, fn, args }) => {
    const { plain, compiled, stats } = loadMovable(fileOf(from, file))
    const expected = show(plain[fn](...args()))
    const counts = { preemptions: 0, moves: 0, obstacles: new Map<string, number>() }
    const { threw, value } = driveMoved(compiled[fn], args(), counts)
    if (threw) throw value
    expect(show(value) === expected, 'the results').toBe(true)
    expect(counts.preemptions).toBeGreaterThan(100)
    expect(counts.moves).toBeGreaterThan(2000)
    expect([...counts.obstacles.keys()]).toEqual([])
    expect(stats.filter(({ fixed }) => fixed === null).length).toBeGreaterThan(100)
  })
})
