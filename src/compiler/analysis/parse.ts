/** Source text to syntax tree, in whichever of the languages the file is written. */
import { type OxcError as ParseError, parseSync } from 'oxc-parser'
import type { Reporter } from '../output/diagnostics.ts'
import type { Node } from './syntax.ts'

export interface Parsed {
  program: Node
  /** True: `import` and `export`; false: `require` and sloppy unless it says otherwise. */
  isModule: boolean
}

/**
 * A file without the query that a bundler has put behind its ending. A folder may have a `#` or a `?` in its
 * name.
 */
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

/**
 * The parser's stack is the thread's, and what overflows it ends the process: so deep text never gets there.
 */
const depthMost = 1500

/** True when brackets are nested so deeply that no parser should see them. Counts those in strings too. */
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

/** The tree, or null after the syntax errors have been reported. */
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

/** Reports the errors, and returns true when there are any. */
function reportAll(all: readonly ParseError[], reporter: Reporter): boolean {
  const errors = all.filter(({ severity }) => (severity as string) === 'Error')
  for (const error of errors) {
    const label = error.labels[0] ?? { start: 0, end: 0 }
    const help = error.helpMessage ? ` (${error.helpMessage})` : ''
    reporter.report('error', 'syntax', `${error.message}${help}`, label)
  }
  return errors.length > 0
}

/** Reports what is wrong with a text that parses: `with` in strict code, a name that is declared twice. */
export function reportEarlyErrors(
  source: string,
  file: string,
  isModule: boolean,
  reporter: Reporter,
): boolean {
  return reportAll(earlyErrorsIn(source, file, isModule), reporter)
}

/**
 * The errors in a text. Also those that no parser finds without looking names up: a name that strict code
 * must not delete or assign, a jump without a target, a name that is declared twice.
 */
function earlyErrorsIn(source: string, file: string, isModule: boolean): readonly ParseError[] {
  const path = withoutQuery(file)
  const sourceType = isModule ? 'module' : 'commonjs'
  const lang = languageOf(path)
  return parseSync(path, source, { ...options, showSemanticErrors: true, lang, sourceType } as never).errors
}

/** The first error in a text, or null. Makes no tree of it. */
export function syntaxErrorIn(source: string, file: string, isModule: boolean): string | null {
  if (isTooDeep(source, 2 * depthMost)) return 'it is nested too deeply'
  const errors = earlyErrorsIn(source, file, isModule)
  return errors.find(({ severity }) => (severity as string) === 'Error')?.message ?? null
}
