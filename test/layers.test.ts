import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { cyclesIn, importsOf, layers, loadedBy, sourceFiles, src } from './sourcelayers.ts'

/** Where Node's own modules may be imported; all other code runs in browsers too. */
const nodeOnly = [
  /^machine\/node\//,
  /^compiler\/(loading|bundlers)\//,
  /^coroutine\/node/,
  /^checker\/(run\/|search\/(parallel|worker))/,
  /^(trace|view)\/node-/,
  /^(piscina|workerpool|vitest|durable)\//,
  /^cli\//,
]

function layerOf(path: string): number {
  const layer = layers.indexOf(relative(src, path).split('/')[0])
  expect(layer, `${relative(src, path)} is in a layer`).toBeGreaterThanOrEqual(0)
  return layer
}

function violations(files: Iterable<[file: string, source: string]>): string[] {
  const found: string[] = []
  for (const [file, source] of files) {
    for (const { from, line } of importsOf(source, file)) {
      const where = `src/${file}:${line} imports ${from}`
      if (from.startsWith('.')) {
        const target = join(dirname(join(src, file)), from)
        if (layerOf(target) > layerOf(join(src, file))) found.push(`${where}: an upper layer`)
      } else if (from.startsWith('node:') && !nodeOnly.some(pattern => pattern.test(file))) {
        found.push(`${where}: a Node module in code that must run in browsers`)
      }
    }
  }
  return found
}

test('every source file imports only from its own layer and lower layers', () => {
  expect(violations(sourceFiles().map(file => [file, readFileSync(join(src, file), 'utf8')]))).toEqual([])
})

test('an import of an upper layer is found, and so is a Node module in code for browsers', () => {
  const wrong: [string, string][] = [
    ['arena/trees/list.ts', "import { NodeMachine } from '../../machine/node/nodemachine.ts'\nexport {}"],
    ['machine/core/halt.ts', "export * from '../../sched/core/switch.ts'"],
    ['arena/memory/slab.ts', "import fs from 'node:fs'\nexport {}"],
  ]
  expect(violations(wrong)).toEqual([
    'src/arena/trees/list.ts:1 imports ../../machine/node/nodemachine.ts: an upper layer',
    'src/machine/core/halt.ts:1 imports ../../sched/core/switch.ts: an upper layer',
    'src/arena/memory/slab.ts:1 imports node:fs: a Node module in code that must run in browsers',
  ])
})

test('every file and folder of src is a layer or stands in one', () => {
  expect(readdirSync(src).filter(name => !layers.includes(name))).toEqual([])
  expect(layers.filter(name => !existsSync(join(src, name)))).toEqual([])
})

test('no files load each other at run time', () => {
  const loads = sourceFiles().map((file): [string, string[]] => [
    file,
    loadedBy(file, readFileSync(join(src, file), 'utf8')),
  ])
  expect(cyclesIn(new Map(loads))).toEqual([])
})

test('a cycle of imports is found, and imports of types make none', () => {
  const sources: [string, string][] = [
    ['a.ts', "import { b } from './b.ts'\nexport const a = b"],
    ['b.ts', "import { type A, c } from './c.ts'\nexport const b = c"],
    ['c.ts', "export { d } from './d.ts'\nimport './a.ts'"],
    [
      'd.ts',
      "import type { A } from './a.ts'\nimport { type B } from './b.ts'\nexport type { C } from './c.ts'",
    ],
  ]
  const found = cyclesIn(new Map(sources.map(([file, source]) => [file, loadedBy(file, source)])))
  expect(found).toEqual([['a.ts', 'b.ts', 'c.ts']])
})
