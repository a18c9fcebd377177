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
  /** It keeps a part of its state in variables of its modules, so it finds it only in the same copy. */
  inOneCopy?: boolean
  /** Why it stays at some safepoints. */
  obstacles?: RegExp
  least?: number
  preemptions?: number
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
  ...['deflate', 'gzip'].map(fn => ({
    name: `pako: ${fn}`,
    from: 'pako',
    file: 'dist/pako.mjs',
    fn,
    args: () => [bytes(6000), { level: 9 }],
    inOneCopy: true,
    obstacles: /the module got it after it was loaded/,
    least: 10,
  })),
  ...['ln', 'sqrt', 'sin', 'atan', 'asinh'].map(fn => ({
    name: `decimal.js: ${fn}`,
    from: 'decimal.js',
    file: 'decimal.js',
    fn,
    args: () => ['0.123456789'],
    inOneCopy: true,
    obstacles: /is on its stack, and is not movable|a function that is not movable/,
    least: 10,
    preemptions: 20,
  })),
  {
    name: 'a JSON schema validator',
    from: '@cfworker/json-schema',
    file: 'dist/esm/index.js',
    fn: 'validate',
    args: () => [
      rows,
      { type: 'array', items: { required: ['id'], properties: { name: { maxLength: 5 } } } },
    ],
    obstacles: /cannot travel|is on its stack/,
    least: 10,
    preemptions: 20,
  },
]

const copies = ['?copy=A', '?copy=B'] as const

describe('compiled whole, and moved', () => {
  test.each(works)(
    '$name',
    ({ from, file, fn, args, inOneCopy, obstacles, least = 600, preemptions = 100 }) => {
      const { plain, compiled, stats } = loadMovable(fileOf(from, file), copies[0])
      if (inOneCopy !== true) loadMovable(fileOf(from, file), copies[1])
      const expected = show(plain[fn](...args()))
      const counts = { preemptions: 0, moves: 0, obstacles: new Map<string, number>() }
      const { threw, value } = driveMoved(compiled[fn], args(), counts, {
        first: 600,
        ...(from === 'decimal.js' && { self: compiled }),
        ...(inOneCopy !== true && { copies }),
      })
      if (threw) throw value
      expect(show(value) === expected, 'the results').toBe(true)
      expect(counts.preemptions).toBeGreaterThan(preemptions)
      expect(counts.moves).toBeGreaterThan(least)
      expect([...counts.obstacles.keys()].filter(what => !obstacles?.test(what))).toEqual([])
      expect(stats.filter(({ fixed }) => fixed === null).length).toBeGreaterThan(10)
    },
  )
})
