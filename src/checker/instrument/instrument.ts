import { compile } from '../../compiler/compile.ts'
import { MARK } from './marks.ts'

/** A module after instrumentation. */
export interface Instrumented {
  readonly code: string
  readonly map: object | null
}

const CHECK_FILE = /\.check\.[cm]?[jt]sx?$/
const IMPORTS_CHECKER = /\bfrom\s*['"](?:heddle\/checker|[^'"]*\/checker\/check\.[jt]s)['"]/

/**
 * Whether a module is a check, by its name or its imports. A check and its relative imports are instrumented.
 */
export function isCheckFile(path: string, source: string): boolean {
  return CHECK_FILE.test(path) || IMPORTS_CHECKER.test(source)
}

/** The modules that the checks of a file name as literals: `{ modules: ['./ring.ts', 'package'] }`. */
export function namedModules(source: string): string[] {
  const names: string[] = []
  for (const [, list] of source.matchAll(/\bmodules\s*:\s*\[([^\]]*)\]/g)) {
    for (const [, name] of list.matchAll(/['"]([^'"]+)['"]/g)) names.push(name)
  }
  return names
}

/**
 * Instruments a module: every shared access in it becomes a step of the checker. With `coverage` it also
 * counts the statements and branches that are reached. Throws a SyntaxError that shows the place.
 */
export function instrument(source: string, file: string, runtime: string, coverage = false): Instrumented {
  const mark = `${MARK}${Math.random().toString(36).slice(2, 12).padEnd(10, '0')}`
  const { code, map, diagnostics } = compile(source, file, { mode: 'checker', runtime, coverage, mark })
  for (const { severity, message, line, column, frame } of diagnostics) {
    if (severity === 'error') throw new SyntaxError(`${message}\n${file}:${line}:${column}\n${frame}`)
  }
  return { code, map }
}
