import { dirname } from 'node:path'
import {
  checkPatterns,
  COMPILE_VARIABLE,
  nearestManifest,
  patternList,
  patternText,
} from '../compiler/loading/selection.ts'
import { filePath } from './options.ts'

/**
 * The patterns that the workers of a pool compile: its option, else the package.json of the tasks' file, else
 * the environment.
 */
export function compileOf({
  compile,
  filename,
}: {
  readonly compile?: unknown
  readonly filename?: string | null
}): readonly (string | RegExp | URL)[] {
  if (compile === 'all') return ['all']
  if (compile !== undefined) {
    if (!Array.isArray(compile))
      throw new TypeError(`compile: ${String(compile)} is not a list; give package names, files, or 'all'`)
    return compile as readonly (string | RegExp | URL)[]
  }
  const asked = process.env[COMPILE_VARIABLE] ?? ''
  const fromEnvironment = patternList(asked).map(pattern => patternText(pattern, process.cwd()))
  if (typeof filename !== 'string') return fromEnvironment
  const found = nearestManifest(dirname(filePath(filename)))
  const given = found?.manifest.heddle?.compile ?? []
  const patterns = typeof given === 'string' ? [given] : given
  checkPatterns(`"heddle": { "compile" } of ${found?.folder ?? ''}/package.json`, patterns)
  return [...fromEnvironment, ...patterns.map(pattern => patternText(pattern, found?.folder ?? ''))]
}
