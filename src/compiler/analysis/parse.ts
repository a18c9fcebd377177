/** Parses source text, in the language that the file name shows. */
import { type OxcError as ParseError, parseSync } from 'oxc-parser'
import type { Reporter } from '../output/diagnostics.ts'
import type { Node } from './syntax.ts'

export interface Parsed {
  program: Node
  /** True for an ES module; false for CommonJS, which is sloppy by default. */
  isModule: boolean
}

/** The file name without the query that a bundler appended. Folder names may contain `#` or `?`. */
export function withoutQuery(id: string): string {
  return id.replace(/(\.\w+)(?:\?.*|#[^/\\]*)$/s, '$1')
}

type Language = 'js' | 'jsx' | 'ts' | 'tsx' | 'dts'

function languageOf(file: string): Language {
  const path = withoutQuery(file)
  if (/\.d\.[cm]?ts$/.test(path)) return 'dts'
  if (path.endsWith('.tsx')) return 'tsx'
  if (/\.[cm]?ts$/.test(path)) return 'ts'
  return 'jsx'
}

/** Deeper nesting would overflow the stack of the native parser and end the process. */
const depthMost = 1500

/** True if brackets are nested deeper than `most`. Brackets in strings count too. */
export function isTooDeep(source: string, most: number = depthMost): boolean {
  let depth = 0
  for (let at = 0; at < source.length; at++) {
    const code = source.charCodeAt(at)
    if (code === 40 || code === 91 || code === 123) {
      if (++depth > most) return true
    } else if ((code === 41 || code === 93 || code === 125) && depth > 0) depth--
  }
  return false
}

const options = { preserveParens: true, showSemanticErrors: false } as const

/** The tree, or null after it reported the syntax errors. */
export function parse(source: string, file: string, reporter: Reporter): Parsed | null {
  const path = withoutQuery(file)
  const lang = languageOf(path)
  const asScript = /\.c[jt]s$/.test(path)
  let result = parseSync(path, source, {
    ...options,
    lang,
    sourceType: asScript ? 'commonjs' : 'module',
  } as never)
  let isModule = !asScript
  if (!asScript && /\.[jt]sx?$/.test(path) && !/\.m[jt]s$/.test(path) && !result.module.hasModuleSyntax) {
    if (result.errors.length > 0 || /\b(?:require\s*\(|module\.exports|exports\.)/.test(source)) {
      const script = parseSync(path, source, { ...options, lang, sourceType: 'commonjs' } as never)
      if (script.errors.length === 0) {
        result = script
        isModule = false
      }
    }
  }
  if (reportAll(result.errors, reporter)) return null
  return { program: result.program as unknown as Node, isModule }
}

/** Reports the errors. Returns true if there are any. */
function reportAll(all: readonly ParseError[], reporter: Reporter): boolean {
  const errors = all.filter(({ severity }) => (severity as string) === 'Error')
  for (const error of errors) {
    const label = error.labels[0] ?? { start: 0, end: 0 }
    const help = error.helpMessage ? ` (${error.helpMessage})` : ''
    reporter.report('error', 'syntax', `${error.message}${help}`, label)
  }
  return errors.length > 0
}

/** Reports the early errors of a text that parses: `with` in strict code, a name declared twice. */
export function reportEarlyErrors(
  source: string,
  file: string,
  isModule: boolean,
  reporter: Reporter,
): boolean {
  return reportAll(earlyErrorsIn(source, file, isModule), reporter)
}

/**
 * The errors in a text, including those that need scopes: a name that strict code must not delete or assign,
 * a jump without a target, a name declared twice.
 */
function earlyErrorsIn(source: string, file: string, isModule: boolean): readonly ParseError[] {
  const path = withoutQuery(file)
  const sourceType = isModule ? 'module' : 'commonjs'
  const lang = languageOf(path)
  return parseSync(path, source, { ...options, showSemanticErrors: true, lang, sourceType } as never).errors
}

/** The first error in a text, or null. Builds no tree. */
export function syntaxErrorIn(source: string, file: string, isModule: boolean): string | null {
  if (isTooDeep(source, 2 * depthMost)) return 'it is nested too deeply'
  const errors = earlyErrorsIn(source, file, isModule)
  return errors.find(({ severity }) => (severity as string) === 'Error')?.message ?? null
}
