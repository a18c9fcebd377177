/**
 * What a thread does with each module that Node has read: nothing, after one search, unless its text says
 * 'use task', its package is to be compiled, or it holds types that Node does not strip. Node's two ways to
 * hook loading (registerHooks in the thread, register in a thread of its own) both end here. The compiler is
 * loaded when a module needs it that is not in the cache.
 */
import { readFileSync } from 'node:fs'
import Module from 'node:module'
import { basename, dirname, join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { claimsMemory, programFile } from '../../machine/node/node-claims.ts'
import { Claims } from '../../arena/sync/claims.ts'
import type { Diagnostic } from '../compile.ts'
import { cacheFolder, cacheKey, compilerStamp, DiskCache } from './diskcache.ts'
import { selectionWarning } from './selectionwarning.ts'
import { requestedPatterns, moduleOf, nearestManifest, Selection } from './selection.ts'
import type { Language, Translation, Work } from './translate.ts'

export interface Loaded {
  format?: string | null | undefined
  source?: string | ArrayBuffer | NodeJS.TypedArray | null | undefined
}

/** The text without which a module has nothing to compile, unless it is selected. */
const directive = 'use task'

/** Whether Node erases types itself, in every file that it loads. */
export const nodeStrips: boolean = Boolean(
  (process.features as { typescript?: string | false }).typescript ?? false,
)

type Translator = typeof import('./translate.ts')

let translator: Translator | undefined
let isLoading = false

/** Gives the loader its heavy half: where it cannot `require` it by itself. */
export function setTranslator(given: Translator): void {
  translator = given
}

/** `node --permission` refuses the native part of the parser, and the parser blames npm. */
export function explainedError(error: unknown): unknown {
  const { permission } = process as { permission?: { has(scope: string): boolean } }
  if (permission === undefined || !/native binding|addon/i.test(String(error))) return error
  return new Error(
    'the compiler of heddle needs --allow-addons beside --permission: its parser, oxc-parser, is native',
    { cause: error },
  )
}

/** The compiler itself mentions the directive: while it is loaded, nothing is compiled. */
function loadedTranslator(): Translator {
  if (translator !== undefined) return translator
  isLoading = true
  try {
    translator = Module.createRequire(import.meta.url)(`./translate${suffix}`) as Translator
    return translator
  } catch (error) {
    throw explainedError(error)
  } finally {
    isLoading = false
  }
}

const suffix = import.meta.url.endsWith('.ts') ? '.ts' : '.js'

/**
 * CommonJS finds the runtime under a global symbol: some versions of Node cannot `require` a module from a
 * file that a hook has changed.
 */
const runtimeSymbol: symbol = Symbol.for('heddle.runtime')

/** Before compiled code runs: it finds its runtime, and stack traces name the lines that were written. */
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
    setRuntime(Module.createRequire(import.meta.url)(`../runtime${suffix}`))
  } finally {
    isLoading = false
  }
}

/** Of a thread that only translates for others, and runs nothing of it. */
export function withoutRuntime(): void {
  hasRuntime = true
}

/** What is compiled on this thread although it does not say so. */
export const selection: Selection = new Selection()

/** Functions that the loader has told of already, by name: nobody else says so again. */
const warnedNames = new Set<string>()

/** What other parts of heddle find the loader of their thread by. */
export interface ThreadLoader {
  /** Compiles these packages and files too, from now on. */
  include(patterns: readonly string[]): void
  /** Whether a warning has said why a function of this name is not compiled. */
  hasTold(name: string): boolean
  /** A warning that the process is to hear once, whichever of its threads comes to it. */
  warnOnce(key: string, message: string, code: string): void
  /** Where the syntax error is that an import of this module ended with; null: not found. */
  findSyntaxError(url: string): string | null
}

const loaderSymbol: symbol = Symbol.for('heddle.loader')

/** Says that this thread has a loader. `onInclude` hears of what is selected later. */
export function registerThreadLoader(onInclude: (patterns: readonly string[]) => void): void {
  const face: ThreadLoader = {
    include(patterns) {
      selection.add(patterns)
      onInclude(patterns)
    },
    hasTold: name => warnedNames.has(name),
    warnOnce,
    findSyntaxError,
  }
  Object.defineProperty(globalThis, loaderSymbol, { value: face, configurable: true, enumerable: false })
  selection.add(requestedPatterns(programFile()))
}

/**
 * Compiles what Node loaded, in place of it: the format stays, so that Node strips the types after us, where
 * it can.
 */
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

