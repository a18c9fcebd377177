import { readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { importsOf, loadedBy, sourceFiles, src } from '../test/sourcelayers.ts'

/**
 * The files of the build, and which modules of src each of them holds. Modules are named by their path in
 * src. A thread that runs a CPU loads some 200 modules, and each file costs it a search, a read and a link.
 * So the modules of a layer are one file, a chunk. Five rules:
 *
 *   [1] an entry has a file at the path of its source: programs, package.json and `new URL(…)` find it there
 *   [2] an entry that a module in a chunk imports is in its chunk too, so that there is one instance of it;
 *       its own file then exports from the chunk
 *   [3] a module with an effect is in no chunk: else every program that loads the chunk would have it.
 *       Nor is one that starts a worker, as long as no module of a chunk in its layer needs it: a bundler
 *       could not name the two files by their content, if the worker loads the chunk that names the worker
 *   [4] a layer has up to three chunks. Modules that reach an npm package are in `packages.js`, others that
 *       reach a module of Node in `node.js`, and the rest, which browsers load too, in `chunk.js`
 *   [5] the engine parses all of a file when a program imports it. So of the `lateLayers` the rest is two
 *       chunks: `chunk.js` is what `import 'heddle'` loads, and `late.js` what only other imports need
 *
 * No two files load each other: a layer imports from lower layers alone, and no module of an earlier one of
 * its chunks (`chunk.js`, `late.js`, `node.js`, `packages.js`) needs a later one.
 */
export interface DistFiles {
  /** The modules with a file of their own path. */
  readonly entries: readonly string[]
  /** Those that programs import, by `exports` in package.json. */
  readonly exported: readonly string[]
  /**
   * The path of the file that holds a module, without its extension. Null: that of the only entry that loads
   * the module.
   */
  chunkOf(module: string): string | null
  /** The files of dist that have the effect of a module: those that hold it, and its own path. */
  filesOf(module: string): readonly string[]
}

/**
 * Modules that stay files of their own though modules in chunks import them. They import no other module: a
 * plugin of bundlers replaces the first, `#node-thread`, which the machine imports, needs the second, and a
 * CPU loads the third before all else.
 */
const leaves: readonly string[] = [
  'machine/web/bundled.ts',
  'machine/node/node-clock.ts',
  'machine/node/node-codecache.ts',
]

/** Rooms with a chunk of their own: compiled programs load the runtime without the compiler. */
const separateRooms: readonly string[] = ['compiler/runtime']

/** [5] Of these layers `import 'heddle'` leaves much out: the code of CPUs, and readers of traces. */
const lateLayers: readonly string[] = ['kernel', 'trace']

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly imports: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

/** `effectNames`: the modules that have an effect when they are loaded, without their extension. */
export function distFiles(root: string, effectNames: readonly string[]): DistFiles {
  const texts = new Map(sourceFiles().map(module => [module, readFileSync(join(src, module), 'utf8')]))
  const named = namedByPackage(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest)
  const entries = new Set(named.all)
  for (const [module, text] of texts) {
    for (const target of namedByUrl(module, text)) if (texts.has(target)) entries.add(target)
  }
  const effects = new Set(effectNames.map(name => `${name}.ts`))
  const loads = new Map([...texts].map(([module, text]) => [module, loadedBy(module, text)]))
  const levels = levelsOf(texts, loads)
  const importers = importersOf(loads, named.private)
  const atImport = loadedAtImport(loads)
  const roomOf = (module: string): string =>
    separateRooms.find(room => module === `${room}.ts` || module.startsWith(`${room}/`)) ??
    module.split('/')[0]!
  const startsWorker = (module: string): boolean => /Worker\(\s*new URL\('\./.test(texts.get(module)!)
  /** In no chunk: no module in a chunk of its room loads it. */
  const isAlone = (module: string): boolean => {
    if (leaves.includes(module)) return true
    const isKept = effects.has(module) || startsWorker(module)
    if (!(isKept || entries.has(module)) || separateRooms.includes(roomOf(module))) return false
    return (importers.get(module) ?? []).every(
      other => isKept && (isAlone(other) || roomOf(other) !== roomOf(module)),
    )
  }
  const withoutExtension = (module: string): string => module.replace(/\.ts$/, '')
  const chunkOf = (module: string): string | null => {
    if (isAlone(module)) {
      const name = withoutExtension(module)
      if (leaves.includes(module)) return name
      if (startsWorker(module) && !entries.has(module)) return name
      if (!entries.has(module) || !importers.has(module)) return null
      return /^export (?!type)/m.test(texts.get(module)!) ? `${name}-shared` : name
    }
    const level = levels.get(module)!
    const isLate = level === 0 && lateLayers.includes(roomOf(module)) && !atImport.has(module)
    return `${roomOf(module)}/${isLate ? 'late' : ['chunk', 'node', 'packages'][level]}`
  }
  const filesOf = (module: string): readonly string[] => {
    const files = new Set([chunkOf(module), entries.has(module) ? withoutExtension(module) : null])
    files.delete(null)
    return files.size > 0
      ? [...files].map(name => `${name}.js`)
      : (importers.get(module) ?? []).flatMap(filesOf)
  }
  return {
    filesOf,
    // The name of a chunk is a path too: one of them needs no entry.
    entries: [...entries].filter(module => chunkOf(module) !== withoutExtension(module)).sort(),
    exported: named.exported,
    chunkOf,
  }
}

/** The modules that a program loads with `import 'heddle'`. */
function loadedAtImport(loads: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const loaded = new Set(['index.ts'])
  // The loop also visits what it adds.
  for (const module of loaded) for (const target of loads.get(module)!) loaded.add(target)
  return loaded
}

/** The modules that load a module. Those under `imports` of package.json are loaded by that name. */
function importersOf(
  loads: ReadonlyMap<string, readonly string[]>,
  byName: readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>()
  for (const [module, targets] of loads) {
    for (const target of targets) {
      if (!byName.includes(target)) importers.set(target, [...(importers.get(target) ?? []), module])
    }
  }
  return importers
}

/** The entries in package.json. Those under `imports` are imported by that name alone, never by path. */
function namedByPackage({ bin, imports, exports }: Manifest): {
  readonly all: readonly string[]
  readonly exported: readonly string[]
  readonly private: readonly string[]
} {
  const module = (path: string): string => path.replace('./dist/', '').replace(/\.js$/, '.ts')
  const hidden = Object.values(imports).flatMap(targets => Object.values(targets).map(module))
  const open = Object.values(exports).flatMap(target =>
    typeof target === 'string' ? [] : [module(target.default)],
  )
  return { all: [...open, ...hidden, ...Object.values(bin).map(module)], exported: open, private: hidden }
}

/** What a module names by `new URL('./x.ts', import.meta.url)`, its examples included. */
function namedByUrl(module: string, text: string): string[] {
  return [...text.matchAll(ownUrl)].map(([, specifier]) => posix.join(dirname(module), specifier!))
}

/** A reference of heddle's own code to one of its files or folders. */
export const ownUrl: RegExp = /\bnew URL\('(\.[^']*)', import\.meta\.url\)/g

/** 0: a module that loads modules of src alone. 1: it, or one that it loads, needs Node. 2: a package. */
function levelsOf(
  texts: ReadonlyMap<string, string>,
  loads: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, number> {
  const levels = new Map<string, number>()
  const levelOf = (module: string): number => {
    const known = levels.get(module)
    if (known !== undefined) return known
    const outside = importsOf(texts.get(module)!, module).filter(
      ({ from, isType }) => !from.startsWith('.') && !isType,
    )
    const own = outside.map(({ from }) => (from.startsWith('node:') ? 1 : 2))
    const level = Math.max(0, ...own, ...loads.get(module)!.map(levelOf))
    levels.set(module, level)
    return level
  }
  for (const module of texts.keys()) levelOf(module)
  return levels
}
