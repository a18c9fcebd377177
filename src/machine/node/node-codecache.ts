import Module from 'node:module'
import { join } from 'node:path'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/**
 * V8's code of the modules that heddle's threads load, in Node's compile cache: a second start parses and
 * compiles nothing. The cache belongs to a thread, so heddle uses it on its own threads alone and leaves the
 * program's to the program. Where Node has no such cache, or its folder cannot be written, the start is only
 * slower.
 */

/** The key of the folder in the environment data of a thread: every worker inherits it. */
const FOLDER_KEY = 'heddle.codecache'

/** Sets the cache folder for the workers that this thread starts from now on; null for no cache. */
export function tellCodeCache(folder: string | null): void {
  // Coverage by V8 is less exact in functions that come from a cache.
  const isOff = folder === null || (process.env['NODE_V8_COVERAGE'] ?? '') !== ''
  setEnvironmentData(FOLDER_KEY, (isOff ? undefined : join(folder, 'code')) as never)
}

/** Makes this thread use the cache: called before the thread loads anything large. */
export function useCodeCache(): void {
  const folder = getEnvironmentData(FOLDER_KEY) as string | undefined
  const { enableCompileCache } = Module as { enableCompileCache?: (folder: string) => unknown }
  if (folder === undefined || enableCompileCache === undefined) return
  try {
    enableCompileCache(folder)
  } catch {
    // Without the cache.
  }
}
