/**
 * Modules that are compiled although they do not contain 'use task': other people's packages, or everything.
 * The patterns of three sources are combined: HEDDLE_COMPILE in the environment (`heddle run --compile`),
 * `"heddle": { "compile": […] }` in the package.json of the program, and `Kernel.boot({ compile })`.
 *
 *   'jpeg-js'        the package of that name; `*` matches any characters: '@acme/*'
 *   './lib/old.js'   a file, or every file in a folder; also an absolute path or a file: URL
 *   /^@acme\//       packages and files: tested against 'package/path/in/it.js'
 *   'all'            every module except heddle's own
 *   '!react'         excludes a module that other patterns select
 */
import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export type CompilePattern = string | RegExp

/** A pattern as text, for other threads and the environment. */
export function patternText(pattern: CompilePattern, folder: string): string {
  if (pattern instanceof RegExp) return `regexp:${pattern.flags}:${pattern.source}`
  const except = pattern.startsWith('!') ? '!' : ''
  const name = pattern.slice(except.length)
  if (name.startsWith('file:')) return except + fileURLToPath(name)
  return except + (isPath(name) ? resolve(folder, name) : name)
}

export const isPath = (name: string): boolean => /^\.{0,2}[/\\]|^\.{1,2}$|^[a-z]:[/\\]/i.test(name)

/** Throws a TypeError that names the option and the value, unless the value is a list of patterns. */
export function checkPatterns(
  option: string,
  patterns: unknown,
): asserts patterns is readonly CompilePattern[] {
  const hint = "give a list of package names, as in ['marked', '@acme/*'], or 'all'"
  if (!Array.isArray(patterns)) throw new TypeError(`${option}: ${String(patterns)} is not a list; ${hint}`)
  for (const pattern of patterns as unknown[]) {
    if (pattern instanceof RegExp || (typeof pattern === 'string' && pattern.replace(/^!/, '') !== ''))
      continue
    throw new TypeError(`${option}: ${JSON.stringify(pattern) ?? String(pattern)} is not a pattern; ${hint}`)
  }
}

/** `'all'`, a list of patterns, or a comma-separated text. */
export function patternList(given: string | readonly CompilePattern[]): readonly CompilePattern[] {
  if (typeof given !== 'string') return given
  return given.split(',').flatMap(part => part.trim() || [])
}

type Test = (module: { readonly file: string; readonly path: string; readonly name: string }) => boolean

function testOf(text: string): Test {
  if (text === 'all') return isForeign
  if (text.startsWith('file:')) return testOf(fileURLToPath(text))
  if (text.startsWith('regexp:')) {
    const [, flags, source] = /^regexp:([a-z]*):([^]*)$/.exec(text)!
    const pattern = new RegExp(source!, flags!.replace(/[gy]/g, ''))
    return module => isForeign(module) && pattern.test(module.path)
  }
  if (isPath(text)) {
    return anyOf([...new Set([text, realPath(text)])].map(isBelow))
  }
  const pattern = namePattern(text)
  return module => isForeign(module) && pattern.test(module.name)
}

/** A package's name, in which `*` stands for any characters. */
export function namePattern(name: string): RegExp {
  return new RegExp(`^${name.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`)
}

const isBelow = (path: string): Test => {
  const below = path.endsWith(sep) ? path : path + sep
  return ({ file }) => file === path || file.startsWith(below)
}

const anyOf =
  (tests: readonly Test[]): Test =>
  module =>
    tests.some(test => test(module))

/** Node loads a module from where its symbolic links lead; a program may be started by a link. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** The modules that are selected on this thread. */
export class Selection {
  readonly texts: string[] = []
  readonly #included: Test[] = []
  readonly #excluded: Test[] = []
  readonly #known = new Map<string, boolean>()

  add(texts: readonly string[]): void {
    for (const text of texts) {
      if (this.texts.includes(text)) continue
      this.texts.push(text)
      if (text.startsWith('!')) this.#excluded.push(testOf(text.slice(1)))
      else this.#included.push(testOf(text))
    }
    this.#known.clear()
  }

  get isEmpty(): boolean {
    return this.#included.length === 0
  }

