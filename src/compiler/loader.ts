/**
 * What the loader does with one module that Node has read: nothing, in one search, unless its text says 'use task'.
 * Node's two ways to hook loading (registerHooks in the thread, register in a thread of its own) both end here.
 */
import Module from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { compile, type Diagnostic } from './compile.ts'
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
export function compileText(source: string, file: string, { typescript, commonjs }: Language): string | null {
  const input = takeInlineMap(source)
  const { code, map, changed, diagnostics } = compile(input.code, nameFor(file, typescript, commonjs), {
    runtime: commonjs ? runtimePath() : pathToFileURL(runtimePath()).href,
  })
  for (const diagnostic of diagnostics) report(located(diagnostic, file, input.map))
  if (!changed) return null
  const stripped = typescript && !nodeStrips ? Module.stripTypeScriptTypes(code) : code
  if (map === null) return stripped
  const own: SourceMap = { ...(map as SourceMap), sources: [commonjs ? file : pathToFileURL(file).href] }
  const whole = input.map === null ? own : { ...composeMaps(own, input.map), sources: own.sources }
  return `${stripped}\n${inlineMapComment(whole)}\n`
}

/** True where Node itself removes the types of what a hook hands it as module-typescript or commonjs-typescript. */
const nodeStrips: boolean = Boolean((process.features as { typescript?: unknown }).typescript)

/**
 * A transpiler that ran before us leaves JavaScript under a TypeScript name; `a<b>(c)` reads differently in the two,
 * so the name that the compiler sees says what the text is. In CommonJS the name says that too.
 */
function nameFor(file: string, typescript: boolean, commonjs: boolean): string {
  if (commonjs) return file.replace(/\.[cm]?[jt]s$/, typescript ? '.cts' : '.cjs')
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

let resolvedRuntime: string | undefined

/** The compiled code's runtime, as a file: code anywhere can import it, whether or not it could resolve our name. */
function runtimePath(): string {
  resolvedRuntime ??= import.meta.url.endsWith('.ts')
    ? fileURLToPath(new URL('./runtime.ts', import.meta.url))
    : Module.createRequire(import.meta.url).resolve('heddle/runtime')
  return resolvedRuntime
}
