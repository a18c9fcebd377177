/**
 * Loads checks into Node. A check file, its relative imports and the modules that it names are instrumented
 * when they are loaded. An instrumented module has `?checked` in its URL, so it is not the module that other
 * code loads from the same file.
 */
import { readFileSync } from 'node:fs'
import Module from 'node:module'
import { fileURLToPath } from 'node:url'
import { instrument, isCheckFile, namedModules } from '../instrument/instrument.ts'
import { recordImport, recordModule } from './modulegraph.ts'
import { isOwn } from './own.ts'

/** The end of the URL of an instrumented module, with the packages that are instrumented with it. */
const QUERY = /\?checked(?:&modules=([^&]*))?$/

/** The URL under which a module is loaded instrumented, and these packages with it. */
export function checkedUrl(url: string, modules: readonly string[]): string {
  const list = modules.map(encodeURIComponent).join(',')
  return `${url}?checked${list === '' ? '' : `&modules=${list}`}`
}
const runtime: string = new URL('../instrument/runtime.ts', import.meta.url).href

/** Instrumented modules, and the packages that are instrumented where they import them. */
const instrumented = new Map<string, readonly string[]>()
let registered = false
/** Whether modules that are loaded from now on count coverage. */
let covers = typeof process.env['HEDDLE_COVERAGE'] === 'string' && process.env['HEDDLE_COVERAGE'] !== ''

/** Makes modules that are instrumented from now on count coverage. */
export function coverChecks(): void {
  covers = true
}

/** Makes this thread instrument the checks that it loads from now on. May be called more than once. */
export function instrumentChecks(): void {
  if (registered) return
  registered = true
  if (typeof Module.registerHooks !== 'function') {
    throw new Error(
      `heddle/checker needs module.registerHooks, which Node ${process.version} does not have; use Node 22.15, 23.5 or later`,
    )
  }
  process.setSourceMapsEnabled(true)
  Module.registerHooks({ resolve: resolveChecked, load: loadChecked })
}

const resolveChecked: Module.ResolveHookSync = (specifier, context, nextResolve) => {
  const resolved = nextResolve(specifier, context)
  const { parentURL } = context
  const named = parentURL === undefined ? undefined : instrumented.get(parentURL)
  const relative = /^\.{0,2}\//.test(specifier) && !resolved.url.includes('/node_modules/')
  const url =
    named === undefined ||
    !resolved.url.startsWith('file:') ||
    resolved.url.includes('?') ||
    (!relative && !named.includes(specifier)) ||
    isOwn(resolved.url)
      ? resolved.url
      : checkedUrl(resolved.url, named)
  recordImport(parentURL, url)
  return { ...resolved, url }
}

const loadChecked: Module.LoadHookSync = (url, context, nextLoad) => {
  if (!url.startsWith('file:')) return nextLoad(url, context)
  const path = fileURLToPath(url.replace(/[?#].*$/, ''))
  const query = QUERY.exec(url)
  const mayBe = query !== null || !(url.includes('/node_modules/') || isOwn(url))
  const loaded = (mayBe ? loadModule(path, context.format) : undefined) ?? nextLoad(url, context)
  const source = sourceText(loaded.source)
  recordModule(url, loaded.format, source)
  if (!mayBe || !isCode(loaded.format) || source === undefined) return loaded
  if (query === null && !isCheckFile(path, source)) return loaded
  const list = query?.[1]?.split(',').map(decodeURIComponent)
  // Inside a test runner all checks of a file are one module: the modules that one check names are
  // instrumented for all of them.
  instrumented.set(url, query === null ? namedModules(source) : (list ?? []))
  const { code, map } = instrument(source, path, runtime, covers)
  const comment =
    map === null
      ? ''
      : `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}\n`
  return { ...loaded, source: code + comment }
}

function sourceText(source: Module.LoadFnOutput['source']): string | undefined {
  if (source === undefined || source === null) return undefined
  return typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString('utf8')
}

/**
 * A check in a package of `type: commonjs` is still a module, because it imports. Undefined for anything
 * else: Node loads that.
 */
function loadModule(
  path: string,
  format: string | null | undefined,
): { format: string; source: string; shortCircuit: true } | undefined {
  if (!(format?.startsWith('commonjs') === true) || !/\.[jt]sx?$/.test(path)) return undefined
  const source = readFileSync(path, 'utf8')
  if (!/^\s*(?:import|export)\b/m.test(source)) return undefined
  return { format: path.endsWith('.js') ? 'module' : 'module-typescript', source, shortCircuit: true }
}

function isCode(format: string | null | undefined): boolean {
  return format === 'module' || format === 'module-typescript'
}
