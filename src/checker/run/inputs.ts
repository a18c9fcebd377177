/**
 * All inputs of the result of a check as one hash, or the reason why they cannot be known.
 *
 *   the code       each module that the check file reaches, as it was loaded
 *   the judge      the checker, the compiler and their imports; Node
 *   the question   the check's name and place in its file, the options
 *   the process    time zone and language; other environment variables and arguments, if a module mentions them
 *
 * A module that gets data from elsewhere (a file, a socket, a native addon) makes the result unknown.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { graphChanges, type LoadedModule, reachedFrom } from './modulegraph.ts'
import { shorten } from '../report/paths.ts'
import { isOwn, ownFolders } from './own.ts'

export type Inputs =
  | { readonly hash: string; readonly unknown?: undefined }
  | { readonly hash?: undefined; readonly unknown: string }

/** The modules of Node whose functions read nothing from outside of the program. */
const closed: ReadonlySet<string> = new Set(
  (
    'assert assert/strict async_hooks buffer console crypto diagnostics_channel events module path path/posix ' +
    'path/win32 perf_hooks process punycode querystring stream string_decoder timers timers/promises url util ' +
    'util/types v8 worker_threads zlib'
  ).split(' '),
)

const formats: ReadonlySet<string> = new Set(
  'module module-typescript commonjs commonjs-typescript json'.split(' '),
)

/** The inputs of a check that the modules at these URLs declare. `question`: which check, which options. */
export function inputsOf(urls: readonly string[], question: readonly unknown[]): Inputs {
  if (PRELOADS.test([...process.execArgv, process.env['NODE_OPTIONS']].join(' ')))
    return { unknown: 'Node loads other code before (--import, --require, --loader)' }
  const code = codeOf(urls)
  if (code.hash === undefined) return code
  return { hash: hashOf(JSON.stringify([judge(), code.hash, question])) }
}

const PRELOADS = /(?:^|\s)(?:-r|--(?:import|require|(?:experimental-)?loader))(?![\w-])/
/** The variables that change dates, numbers and texts in each module. */
const LANGUAGE = /^(?:TZ|LANG|LANGUAGE|LC_\w+)$/

/** The last result of `codeOf`: the checks of a file need the same one. */
let last = { urls: '', graph: -1, code: { unknown: '' } as Inputs }

function codeOf(urls: readonly string[]): Inputs {
  const list = urls.join('\n')
  const graph = graphChanges()
  if (last.urls !== list || last.graph !== graph) last = { urls: list, graph, code: readCode(urls) }
  return last.code
}

function readCode(urls: readonly string[]): Inputs {
  const hash = createHash('sha256')
  const texts: string[] = []
  for (const [url, loaded] of reachedFrom(urls)) {
    if (isOwn(url)) continue
    const builtin = builtinName(url)
    if (builtin !== undefined) {
      if (!closed.has(builtin)) return { unknown: `it imports node:${builtin}` }
      continue
    }
    const read = textOf(url, loaded)
    if (read.unknown !== undefined) return read
    const unknown = opens(read.text)
    if (unknown !== undefined) return { unknown: `${shorten(url.replace('file://', ''))} ${unknown}` }
    texts.push(read.text)
    hash.update(JSON.stringify([url, loaded?.format, read.text]))
  }
  hash.update(JSON.stringify(processValues(texts)))
  return { hash: hash.digest('hex') }
}

type Text =
  | { readonly text: string; readonly unknown?: undefined }
  | { readonly text?: undefined; readonly unknown: string }

