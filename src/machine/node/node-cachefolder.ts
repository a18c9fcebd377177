import { lstatSync, mkdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

/** HEDDLE_CACHE: a folder, or 'off' for no cache. */
const CACHE_VARIABLE = 'HEDDLE_CACHE'

/**
 * The cache folder of a program: HEDDLE_CACHE; else in the nearest node_modules; else in the temporary
 * folder, in a folder that belongs to this user alone. Null for no cache.
 */
export function cacheFolder(program: string | undefined): string | null {
  const asked = process.env[CACHE_VARIABLE]
  if (asked === 'off' || asked === '0') return null
  if (asked !== undefined && asked !== '') return resolve(asked)
  for (let at = program === undefined ? process.cwd() : dirname(resolve(program)); ; at = dirname(at)) {
    const modules = join(at, 'node_modules')
    try {
      if (statSync(modules).isDirectory()) return join(modules, '.cache', 'heddle')
    } catch {}
    if (dirname(at) === at) break
  }
  const user = process.getuid?.()
  const own = join(tmpdir(), `heddle-cache-${user ?? 'user'}`)
  try {
    mkdirSync(own, { recursive: true, mode: 0o700 })
    const { uid, mode } = lstatSync(own)
    // The cached code is executed, so a folder that another user may write must not be used.
    if (user !== undefined && (uid !== user || (mode & 0o022) !== 0)) return null
  } catch {
    return null
  }
  return own
}
