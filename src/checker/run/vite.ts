/**
 * For vitest: instruments files that import `heddle/checker`, files `*.check.ts`, and the relative imports of
 * both.
 */
import { checkOptions } from '../../coroutine/core/knownoptions.ts'
import { fileURLToPath } from 'node:url'
import { instrument, isCheckFile, namedModules } from '../instrument/instrument.ts'
import { withoutQuery } from '../../compiler/analysis/parse.ts'

const QUERY = '?checked'

/** The part of vite's plugin interface that is used here. */
export interface CheckerPlugin {
  readonly name: string
  readonly enforce: 'pre'
  resolveId: (
    this: {
      resolve(source: string, importer: string | undefined, options: object): Promise<{ id: string } | null>
    },
    source: string,
    importer: string | undefined,
    options: object,
  ) => Promise<string | null>
  transform: (source: string, id: string) => { code: string; map: object | null } | null
}

export interface CheckerPluginOptions {
  /** Count coverage: the test file gets it from `coverage()` of `heddle/checker`. Default false. */
  readonly coverage?: boolean
}

/** `plugins: [heddleChecker()]` in the configuration of vitest. */
export function heddleChecker(options: CheckerPluginOptions = {}): CheckerPlugin {
  checkOptions('heddleChecker(options)', options, { coverage: 'boolean' })
  const instrumented = new Set<string>()
  const named = new Set<string>()
  const here = fileURLToPath(new URL('../', import.meta.url))
  const runtime = fileURLToPath(new URL('../instrument/runtime.ts', import.meta.url))
  const isOwn = (id: string): boolean => id.startsWith(here) && !/\.check\.[cm]?[jt]sx?$/.test(id)
  return {
    name: 'heddle-checker',
    enforce: 'pre',
    async resolveId(source, importer, options) {
      if (importer === undefined || !instrumented.has(importer)) return null
      if (!/^\.{0,2}\//.test(source) && !named.has(source)) return null
      const resolved = await this.resolve(source, importer, { ...options, skipSelf: true })
      if (resolved === null || resolved.id.includes('?') || resolved.id.includes('\0')) return null
      if (isOwn(resolved.id) || (resolved.id.includes('/node_modules/') && !named.has(source))) return null
      return /\.[cm]?[jt]sx?$/.test(resolved.id) ? resolved.id + QUERY : null
    },
    transform(source, id) {
      const file = withoutQuery(id)
      const wanted = id.endsWith(QUERY)
      if (!wanted) {
        if (!/\.[cm]?[jt]sx?$/.test(file) || file.includes('/node_modules/') || isOwn(file)) return null
        if (!isCheckFile(file, source)) return null
      }
      instrumented.add(id)
      for (const name of namedModules(source)) named.add(name)
      return instrument(source, file, runtime, options.coverage)
    },
  }
}
