/** Public packages that are compiled whole so that they can move, and that move while they work. */
import { describe, expect, test } from 'vitest'
import { driveMoved } from '../differential/move.ts'
import { show } from '../differential/drive.ts'
import { readProgram } from '../differential/programs.ts'
import { fileOf, loadMovable } from './packages.ts'

function bytes(length: number): Uint8Array {
  let seed = 0x2545f491
  return Uint8Array.from({ length }, (_, i) => {
    seed = Math.imul(seed, 1_664_525) + 1_013_904_223
    return i % 7 < 4 ? 97 + (i % 13) : seed >>> 24
  })
}

const text = Array.from(
  { length: 3 },
  (_, id) =>
    `# Title ${id}\n\n- *one* \`two\` [three](/${id})\n- **four**\n\n> five\n\n| a | b |\n|---|---|\n| ${id} | 2 |\n`,
).join('\n')

const rows = Array.from({ length: 60 }, (_, id) => ({ id, name: `row ${id}`, tags: ['a', 'b'], at: id / 7 }))

/** A function of a package, and its arguments. */
const works: {
  name: string
  file: string
  from: string
  fn: string
  args: () => unknown[]
  /** Why it stays at some safepoints. */
  obstacles?: RegExp
  least?: number
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
  ...['classes.js', 'labels.js', 'strings-and-maps.js'].map(name => ({
    name: `acorn parses ${name}`,
    from: 'acorn',
    file: 'dist/acorn.mjs',
    fn: 'parse',
    args: () => [readProgram(name), { ecmaVersion: 'latest', sourceType: 'module', locations: true }],
  })),
  {
    name: 'marked writes HTML',
    from: 'marked',
    file: 'lib/marked.esm.js',
    fn: 'marked',
    args: () => [text],
    obstacles: /a generator is on its stack|a function cannot travel/,
    least: 200,
  },
]

const copies = ['?copy=A', '?copy=B'] as const

describe('compiled whole, and moved', () => {
  test.each(works)('$name', ({ from, file, fn, args, obstacles, least = 600 }) => {
    const { plain, compiled, stats } = loadMovable(fileOf(from, file), copies[0])
    loadMovable(fileOf(from, file), copies[1])
    const expected = show(plain[fn](...args()))
    const counts = { preemptions: 0, moves: 0, obstacles: new Map<string, number>() }
    const { threw, value } = driveMoved(compiled[fn], args(), counts, { copies, first: 600 })
    if (threw) throw value
    expect(show(value) === expected, 'the results').toBe(true)
    expect(counts.preemptions).toBeGreaterThan(100)
    expect(counts.moves).toBeGreaterThan(least)
    expect([...counts.obstacles.keys()].filter(what => !obstacles?.test(what))).toEqual([])
    expect(stats.filter(({ fixed }) => fixed === null).length).toBeGreaterThan(100)
  })
})
