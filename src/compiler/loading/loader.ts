/**
 * The handling of each module that Node reads on this thread. A module stays as it is unless it contains 'use
 * task', its package is selected, or it has types that Node does not strip. Both of Node's hook interfaces
 * (registerHooks in the thread, register in a separate thread) end here. The compiler itself is loaded for
 * the first module that is not in the cache.
 */
import { readFileSync } from 'node:fs'
import Module from 'node:module'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { claimsMemory, programFile } from '../../machine/node/node-claims.ts'
import { ownFolder } from '../../machine/core/ownfolder.ts'
import { Claims } from '../../arena/sync/claims.ts'
import type { Diagnostic } from '../compile.ts'
import { cacheFolder, cacheKey, compilerStamp, DiskCache } from './diskcache.ts'
import { selectionWarning } from './selectionwarning.ts'
import { requestedPatterns, moduleOf, nearestManifest, Selection } from './selection.ts'
import { whyUnmatched } from './unmatched.ts'
import type { Language, Translation, Work } from './translate.ts'

export interface Loaded {
  format?: string | null | undefined
  source?: string | ArrayBuffer | NodeJS.TypedArray | null | undefined
}

/** Without this text, a module is compiled only if it is selected. */
const directive = 'use task'

/** True if Node strips the types of every file that it loads. */
export const nodeStrips: boolean = Boolean(
  (process.features as { typescript?: string | false }).typescript ?? false,
)

type Translator = typeof import('./translate.ts')

let translator: Translator | undefined
let isLoading = false

/** Sets the compiling half of the loader, if the thread cannot `require` it. */
export function setTranslator(given: Translator): void {
  translator = given
}

/** Replaces the parser's error under `node --permission`, which wrongly blames npm. */
export function explainedError(error: unknown): unknown {
  const { permission } = process as { permission?: { has(scope: string): boolean } }
  if (permission === undefined || !/native binding|addon/i.test(String(error))) return error
  return new Error(
    "heddle's compiler needs --allow-addons with --permission: its parser, oxc-parser, is native",
    { cause: error },
  )
}

/** The compiler's own source contains the directive: nothing is compiled while it is loaded. */
function loadedTranslator(): Translator {
  if (translator !== undefined) return translator
  isLoading = true
  try {
    translator = required(new URL('./translate.ts', import.meta.url)) as Translator
    return translator
  } catch (error) {
    throw explainedError(error)
  } finally {
    isLoading = false
  }
}

/** One of heddle's own modules, loaded synchronously: the same instance that an `import` of it returns. */
function required(module: URL): unknown {
  return Module.createRequire(import.meta.url)(fileURLToPath(module))
}

/**
 * CommonJS output finds the runtime under a global symbol: some versions of Node cannot `require` a module
 * from a file that a hook changed.
 */
const runtimeSymbol: symbol = Symbol.for('heddle.runtime')

/** Set before compiled code runs: the runtime is available, and stack traces show the original lines. */
let hasRuntime = false

export function setRuntime(runtime: unknown): void {
  Object.defineProperty(globalThis, runtimeSymbol, { value: runtime, configurable: true, enumerable: false })
  process.setSourceMapsEnabled(true)
  hasRuntime = true
}

function ensureRuntime(): void {
  if (hasRuntime) return
  hasRuntime = true
  isLoading = true
  try {
    setRuntime(required(new URL('../runtime.ts', import.meta.url)))
  } finally {
    isLoading = false
  }
}

/** For a thread that only compiles for others, and runs none of the code. */
export function withoutRuntime(): void {
  hasRuntime = true
}

/** The modules that are compiled on this thread although they have no directive. */
export const selection: Selection = new Selection()

/** The functions about which the loader has warned, by name: the runtime must not warn again. */
const warnedNames = new Set<string>()

