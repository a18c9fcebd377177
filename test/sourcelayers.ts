import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'

/** A file may import from its own folder and from the folders before it in this list: the lower layers. */
export const layers: readonly string[] = [
  'arena',
  'machine',
  'payload',
  'sched',
  'coroutine',
  'futex',
  'handoff',
  'kernel',
  'sync',
  'compiler',
  'checker',
  'trace',
  'piscina',
  'workerpool',
  'vitest',
  'cli',
  'index.ts',
]

export const src: string = resolve(import.meta.dirname, '../src')

export interface Import {
  readonly file: string
  readonly from: string
  readonly line: number
}

export function importsOf(source: string, file: string): Import[] {
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

/** The files of the product, without tests and checks. */
export function sourceFiles(): string[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    file => file.endsWith('.ts') && !/\.(test|check)\.ts$/.test(file),
  )
}

/** The folders of src that a file of src imports from, with its own. */
export function foldersImportedBy(file: string): string[] {
  return importsOf(readFileSync(join(src, file), 'utf8'), file)
    .filter(({ from }) => from.startsWith('.'))
    .map(({ from }) => relative(src, join(dirname(join(src, file)), from)).split('/')[0])
}
