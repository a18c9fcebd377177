/**
 * What the loader does with one module that Node has read: nothing, in one search, unless its text says 'use task'.
 * Node's two ways to hook loading (registerHooks in the thread, register in a thread of its own) both end here.
 */
import Module from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type CompileResult, compile, type Diagnostic } from './compile.ts'
import {
  composeMaps,
  inlineMapComment,
  originalPosition,
  type SourceMap,
  takeInlineMap,
} from './sourcemap.ts'

export interface Loaded {
  format?: string | null | undefined
  source?: string | ArrayBuffer | NodeJS.TypedArray | null | undefined
}

/** The text without which a module has nothing to compile. */
const directive = 'use task'

/**
 * Compiles what Node loaded, in place of it: the format stays, so that Node strips the types after us, where it can.
 * Throws a SyntaxError with a code frame for a module that does not parse.
 */
export function compileLoaded<T extends Loaded>(url: string, loaded: T): T {
  if (!url.startsWith('file:')) return loaded
  const language = languageOf(loaded.format)
  if (language === null || loaded.source === null || loaded.source === undefined) return loaded
  const source = textWithDirective(loaded.source)
  if (source === null) return loaded
  const code = compileText(source, fileURLToPath(url), language)
  return code === null ? loaded : { ...loaded, source: code }
}

export interface Language {
  /** The text holds TypeScript syntax. */
  typescript: boolean
  commonjs: boolean
}

/** Compiles a module's text; null when there is nothing to compile. The map travels inside the text. */
export function compileText(source: string, file: string, language: Language): string | null {
  const input = takeInlineMap(source)
  const {
    code: output,
    map,
    changed,
    diagnostics,
  } = compileAs(input.code, file, language, input.map !== null)
  for (const diagnostic of diagnostics) report(located(diagnostic, file, input.map))
  if (!changed) return null
  const code = language.commonjs ? output.replace(`require("${commonRuntime}")`, runtimeAccess) : output
  if (map === null) return code
  const own: SourceMap = {
    ...(map as SourceMap),
    sources: [language.commonjs ? file : pathToFileURL(file).href],
  }
  if (input.map === null) return `${code}\n${inlineMapComment(own)}\n`
  const whole = composeMaps(own, input.map)
  if (whole.sources.length === 1) whole.sources = own.sources
  return `${code}\n${inlineMapComment(whole)}\n`
}

/**
 * A transpiler before us leaves JavaScript under a TypeScript name, and a map in it; one behind us asks for the raw
 * text and calls it JavaScript already. So the format is only a guess, and the other reading is tried where it fails.
 */
function compileAs(code: string, file: string, language: Language, transpiled: boolean): CompileResult {
  const { commonjs } = language
  const runtime = commonjs ? commonRuntime : runtimeUrl()
  const named = /\.[cm]?tsx?$/.test(file)
  const typescript = language.typescript || (named && !transpiled)
  const first = compile(code, nameFor(file, typescript, commonjs), { runtime })
  if (!named || !first.diagnostics.some(({ severity }) => severity === 'error')) return first
  const second = compile(code, nameFor(file, !typescript, commonjs), { runtime })
  return second.diagnostics.some(({ severity }) => severity === 'error') ? first : second
}

/** `a<b>(c)` reads differently in the two languages: the name that the compiler sees says which the text is in. */
function nameFor(file: string, typescript: boolean, commonjs: boolean): string {
  if (commonjs) return file.replace(/\.[cm]?[jt]sx?$/, typescript ? '.cts' : '.cjs')
  return typescript ? file : file.replace(/\.[cm]?tsx?$/, '.js')
}

function languageOf(format: string | null | undefined): Language | null {
  switch (format) {
    case 'module':
      return { typescript: false, commonjs: false }
    case 'commonjs':
      return { typescript: false, commonjs: true }
    case 'module-typescript':
      return { typescript: true, commonjs: false }
    case 'commonjs-typescript':
      return { typescript: true, commonjs: true }
    default:
      return null
  }
}

function textWithDirective(source: NonNullable<Loaded['source']>): string | null {
  if (typeof source === 'string') return source.includes(directive) ? source : null
  const bytes = ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source)
  return bytes.includes(directive) ? bytes.toString('utf8') : null
}

function located(diagnostic: Diagnostic, file: string, inputMap: SourceMap | null): Diagnostic {
  const original = inputMap === null ? null : originalPosition(inputMap, diagnostic.line, diagnostic.column)
  return { ...diagnostic, file, ...original }
}

function report({ severity, message, file, line, column, frame, code }: Diagnostic): void {
  if (severity === 'error') throw new SyntaxError(`${message}\n${file}:${line}:${column}\n${frame}`)
  process.emitWarning(`${message} (${file}:${line}:${column})`, {
    type: 'HeddleWarning',
    code,
    detail: frame,
  })
}

/**
 * CommonJS finds the runtime under a global symbol, where register.ts leaves it: some versions of Node cannot `require`
 * a module from a file that a hook has changed. The two texts are of one length, so that the map holds.
 */
export const runtimeSymbol: symbol = Symbol.for('heddle.runtime')
const runtimeAccess = 'globalThis[Symbol.for("heddle.runtime")]'
const commonRuntime = 'heddle/runtime'.padEnd(runtimeAccess.length - 'require("")'.length, '/')

let resolvedRuntime: string | undefined

/** The compiled code's runtime, as a file: code anywhere can import it, whether or not it could resolve our name. */
function runtimeUrl(): string {
  resolvedRuntime ??= import.meta.url.endsWith('.ts')
    ? new URL('./runtime.ts', import.meta.url).href
    : pathToFileURL(Module.createRequire(import.meta.url).resolve('heddle/runtime')).href
  return resolvedRuntime
}