/** The loader of a thread, for other parts of heddle. */
interface ThreadLoader {
  /** Selects these packages and files too, from now on. */
  include(patterns: readonly string[]): void
  /** True if a warning has explained why the function of this name is not compiled. */
  hasTold(name: string): boolean
  /** Warns once in the process, from whichever thread is first. */
  warnOnce(key: string, message: string, code: string): void
  /** Warns of patterns that select nothing, for the tasks of this module. */
  warnOfUnmatched(url: string): void
  /** The position of the syntax error that made an import of this module fail; null if it is not found. */
  findSyntaxError(url: string): string | null
}

const loaderSymbol: symbol = Symbol.for('heddle.loader')

/** Registers the loader of this thread. `onInclude` is called with each later selection. */
export function registerThreadLoader(onInclude: (patterns: readonly string[]) => void): void {
  const face: ThreadLoader = {
    include(patterns) {
      selection.add(patterns)
      onInclude(patterns)
    },
    hasTold: name => warnedNames.has(name),
    warnOnce,
    warnOfUnmatched,
    findSyntaxError,
  }
  Object.defineProperty(globalThis, loaderSymbol, { value: face, configurable: true, enumerable: false })
  selection.add(requestedPatterns(programFile()))
}

/** Compiles a loaded module. The format stays, so that Node strips the types afterwards, if it can. */
export function compileLoaded<T extends Loaded>(url: string, loaded: T): T {
  if (isLoading || !url.startsWith('file:')) return loaded
  const language = languageOf(loaded.format, url)
  if (language === null || loaded.source === null || loaded.source === undefined) return loaded
  const file = fileURLToPath(url)
  if (language.commonjs) refuseModuleSyntax(loaded.source, file)
  const source = textOf(loaded.source, file)
  if (source === null) return loaded
  const { code } = translated(source, file, language)
  return code === null ? loaded : { ...loaded, source: code }
}

/** Compiles the text of a file that is required; null if it stays as it is. */
export function compileRequired(
  source: string,
  file: string,
  typescript: boolean,
  isModule: boolean = false,
): string | null {
  if (isLoading) return null
  if (!isModule) refuseModuleSyntax(source, file)
  if (textOf(source, file, typescript) === null) return null
  return translated(source, file, { typescript, commonjs: isModule ? false : requiredAs(file) }).code
}

/** How Node reads a file that is required: without a type in package.json, its syntax decides. */
function requiredAs(file: string): boolean | null {
  return /\.c[jt]s$/.test(file) || typeOf(file) === true ? true : null
}

/** A TypeScript file, for a Node that cannot load it. */
export function loadTypeScript(url: string): { format: 'module' | 'commonjs'; source: string | null } {
  const file = fileURLToPath(url)
  const source = readFileSync(file, 'utf8')
  const commonjs = file.endsWith('.cts') ? true : file.endsWith('.mts') ? false : typeOf(file)
  if (commonjs) refuseModuleSyntax(source, file)
  const { code, commonjs: isCommon } = translated(source, file, { typescript: true, commonjs })
  // Node reads CommonJS again when it compiles it, so that `require` and `import` return one module.
  return isCommon ? { format: 'commonjs', source: null } : { format: 'module', source: code ?? source }
}

/** The type in package.json: true for CommonJS, false for ES modules, null if missing. */
function typeOf(file: string): boolean | null {
  const type = nearestManifest(dirname(file))?.manifest.type
  return type === 'module' ? false : type === 'commonjs' ? true : null
}

