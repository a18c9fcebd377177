/**
 * Loads checks into Node: a check file and what it imports relatively (and the modules that it names) are instrumented as
 * they are loaded. Such a module is another one than the same file loaded by anybody else: its URL says `?checked`.
 */
import Module from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { instrument, isCheckFile, namedModules } from './instrument.ts'

const QUERY = '?checked'
/** The checker and the compiler stay as they are: they are what checks. */
const own: readonly string[] = ['.', '../compiler'].map(path =>
  new URL(path, import.meta.url).href.replace(/\/?$/, '/'),
)
const runtime: string = new URL(
  import.meta.url.endsWith('.ts') ? './runtime.ts' : './runtime.js',
  import.meta.url,
).href

const instrumented = new Set<string>()
const named = new Set<string>()
let registered = false

/** From here on, checks that this thread loads are instrumented. May be called more than once. */
export function instrumentChecks(): void {
  if (registered) return
  registered = true
  if (typeof Module.registerHooks !== 'function') {
    throw new Error(
      `heddle/checker needs module.registerHooks, which Node ${process.version} does not have; use Node 22.15, 23.5 or later`,
    )
  }
  process.setSourceMapsEnabled(true)
  Module.registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context)
      const fromCheck = context.parentURL !== undefined && instrumented.has(context.parentURL)
      if (!fromCheck || !resolved.url.startsWith('file:') || resolved.url.includes('?')) return resolved
      const relative = /^\.{0,2}\//.test(specifier) && !resolved.url.includes('/node_modules/')
      if ((!relative && !named.has(specifier)) || isOwn(resolved.url)) return resolved
      return { ...resolved, url: resolved.url + QUERY }
    },
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.startsWith('file:') || !isCode(loaded.format) || loaded.source == null) return loaded
      const path = fileURLToPath(url.replace(/[?#].*$/, ''))
      const wanted = url.endsWith(QUERY)
      if (!wanted && (url.includes('/node_modules/') || isOwn(url))) return loaded
      const source =
        typeof loaded.source === 'string'
          ? loaded.source
          : Buffer.from(loaded.source as Uint8Array).toString('utf8')
      if (!wanted && !isCheckFile(path, source)) return loaded
      instrumented.add(url)
      for (const name of namedModules(source)) named.add(name)
      const { code, map } = instrument(source, path, runtime)
      const comment =
        map === null
          ? ''
          : `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}\n`
      return { ...loaded, source: code + comment }
    },
  })
}

function isCode(format: string | null | undefined): boolean {
  return format === 'module' || format === 'module-typescript'
}

function isOwn(url: string): boolean {
  const bare = url.replace(/[?#].*$/, '')
  if (/\.check\.[cm]?[jt]sx?$/.test(bare) || bare.includes('/programs/')) return false
  return own.some(folder => bare.startsWith(folder) && dirname(bare).startsWith(folder.slice(0, -1)))
}
