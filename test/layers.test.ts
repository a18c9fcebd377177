import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'

/** A file may import from its own folder and from the folders that stand before it in this list. */
const layers = [
  'arena',
  'machine',
  'sched',
  'coroutine',
  'futex',
  'handoff',
  'task',
  'sync',
  'compiler',
  'checker',
  'trace',
  'cli',
  'index.ts',
]

/** Where Node's own modules may be imported; the rest runs in browsers too. */
const nodeOnly = [
  /^machine\/node/,
  /^compiler\/(register|ondemand|hooks|loader|unplugin|bundlers\/)/,
  /^coroutine\/node/,
  /^checker\/(files|loader|parallel|register|runner|vite|watchdog|worker)/,
  /^trace\/node-/,
  /^cli\//,
]

const src = resolve(import.meta.dirname, '../src')

interface Import {
  readonly file: string
  readonly from: string
  readonly line: number
}

function importsOf(source: string, file: string): Import[] {
  const { module } = parseSync(file, source)
  const at = (offset: number): number => source.slice(0, offset).split('\n').length
  const named = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest),
    ...module.staticExports.flatMap(({ entries }) => entries.map(entry => entry.moduleRequest)),
  ]
  return named
    .filter(request => request !== null && request !== undefined)
    .map(request => ({ file, from: request.value, line: at(request.start) }))
}

function sourceFiles(): string[] {
  return (
    readdirSync(src, { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.ts') && !/\.(test|check)\.ts$/.test(file))
      // What only tests and checks use.
      .filter(file => !/\/(fixtures|differential|realcode|programs)\//.test(file))
      .filter(file => !/\/(\w+programs|checksetup|everystep)\.ts$/.test(file))
  )
}

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
        if (layerOf(target) > layerOf(join(src, file))) found.push(`${where}: a lower layer`)
      } else if (from.startsWith('node:') && !nodeOnly.some(pattern => pattern.test(file))) {
        found.push(`${where}: a Node module in code that must run in browsers`)
      }
    }
  }
  return found
}

test('every source file imports only from its own layer and those above it', () => {
  expect(violations(sourceFiles().map(file => [file, readFileSync(join(src, file), 'utf8')]))).toEqual([])
})

test('an import of a lower layer is found, and so is a Node module where there must be none', () => {
  const wrong: [string, string][] = [
    ['arena/list.ts', "import { NodeMachine } from '../machine/node.ts'\nexport {}"],
    ['machine/halt.ts', "export * from '../sched/switch.ts'"],
    ['arena/slab.ts', "import fs from 'node:fs'\nexport {}"],
  ]
  expect(violations(wrong)).toEqual([
    'src/arena/list.ts:1 imports ../machine/node.ts: a lower layer',
    'src/machine/halt.ts:1 imports ../sched/switch.ts: a lower layer',
    'src/arena/slab.ts:1 imports node:fs: a Node module in code that must run in browsers',
  ])
})
