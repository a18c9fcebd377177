import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CallFrame, type Profile, stretchesOf } from './stretches.ts'

const frame = (functionName: string, url = ''): CallFrame => ({
  functionName,
  url,
  lineNumber: 0,
  columnNumber: 0,
})

/**
 * A stack is a path in this tree: 1 root, 2 idle, 3 code of the program, 4 code of the program called by 3, 5
 * a built-in called by 4, 6 module loading below 3.
 */
const profile = (samples: number[]): Profile => ({
  startTime: 0,
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 3] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('outer', 'file:///a.js'), children: [4, 6] },
    { id: 4, callFrame: frame('inner', 'file:///b.js'), children: [5] },
    { id: 5, callFrame: frame('parse') },
    { id: 6, callFrame: frame('load', 'node:internal/modules/cjs/loader') },
  ],
  samples,
  timeDeltas: samples.map(() => 1000),
})
const isOwn = (url: string): boolean => url.startsWith('file:')
const always = [{ from: 0, to: 1e9 }]

test('a run of samples in code of the program is one stretch, named after its most expensive function', () => {
  const found = stretchesOf(profile([2, 3, 4, 4, 4, 2, 3, 2]), always, isOwn)
  expect(found.map(({ ms, hot, entry }) => [ms, hot.functionName, entry.functionName])).toEqual([
    [4, 'inner', 'outer'],
    [1, 'outer', 'outer'],
  ])
})

test('a safepoint ends a stretch; frequent safepoints leave no stretch', () => {
  const gaps = [
    { from: 0, to: 2500 },
    { from: 2500, to: 5500 },
  ]
  expect(stretchesOf(profile([4, 4, 4, 4, 4, 4, 4, 4]), gaps, isOwn).map(({ ms }) => ms)).toEqual([3, 2])
})

test('a stretch names the built-in that took the time; module loading is no stretch', () => {
  expect(stretchesOf(profile([5, 5, 4]), always, isOwn)).toMatchObject([
    { ms: 3, builtIn: 'parse', hot: { functionName: 'inner' } },
  ])
  expect(stretchesOf(profile([6, 6, 6]), always, isOwn)).toEqual([])
})

test('time in which the system descheduled a thread is not charged to its code', () => {
  const { nodes } = profile([])
  const found = stretchesOf(
    { nodes, startTime: 0, samples: [4, 4], timeDeltas: [1000, 900_000] },
    always,
    isOwn,
  )
  expect(found[0]!.ms).toBeLessThan(10)
})

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'heddle-doctor-test-'))
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'slow'), { recursive: true })
  symlinkSync(join(import.meta.dirname, '../..'), join(modules, 'heddle'))
  writeFileSync(join(modules, 'slow', 'package.json'), '{ "name": "slow", "main": "index.js" }')
  writeFileSync(
    join(modules, 'slow', 'index.js'),
    'exports.slow = function slow(n) {\n  let s = 0\n  for (let i = 0; i < n; i++) s = (s + Math.imul(i, i)) | 0\n  return s\n}\n',
  )
  writeFileSync(join(folder, 'package.json'), '{ "name": "patient", "type": "module" }')
  writeFileSync(
    join(folder, 'work.ts'),
    "import { slow } from 'slow'\nexport function run(n: number): number {\n  'use task'\n  return slow(n)\n}\n",
  )
  const kernel = join(import.meta.dirname, '../kernel/boot/kernel.ts')
  writeFileSync(
    join(folder, 'main.ts'),
    `import { Kernel } from '${kernel}'
     const kernel = await Kernel.boot({ cpus: 1 })
     const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
     await kernel.spawn(work.run, [4e8])
     await kernel.close()`,
  )
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Finding {
  function: string
  package: string
  place: string
  longestMs: number
  advice: string
}

function examine(...args: string[]): Promise<Finding[]> {
  return new Promise((resolve, reject) => {
    const main = join(import.meta.dirname, 'main.ts')
    const command = [main, 'doctor', '--json', '--at-least', '30', ...args, 'main.ts']
    execFile(process.execPath, command, { cwd: folder }, (_, stdout, stderr) => {
      const line = stderr.split('\n').find(text => text.startsWith('{'))
      if (line === undefined) reject(new Error(`${stdout}\n${stderr}`))
      else resolve((JSON.parse(line) as { findings: Finding[] }).findings)
    })
  })
}

test('names the function, its package and the option; with that option the function is no longer listed', async () => {
  const before = await examine()
  expect(before[0]).toMatchObject({
    function: 'slow',
    package: 'slow',
    place: 'node_modules/slow/index.js:1',
    advice: expect.stringContaining('--compile slow') as string,
  })
  const after = await examine('--compile', 'slow')
  expect(after.filter(found => found.function === 'slow')).toEqual([])
})
