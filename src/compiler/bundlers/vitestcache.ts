/**
 * Vitest caches transformed modules on disk, by their text and the names of the plugins. The output of the
 * compiler depends on more: on imported modules, on the plugin's options and on the coverage. So compiled
 * modules are not cached there.
 */
import type { UnpluginOptions } from 'unplugin'
import { withoutQuery } from '../analysis/parse.ts'
import type { Selection } from '../loading/selection.ts'

interface Keyed {
  readonly id: string
  readonly sourceCode: string
}

type Define = (key: (module: Keyed) => string | false | undefined) => void

/** The argument of vitest's hook; 4.x has only the second name. */
interface VitestContext {
  readonly defineCacheKeyGenerator?: Define
  readonly experimental_defineCacheKeyGenerator?: Define
}

export function vitestCache(selection: Selection): UnpluginOptions {
  const configureVitest = (context: VitestContext): void => {
    const define = context.defineCacheKeyGenerator ?? context.experimental_defineCacheKeyGenerator
    define?.(({ id, sourceCode }) =>
      sourceCode.includes('use task') || selection.includes(withoutQuery(id)) ? false : undefined)
  }
  return { name: 'heddle:vitest-cache', vite: { configureVitest } as UnpluginOptions['vite'] }
}
