import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { distFiles } from '../scripts/distfiles.ts'
import { effectModules } from '../scripts/sideeffects.ts'
import { cyclesIn, importsOf, loadedBy, sourceFiles, src } from './sourcelayers.ts'

const root = join(import.meta.dirname, '..')
const { entries, chunkOf } = distFiles(root, effectModules(root))
const fileOf = (module: string): string => chunkOf(module) ?? module
const text = (module: string): string => readFileSync(join(src, module), 'utf8')

/** The files of the build that each file loads. `#node-host` and the like are loaded by that name. */
function loadsOfFiles(): Map<string, Set<string>> {
  const loads = new Map<string, Set<string>>()
  for (const module of sourceFiles()) {
    const file = fileOf(module)
    const targets = loadedBy(module, text(module)).map(fileOf)
    const all = loads.get(file) ?? new Set()
    for (const target of targets) if (target !== file) all.add(target)
    loads.set(file, all)
    // The file at the path of an entry exports from the chunk that holds it.
    if (entries.includes(module) && file !== module) loads.set(module, new Set([file]))
  }
  return loads
}

test('no files of the build load each other', () => {
  const loads = loadsOfFiles()
  expect(cyclesIn(new Map([...loads].map(([file, targets]) => [file, [...targets]])))).toEqual([])
})

test('a chunk for browsers imports neither a module of Node nor a package, and node.js no package', () => {
  const wrong = sourceFiles().flatMap(module => {
    const outside = importsOf(text(module), module).filter(
      ({ from, isType }) => !/^[.#]/.test(from) && !isType,
    )
    const file = fileOf(module)
    return outside
      .filter(
        ({ from }) => /\/(?:chunk|late)$/.test(file) || (file.endsWith('/node') && !from.startsWith('node:')),
      )
      .map(({ from }) => `${file} imports ${from}`)
  })
  expect(wrong).toEqual([])
})

test("import 'heddle' loads no code of CPUs, and no reader of traces", () => {
  const loads = loadsOfFiles()
  const loaded = new Set(['index.ts'])
  for (const file of loaded) for (const target of loads.get(file) ?? []) loaded.add(target)
  const late = [...loaded].filter(file => file.endsWith('/late'))
  expect(late).toEqual([])
  expect(fileOf('kernel/cpu/kernelcpu.ts')).toBe('kernel/late')
  expect(fileOf('trace/timeline.ts')).toBe('trace/late')
})

test('a CPU loads its program from a few files, without the compiler', () => {
  const loads = loadsOfFiles()
  const loaded = new Set(['machine/node/node-cpu.ts', 'machine/node/node-cpurun.ts', 'kernel/cpu/cpu.ts'])
  for (const file of loaded) for (const target of loads.get(file) ?? []) loaded.add(target)
  expect([...loaded].filter(file => file.startsWith('compiler/') || file.endsWith('/packages'))).toEqual([])
  expect(loaded.size).toBeLessThan(20)
})