/** `npm init -y` makes a CommonJS package, in which the first `import` fails. The error names the fix. */
function refuseModuleSyntax(source: NonNullable<Loaded['source']>, file: string): void {
  if (!/\.[jt]s$/.test(file) || file.includes(`${sep}node_modules${sep}`)) return
  const text = typeof source === 'string' ? source : bytesOf(source).toString('utf8')
  if (!/^[ \t]*(?:import|export)[\s{*'"]/m.test(text)) return
  const found = nearestManifest(dirname(file))
  if (found?.manifest.type !== 'commonjs' || !loadedTranslator().isModuleSyntax(text, file)) return
  const name = basename(file)
  throw new SyntaxError(
    `${file} has \`import\` or \`export\`, and ${join(found.folder, 'package.json')} says "type": "commonjs". ` +
      `Run \`npm pkg set type=module\`, or name the file ${name.replace(/(.s)$/, 'm$1')}`,
  )
}

function languageOf(format: string | null | undefined, url: string): Language | null {
  switch (format) {
    case 'module':
      return { typescript: false, commonjs: false }
    case 'commonjs':
      return { typescript: false, commonjs: true }
    case 'module-typescript':
      return { typescript: true, commonjs: false }
    case 'commonjs-typescript':
      return { typescript: true, commonjs: true }
    case 'typescript':
      return { typescript: true, commonjs: null }
    case null:
    case undefined:
      // A required file of a package without a type: Node decides by the syntax, and so does the compiler.
      if (/\.js(?:$|[?#])|\/[^./]+$/.test(url)) return { typescript: false, commonjs: null }
      return /\.ts(?:$|[?#])/.test(url) ? { typescript: true, commonjs: null } : null
    default:
      return null
  }
}

/** The text if it must be changed, else null. */
function textOf(source: NonNullable<Loaded['source']>, file: string, types = false): string | null {
  const wanted = types || selection.includes(file)
  const given = typeof source === 'string' ? source : bytesOf(source)
  if (!wanted && !given.includes(directive)) return null
  const text = typeof given === 'string' ? given : given.toString('utf8')
  if (wanted) return text
  return (file.startsWith(ownPath) && !ownDirective.test(text)) || leavesOut(file) ? null : text
}

/** Messages in heddle's own files contain the directive: in them it must be a statement on its own line. */
const ownPath: string = fileURLToPath(ownFolder)
const ownDirective = /^\s*['"]use task(?: movable)?['"]/m

function bytesOf(source: ArrayBuffer | NodeJS.TypedArray): Buffer {
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source)
}

/** Warns of a file with the directive that a pattern excludes. */
function leavesOut(file: string): boolean {
  if (!selection.excludes(file)) return false
  warnOnce(
    `excluded ${file}`,
    `${file} contains 'use task' and is not compiled: a pattern with ! excludes ${moduleOf(file).name || 'it'}`,
    'excluded',
  )
  return true
}

function warnOfUnmatched(url: string): void {
  const files = [programFile(), url.startsWith('file:') ? fileURLToPath(url) : undefined, 'package.json']
  const places = files.filter(file => file !== undefined).map(file => resolve(file))
  for (const text of selection.texts) {
    const why = unmatchedHere.has(text) ? null : whyUnmatched(text, places)
    unmatchedHere.add(text)
    if (why !== null) warnOnce(`unmatched ${text}`, `compile: '${text}' selects nothing: ${why}`, 'unmatched')
  }
}

/** The patterns that were checked on this thread. */
const unmatchedHere = new Set<string>()

function translated(source: string, file: string, language: Language): Translation {
  const whole = selection.includes(file)
  const work: Work = { whole, strips: !nodeStrips, runtime: runtimeUrl() }
  const found = compiledOnce(source, file, language, work)
  if (whole) {
    const text = selectionWarning(found.diagnostics, file)
    if (text !== null) warnOnce(`package ${file}`, text, 'partly-compiled')
    // In other people's code, Node itself reports syntax errors, if the code runs at all.
  } else {
    for (const diagnostic of found.diagnostics) {
      if (diagnostic.severity === 'error') throw syntaxError(diagnostic)
      tell(diagnostic)
    }
  }
  if (found.code !== null) ensureRuntime()
  return found
}

/** The cached output; else compiles, on one thread of the process while the others wait for it. */
function compiledOnce(source: string, file: string, language: Language, work: Work): Translation {
  const kept = openCache()
  if (kept === null) return loadedTranslator().translate(source, file, language, work)
  const { cache, claims, stamp } = kept
  // Imported modules are read too, but only for estimates, which may be outdated: a package changes its
  // version with its files.
  const version = work.whole ? nearestManifest(file)?.manifest.version : undefined
  const key = cacheKey([stamp, file, language, work, version], source)
  const hit = cache.read(key)
  if (hit !== null) return hit
  const claim = claims.claim(key)
  if (!claim.first) {
    claim.wait(COMPILE_MS_MOST)
    const made = cache.read(key)
    if (made !== null) return made
  }
  try {
    const made = loadedTranslator().translate(source, file, language, work)
    cache.write(key, made)
    return made
  } finally {
    if (claim.first) claim.done()
  }
}

/** A thread that compiles for longer than this is considered dead. */
const COMPILE_MS_MOST = 60_000

interface Kept {
  readonly cache: DiskCache
  readonly claims: Claims
  readonly stamp: string
}

let kept: Kept | null | undefined

function openCache(): Kept | null {
  if (kept !== undefined) return kept
  const folder = cacheFolder(programFile())
  const here = fileURLToPath(new URL('../', import.meta.url))
  const version = nearestManifest(here)?.manifest.version ?? ''
  kept =
    folder === null
      ? null
      : { cache: new DiskCache(folder), claims: claimsHere(), stamp: compilerStamp(here, version) }
  return kept
}

let claimsOfProcess: Claims | undefined

function claimsHere(): Claims {
  claimsOfProcess ??= new Claims(claimsMemory())
  return claimsOfProcess
}

/** For a thread without environment data: Node's own thread for hooks. */
export function setClaimsMemory(memory: SharedArrayBuffer): void {
  claimsOfProcess = new Claims(memory)
}

function syntaxError({ message, file, line, column, frame }: Diagnostic): SyntaxError {
  return new SyntaxError(`${message}\n${file}:${line}:${column}\n${frame}`)
}

function tell({ message, file, line, column, frame, code }: Diagnostic): void {
  const place = `${file}:${line}:${column}`
  for (const [, name] of message.matchAll(/`([^`]+)`/g)) warnedNames.add(name!)
  warnOnce(`${code} ${place}`, `${message} (${place})`, code, frame)
}

/** Warns once in the process. */
function warnOnce(key: string, message: string, code: string, detail?: string): void {
  if (!claimsHere().claim(`warning ${key}`).first) return
  process.emitWarning(message, { type: 'HeddleWarning', code, ...(detail !== undefined && { detail }) })
}

let resolvedRuntime: string | undefined

/** The URL of the runtime file, which code in any folder can import. */
function runtimeUrl(): string {
  resolvedRuntime ??= import.meta.url.endsWith('.ts')
    ? new URL('../runtime.ts', import.meta.url).href
    : pathToFileURL(Module.createRequire(import.meta.url).resolve('heddle/runtime')).href
  return resolvedRuntime
}

/** Searches a module and the project files that it imports for the syntax error. */
function findSyntaxError(url: string): string | null {
  const { importsOf, syntaxErrorOf } = loadedTranslator()
  const seen = new Set<string>()
  const queue = [url]
  for (let next = queue.pop(); next !== undefined && seen.size < 500; next = queue.pop()) {
    if (seen.has(next) || !next.startsWith('file:')) continue
    seen.add(next)
    const file = fileURLToPath(next)
    if (!/\.[cm]?[jt]s$/.test(file) || file.includes(`${sep}node_modules${sep}`)) continue
    try {
      const source = readFileSync(file, 'utf8')
      const error = syntaxErrorOf(source, file)
      if (error !== null) return error
      for (const name of importsOf(source, file))
        if (/^\.|^file:/.test(name)) queue.push(new URL(name, next).href)
    } catch {}
  }
  return null
}
