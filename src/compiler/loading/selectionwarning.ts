/**
 * What is said of a file that was compiled because somebody selected it: all in one, nobody asked for its
 * functions by name.
 */
import type { Diagnostic } from '../compile.ts'
import { moduleOf } from './selection.ts'

/** Null: there is nothing to say. */
export function selectionWarning(diagnostics: readonly Diagnostic[], file: string): string | null {
  const { path } = moduleOf(file)
  const error = diagnostics.find(({ severity }) => severity === 'error')
  if (error !== undefined) return `${path} is not compiled: line ${error.line}: ${error.message}`
  if (diagnostics.length === 0) return null
  const some = diagnostics.slice(0, 3).map(({ message, line }) => `line ${line}: ${message}`)
  const more = diagnostics.length > some.length ? `; and ${diagnostics.length - some.length} more` : ''
  return `${path} is compiled, but not all of it: ${some.join('; ')}${more} (heddle compile --whole --stats ${file})`
}