  includes(file: string): boolean {
    if (this.#included.length === 0) return false
    let known = this.#known.get(file)
    if (known === undefined) {
      const module = moduleOf(file)
      known = this.#included.some(test => test(module)) && !this.#excluded.some(test => test(module))
      this.#known.set(file, known)
    }
    return known
  }

  /** True if a pattern excludes the file. */
  excludes(file: string): boolean {
    return this.#excluded.length > 0 && this.#excluded.some(test => test(moduleOf(file)))
  }
}

/** Packages that the compiler itself uses: compiled only if a path names them. */
const ownPackages: ReadonlySet<string> = new Set([
  'heddle',
  'oxc-parser',
  '@oxc-project/types',
  'magic-string',
  '@jridgewell/sourcemap-codec',
  'unplugin',
  'commander',
])

const isForeign: Test = ({ name }) => !ownPackages.has(name)

interface Module {
  readonly file: string
  /** The path inside the package, after the package's name. */
  readonly path: string
  readonly name: string
}

/**
 * The package of a file: by the folder that it is installed in, else by the nearest package.json with a name.
 */
export function moduleOf(file: string): Module {
  const parts = file.split(sep)
  const at = parts.lastIndexOf('node_modules')
  // Vite has a separate folder for the packages that it bundles for development.
  const bundled = /^deps(?:_\w+)?$/.test(parts[at + 2] ?? '')
    ? parts[at + 3]?.replace(/\.js$/, '')
    : undefined
  if (at >= 0 && parts[at + 1] === '.vite' && bundled !== undefined) {
    const name = bundled.startsWith('@') ? bundled.replace('_', '/') : bundled
    return { file, name, path: `${name}.js` }
  }
  if (at >= 0 && at + 2 < parts.length) {
    const length = parts[at + 1]!.startsWith('@') ? 2 : 1
    const name = parts.slice(at + 1, at + 1 + length).join('/')
    return { file, name, path: parts.slice(at + 1).join('/') }
  }
  const found = nearestManifest(dirname(file), manifest => typeof manifest.name === 'string')
  if (found === null) return { file, name: '', path: parts.join('/') }
  const name = found.manifest.name!
  return {
    file,
    name,
    path: `${name}/${file
      .slice(found.folder.length + 1)
      .split(sep)
      .join('/')}`,
  }
}

interface Manifest {
  readonly name?: string
  readonly type?: string
  readonly version?: string
  readonly heddle?: { readonly compile?: unknown }
}

const manifests = new Map<string, Manifest | null>()

function manifestIn(folder: string): Manifest | null {
  let manifest = manifests.get(folder)
  if (manifest === undefined) {
    try {
      manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
    } catch {
      manifest = null
    }
    manifests.set(folder, manifest)
  }
  return manifest
}

/** The nearest package.json in this folder or a parent for which `accepts` is true. */
export function nearestManifest(
  folder: string,
  accepts: (manifest: Manifest) => boolean = () => true,
): { readonly folder: string; readonly manifest: Manifest } | null {
  for (let at = folder; ; at = dirname(at)) {
    const manifest = manifestIn(at)
    if (manifest !== null && accepts(manifest)) return { folder: at, manifest }
    if (dirname(at) === at) return null
  }
}

/** An environment variable with comma-separated patterns. */
export const COMPILE_VARIABLE = 'HEDDLE_COMPILE'

/**
 * The patterns of the environment and of the program's package.json. If an installed tool (`next`, `nest`) is
 * the program, the package.json of the working directory counts.
 */
export function requestedPatterns(program: string | undefined): string[] {
  const isTool = program?.split(/[/\\]/).includes('node_modules') ?? true
  const folder = isTool ? process.cwd() : dirname(resolve(program!))
  const fromEnvironment = patternList(process.env[COMPILE_VARIABLE] ?? '')
  const found = nearestManifest(folder)
  const compile = found?.manifest.heddle?.compile
  const fromManifest = typeof compile === 'string' ? [compile] : (compile ?? [])
  checkPatterns(`"heddle": { "compile" } of ${join(found?.folder ?? folder, 'package.json')}`, fromManifest)
  return [
    ...fromEnvironment.map(pattern => patternText(pattern, process.cwd())),
    ...fromManifest.map(pattern => patternText(pattern, found!.folder)),
  ]
}
