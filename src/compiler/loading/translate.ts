/**
 * The compiling half of the loader: translates the text of one module. It is loaded for the first module that
 * needs it.
 */
import { parseSync } from 'oxc-parser'
import { pathToFileURL } from 'node:url'
import { type CompileResult, compile, type Diagnostic } from '../compile.ts'
import { Lines } from '../output/lines.ts'
import { moduleKey } from './modulekey.ts'
import { importedCostsOf } from './neighbours.ts'
import {
  composeMaps,
  inlineMapComment,
  originalPosition,
  type SourceMap,
  takeInlineMap,
} from '../output/sourcemap.ts'
import { decoratorIn, stripTypes, usingIn } from './striptypes.ts'

export interface Language {
  typescript: boolean
  /** Null if only the syntax shows it, as in Node. */
  commonjs: boolean | null
}

/** The steps that a text needs. */
export interface Work {
  /** Compiles every function, as if the module began with 'use task'. */
  readonly whole: boolean
  /** Erases the types, because Node does not. */
  readonly strips: boolean
  /** The module from which compiled modules import their runtime. */
  readonly runtime: string
}

/** A translated text: plain data, which is cached on disk. */
export interface Translation {
  /** Null if the text is unchanged. */
  readonly code: string | null
  readonly commonjs: boolean
  readonly diagnostics: readonly Diagnostic[]
}

/** Never throws: a text that cannot be parsed has an error among the diagnostics. */
export function translate(source: string, file: string, given: Language, work: Work): Translation {
  const commonjs = given.commonjs ?? !isModuleSyntax(source, file)
  const language: KnownLanguage = { typescript: given.typescript, commonjs }
  let text = source
  if (work.strips && given.typescript) {
    try {
      text = stripTypes(source, file, !commonjs)
    } catch (error) {
      return { code: null, commonjs, diagnostics: [unstripped(error as Error, file)] }
    }
    language.typescript = null
    if (!work.whole && !text.includes('use task')) return { code: text, commonjs, diagnostics: [] }
  }
  const { code, diagnostics } = compileText(text, file, language, work)
  return { code: code ?? (text === source ? null : text), commonjs, diagnostics }
}

function unstripped({ message }: Error, file: string): Diagnostic {
  const [first = '', place = '', ...frame] = message.split('\n')
  const [line = '1', column = '1'] = place.slice(file.length + 1).split(':')
  return {
    severity: 'error',
    message: first,
    file,
    line: Number(line),
    column: Number(column),
    frame: frame.join('\n'),
    code: 'types',
  }
}

interface KnownLanguage {
  /** Null after the types were erased. */
  typescript: boolean | null
  commonjs: boolean
}

function compileText(
  source: string,
  file: string,
  language: KnownLanguage,
  work: Work,
): { code: string | null; diagnostics: Diagnostic[] } {
  const input = takeInlineMap(source)
  const { code: output, map, changed, diagnostics: found } = compileAs(input, file, language, work)
  const diagnostics = found.map(diagnostic => located(diagnostic, file, input.map))
  if (!changed) return { code: null, diagnostics }
  const code = language.commonjs
    ? output.replace(`require("${commonRuntime}")`, runtimeAccess(output))
    : output
  if (map === null) return { code, diagnostics }
  const own: SourceMap = {
    ...(map as SourceMap),
    sources: [language.commonjs ? file : pathToFileURL(file).href],
  }
  if (input.map === null) return { code: `${code}\n${inlineMapComment(own)}\n`, diagnostics }
  const all = composeMaps(own, input.map)
  if (all.sources.length === 1) all.sources = own.sources
  return { code: `${code}\n${inlineMapComment(all)}\n`, diagnostics }
}

/**
 * Compiles a text whose language is only a guess. An earlier transpiler leaves JavaScript under a TypeScript
 * name, with a map in it; a later one asks for the raw text and calls it JavaScript already. If one language
 * fails, the other is tried.
 */
function compileAs(
  { code, map }: ReturnType<typeof takeInlineMap>,
  file: string,
  language: KnownLanguage,
  { whole, runtime: own }: Work,
): CompileResult {
  const { commonjs } = language
  const options = {
    runtime: commonjs ? commonRuntime : own,
    whole,
    neighbour: importedCostsOf(file),
    ...(code.includes('use task movable') && { key: moduleKey(file) }),
  }
  if (language.typescript === null) return compile(code, nameFor(file, false, commonjs), options)
  const named = /\.[cm]?tsx?$/.test(file)
  const typescript = language.typescript || (named && map === null)
  const first = compile(code, nameFor(file, typescript, commonjs), options)
  if (!named || !first.diagnostics.some(({ severity }) => severity === 'error')) return first
  const second = compile(code, nameFor(file, !typescript, commonjs), options)
  return second.diagnostics.some(({ severity }) => severity === 'error') ? first : second
}

