/** The single warning for a selected file: its functions were not marked one by one. */
import type { Diagnostic } from '../compile.ts'
import { moduleOf } from './selection.ts'

/** Null if there is nothing to report. */
export function selectionWarning(diagnostics: readonly Diagnostic[], file: string): string | null {
  const { path } = moduleOf(file)
  const error = diagnostics.find(({ severity }) => severity === 'error')
  if (error !== undefined) return `${path} is not compiled: line ${error.line}: ${error.message}`
  if (diagnostics.length === 0) return null
  const some = diagnostics.slice(0, 3).map(({ message, line }) => `line ${line}: ${message}`)
  const more = diagnostics.length > some.length ? `; and ${diagnostics.length - some.length} more` : ''
  return `${path} is compiled, but not all of it: ${some.join('; ')}${more} (heddle compile --whole --stats ${file})`
}