/** Compiles a text that Node is about to run as CommonJS; null: it stays as it is. */
export function compileRequired(source: string, file: string, typescript: boolean): string | null {
  if (isLoading) return null
  refuseModuleSyntax(source, file)
  if (textOf(source, file, typescript) === null) return null
  return translated(source, file, { typescript, commonjs: true }).code
}

/** A TypeScript file, for a Node that does not load it. */
export function loadTypeScript(url: string): { format: 'module' | 'commonjs'; source: string | null } {
  const file = fileURLToPath(url)
  const source = readFileSync(file, 'utf8')
  const commonjs = file.endsWith('.cts') ? true : file.endsWith('.mts') ? false : typeOf(file)
  if (commonjs) refuseModuleSyntax(source, file)
  const { code, commonjs: isCommon } = translated(source, file, { typescript: true, commonjs })
  // CommonJS is read again where Node compiles it, so that `require` and `import` give one module.
  return isCommon ? { format: 'commonjs', source: null } : { format: 'module', source: code ?? source }
}

/** What the package.json says: true, CommonJS; false, modules; null, nothing. */
function typeOf(file: string): boolean | null {
  const type = nearestManifest(dirname(file))?.manifest.type
  return type === 'module' ? false : type === 'commonjs' ? true : null
}

/**
 * `npm init -y` makes a package of CommonJS, in which the first `import` of a file fails: says what to type.
 */
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
      // A required file of a package that does not say its type: Node looks at the syntax, and so does the
      // compiler.
      if (/\.js(?:$|[?#])|\/[^./]+$/.test(url)) return { typescript: false, commonjs: null }
      return /\.ts(?:$|[?#])/.test(url) ? { typescript: true, commonjs: null } : null
    default:
      return null
  }
}

/** The text, if it is to be changed; else null. */
function textOf(source: NonNullable<Loaded['source']>, file: string, types = false): string | null {
  const wanted = types || selection.includes(file)
  if (typeof source === 'string') {
    if (!wanted && !source.includes(directive)) return null
    return !wanted && leavesOut(file) ? null : source
  }
  const bytes = bytesOf(source)
  if (!wanted && !bytes.includes(directive)) return null
  return !wanted && leavesOut(file) ? null : bytes.toString('utf8')
}

function bytesOf(source: ArrayBuffer | NodeJS.TypedArray): Buffer {
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source)
}

/** A marked file that a pattern leaves out stays plain, and that is said. */
function leavesOut(file: string): boolean {
  if (!selection.excludes(file)) return false
  warnOnce(
    `excluded ${file}`,
    `${file} says 'use task' and is not compiled: a pattern with ! leaves ${moduleOf(file).name || 'it'} out`,
    'excluded',
  )
  return true
}

function translated(source: string, file: string, language: Language): Translation {
  const whole = selection.includes(file)
  const work: Work = { whole, strips: !nodeStrips, runtime: runtimeUrl() }
  const found = compiledOnce(source, file, language, work)
  if (whole) {
    const text = selectionWarning(found.diagnostics, file)
    if (text !== null) warnOnce(`package ${file}`, text, 'partly-compiled')
    // In code of other people Node itself says what does not parse, if it is run at all.
  } else {
    for (const diagnostic of found.diagnostics) {
      if (diagnostic.severity === 'error') throw syntaxError(diagnostic)
      tell(diagnostic)
    }
  }
  if (found.code !== null) ensureRuntime()
  return found
}

/** From the cache; or else compiled, by one thread of the process while the others wait for it. */
function compiledOnce(source: string, file: string, language: Language, work: Work): Translation {
  const kept = openCache()
  if (kept === null) return loadedTranslator().translate(source, file, language, work)
  const { cache, claims, stamp } = kept
  // Modules next to it are read too, for a guess that may be an old one: a package changes its version when
  // it changes.
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

/** A thread that compiles for longer than this is taken for dead. */
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

/** For a thread that finds no environment data: Node's own, for hooks. */
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

/** One thread of the process says it, once. */
function warnOnce(key: string, message: string, code: string, detail?: string): void {
  if (!claimsHere().claim(`warning ${key}`).first) return
  process.emitWarning(message, { type: 'HeddleWarning', code, ...(detail !== undefined && { detail }) })
}

let resolvedRuntime: string | undefined

/**
 * The compiled code's runtime, as a file: code anywhere can import it, whether or not it could resolve our
 * name.
 */
function runtimeUrl(): string {
  resolvedRuntime ??=
    suffix === '.ts'
      ? new URL('../runtime.ts', import.meta.url).href
      : pathToFileURL(Module.createRequire(import.meta.url).resolve('heddle/runtime')).href
  return resolvedRuntime
}

/**
 * Looks through a module and what it imports from files of its own project, for the text that does not parse.
 */
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