/** A file name that shows the language to the compiler: `a<b>(c)` differs between the two. */
function nameFor(file: string, typescript: boolean, commonjs: boolean): string {
  if (commonjs) return file.replace(/(\.[cm]?[jt]sx?)?$/, typescript ? '.cts' : '.cjs')
  if (typescript) return file
  return file.replace(/(\.[cm]?[jt]sx?)?$/, '.mjs')
}

function located(diagnostic: Diagnostic, file: string, inputMap: SourceMap | null): Diagnostic {
  const original = inputMap === null ? null : originalPosition(inputMap, diagnostic.line, diagnostic.column)
  return { ...diagnostic, file, ...original }
}

/**
 * True for `import`, `export` or a top-level `await`: Node's rule if neither the name nor package.json
 * decides.
 */
export function isModuleSyntax(source: string, file: string): boolean {
  const lang = /\.[cm]?ts$/.test(file) ? 'ts' : 'js'
  const script = parseSync(file, source, { lang, sourceType: 'commonjs' } as never)
  if (script.module.hasModuleSyntax) return true
  if (!script.errors.some(isError)) return false
  const module = parseSync(file, source, { lang, sourceType: 'module' } as never)
  return !module.errors.some(isError)
}

const isError = ({ severity }: { severity: string }): boolean => severity === 'Error'

/** The first syntax error of a text, with its position and the lines around it, or null. */
export function syntaxErrorOf(source: string, file: string): string | null {
  const lang = /\.[cm]?ts$/.test(file) ? 'ts' : 'js'
  const sourceType = /\.c[jt]s$/.test(file) ? 'commonjs' : 'unambiguous'
  const error = parseSync(file, source, { lang, sourceType } as never).errors.find(isError as never)
  if (error === undefined)
    return (
      (lang === 'ts' ? typeErrorOf(source, file, sourceType) : null) ??
      decoratorIn(source, file) ??
      usingIn(source, file)
    )
  const lines = new Lines(source)
  const { start, end } = error.labels[0] ?? { start: 0, end: 0 }
  const { line, column } = lines.at(start)
  return `${error.message}\n${file}:${line}:${column}\n${lines.frame(start, Math.min(end, start + 80))}`
}

/** An `enum` and the like, which Node refuses without a position. */
function typeErrorOf(source: string, file: string, sourceType: string): string | null {
  try {
    stripTypes(source, file, sourceType !== 'commonjs')
    return null
  } catch (error) {
    return (error as SyntaxError).message
  }
}

/** The specifiers that a text imports statically. */
export function importsOf(source: string, file: string): string[] {
  const lang = /\.[cm]?ts$/.test(file) ? 'ts' : 'js'
  const { module } = parseSync(file, source, { lang, sourceType: 'unambiguous' } as never)
  return [...module.staticImports, ...module.staticExports.flatMap(({ entries }) => entries)].flatMap(
    ({ moduleRequest }) => moduleRequest?.value ?? [],
  )
}

/**
 * CommonJS output finds the runtime under a global symbol: some versions of Node cannot `require` a module
 * from a file that a hook changed. Both texts have the same length, so that the map stays valid.
 */
const access = 'globalThis[globalThis.Symbol.for("heddle.runtime")]'
const commonRuntime = 'heddle/runtime'.padEnd(access.length - 'require("")'.length, '/')

/** A module may have variables of these names: lodash has a `Symbol`, core-js a `globalThis`. */
function runtimeAccess(output: string): string {
  if (!declares(output, 'globalThis') || declares(output, 'global')) return access
  return access.replaceAll('globalThis', 'global'.padEnd('globalThis'.length))
}

function declares(text: string, name: string): boolean {
  if (!text.includes(name)) return false
  const variable = `\\b(?:var|let|const)\\s(?:[^;]{0,500}?,)?\\s*${name}\\s*(?:=(?!=)|[,;\\n]|$)`
  return new RegExp(`${variable}|\\b(?:function|class)\\s+${name}\\b`).test(text)
}