function textOf(url: string, loaded: LoadedModule | undefined): Text {
  if (url.startsWith('data:')) return { text: url }
  if (!url.startsWith('file:')) return { unknown: `it loads ${url}` }
  const path = fileURLToPath(url.replace(/[?#].*$/, ''))
  if (loaded === undefined) {
    if (!url.startsWith(packageFolder)) return { unknown: `${path} was loaded before the check` }
    // This is a module of heddle that the command uses too.
    return { text: textsOf(withImports([path])) }
  }
  if (!formats.has(loaded.format)) return { unknown: `${path} is neither JavaScript nor JSON` }
  return { text: loaded.source ?? readFileSync(path, 'utf8') }
}

function builtinName(url: string): string | undefined {
  if (url.startsWith('node:')) return url.slice('node:'.length)
  return builtinModules.includes(url) ? url : undefined
}

/**
 * How a module gets data or code from outside other than by an import, as far as its text shows; undefined:
 * it does not.
 */
function opens(text: string): string | undefined {
  // `getBuiltinModule?(` is the declaration of a type.
  for (const [, name] of text.matchAll(
    /\bgetBuiltinModule\b(?!\s*\?[^.])(?:\s*(?:\?\.)?\s*\(\s*['"](?:node:)?([\w/]+)['"])?/g,
  )) {
    if (name === undefined) return 'gets modules of Node by a name that is not a literal'
    if (!closed.has(name)) return `gets node:${name}`
  }
  return /\b(?:dlopen|_?linkedBinding|process\s*(?:\?\.|\.)\s*binding)\b/.test(text)
    ? 'loads native code'
    : undefined
}

/**
 * The values of the process that these texts may read:
 *
 *   TZ, LANG, LC_…          always: dates and numbers depend on them
 *   env.NAME, env['NAME']   that variable
 *   env[name]               each variable whose name or prefix (`HEDDLE_`) occurs in a text
 *   env in any other way    all variables
 *   argv                    the arguments
 *
 * A comment counts like code.
 */
function processValues(texts: readonly string[]): unknown[] {
  const names = new Set<string>()
  let isComputed = false
  let isWhole = false
  let hasArguments = false
  for (const text of texts) {
    hasArguments ||= /\bargv0?\b/.test(text)
    // `env?:` is the declaration of a type.
    for (const [, dotted, quoted, computed] of text.matchAll(
      /\benv\b(?!\s*\?\s*:)(?:\s*(?:\?\.|\.)\s*(\w+)|\s*(?:\?\.)?\[\s*['"](\w+)['"]\s*\]|\s*(?:\?\.)?(\[))?/g,
    )) {
      const name = dotted ?? quoted
      if (name !== undefined) names.add(name)
      else if (computed !== undefined) isComputed = true
      else isWhole = true
    }
  }
  const { env, argv, argv0 } = process
  const isRead = (name: string): boolean =>
    isWhole ||
    LANGUAGE.test(name) ||
    names.has(name) ||
    (isComputed && texts.some(text => text.includes(name.replace(/^([^_]+_).*$/, '$1'))))
  const variables = Object.entries(env).filter(([name]) => isRead(name))
  return [variables.sort(), hasArguments ? [argv, argv0] : []]
}

/** The folder of heddle's own modules: the source tree, or the built package. */
const packageFolder: string = new URL('../../', import.meta.url).href

let known: string | undefined

/** The text of everything that judges a check: the checker, the compiler, their imports, and Node. */
function judge(): string {
  if (known !== undefined) return known
  const isSource = import.meta.url.endsWith('.ts')
  const folders = isSource ? ownFolders : [packageFolder]
  const files = folders.flatMap(folder => codeIn(fileURLToPath(folder)))
  const { version, versions, platform, arch, execArgv } = process
  known = JSON.stringify([
    hashOf(textsOf(isSource ? withImports(files) : files)),
    ['magic-string', 'oxc-parser'].map(manifestOf),
    [version, versions, platform, arch, execArgv, process.env['NODE_OPTIONS'], availableParallelism()],
    process.cwd(),
  ])
  return known
}

function codeIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.[jt]s$/.test(name) && !/\.(?:d|test|check)\.ts$/.test(name))
    .map(name => join(folder, name))
}

/** These files of heddle and all files that they name by a relative path, in a statement or a URL. */
function withImports(files: readonly string[]): string[] {
  const all = new Set(files)
  for (const file of all) {
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/['"](\.{1,2}\/[^'"\n]+\.[jt]s)['"]/g)) {
      const named = join(dirname(file), path)
      if (existsSync(named)) all.add(named)
    }
  }
  return [...all].sort()
}

function textsOf(files: readonly string[]): string {
  return JSON.stringify(files.map(file => [file, readFileSync(file, 'utf8')]))
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The manifest of a package that the checker depends on. It contains the version. */
function manifestOf(name: string): string {
  let folder = dirname(createRequire(import.meta.url).resolve(name))
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  return readFileSync(join(folder, 'package.json'), 'utf8')
}
