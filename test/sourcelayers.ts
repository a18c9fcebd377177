import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'

/** A file may import from its own folder and from the folders before it in this list: the lower layers. */
export const layers: readonly string[] = [
  'arena',
  'machine',
  'payload',
  'sched',
  'thread',
  'coroutine',
  'futex',
  'handoff',
  'kernel',
  'sync',
  'compiler',
  'checker',
  'trace',
  'view',
  'piscina',
  'workerpool',
  'vitest',
  'durable',
  'cli',
  'index.ts',
]

export const src: string = resolve(import.meta.dirname, '../src')

export interface Import {
  readonly file: string
  readonly from: string
  readonly line: number
  /** It names types only, so nothing is loaded at run time. */
  readonly isType: boolean
}

export function importsOf(source: string, file: string): Import[] {
  const { module } = parseSync(file, source)
  const at = (offset: number): number => source.slice(0, offset).split('\n').length
  const imported = module.staticImports.map(({ moduleRequest, entries }) => ({
    request: moduleRequest,
    isType: entries.length > 0 && entries.every(entry => entry.isType),
  }))
  const exported = module.staticExports.flatMap(({ entries }) =>
    entries.map(({ moduleRequest, isType }) => ({ request: moduleRequest, isType })),
  )
  return [...imported, ...exported].flatMap(({ request, isType }) =>
    request === null ? [] : [{ file, from: request.value, line: at(request.start), isType }],
  )
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

/** The files of src that a file of src loads at run time. */
export function loadedBy(file: string, source: string): string[] {
  return importsOf(source, file)
    .filter(({ from, isType }) => from.startsWith('.') && !isType)
    .map(({ from }) => relative(src, join(dirname(join(src, file)), from)))
}

/** Files that load each other, directly or through others: one list for each such group. */
export function cyclesIn(loads: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = []
  const order = new Map<string, number>()
  const open: string[] = []
  const visit = (file: string): number => {
    let low = order.size
    order.set(file, low)
    open.push(file)
    const own = low
    for (const loaded of loads.get(file) ?? []) {
      if (!order.has(loaded)) low = Math.min(low, visit(loaded))
      else if (open.includes(loaded)) low = Math.min(low, order.get(loaded)!)
    }
    if (low !== own) return low
    const group = open.splice(open.indexOf(file))
    if (group.length > 1 || loads.get(file)?.includes(file)) cycles.push(group)
    return low
  }
  for (const file of loads.keys()) if (!order.has(file)) visit(file)
  return cycles
}
