/**
 * The modules that this thread has loaded since `instrumentChecks`, and the imports of each, as Node resolved
 * them. The text of a module is the loaded one: the file may have changed since then.
 */
import { fileURLToPath } from 'node:url'
import { isOwn } from './own.ts'

export interface LoadedModule {
  readonly format: string
  /** Undefined: Node did not show it, as for a native addon. */
  readonly source: string | undefined
}

const imports = new Map<string, Set<string>>()
const modules = new Map<string, LoadedModule>()
/** The files of these modules. */
const paths = new Set<string>()
let changes = 0

/** `importer` imports the module at `url`, by a statement, a call of `import` or `require`. */
export function recordImport(importer: string | undefined, url: string): void {
  if (importer === undefined || isOwn(importer)) return
  let known = imports.get(importer)
  if (known === undefined) imports.set(importer, (known = new Set()))
  if (known.has(url)) return
  known.add(url)
  changes++
}

export function recordModule(
  url: string,
  format: string | null | undefined,
  source: string | undefined,
): void {
  if (isOwn(url)) return
  modules.set(url, { format: format ?? '', source })
  if (url.startsWith('file:')) paths.add(pathOf(url))
  changes++
}

/** Whether a module was loaded, be it for another one that imports it. */
export function isLoaded(url: string): boolean {
  return modules.has(url)
}

/** The file of the module whose evaluation makes this call: the outermost one on the stack. */
export function evaluatedFile(): string | undefined {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = Number.POSITIVE_INFINITY
  try {
    const places = (new Error('here').stack ?? '').matchAll(/((?:file:\/\/)?\/[^()\n]*?):\d+:\d+\)?$/gm)
    return [...places].map(([, place]) => pathOf(place)).findLast(path => paths.has(path))
  } finally {
    Error.stackTraceLimit = limit
  }
}

function pathOf(place: string): string {
  const bare = place.replace(/[?#].*$/, '')
  return bare.startsWith('file:') ? fileURLToPath(bare) : bare
}

/** How often the graph has changed: equal numbers mean no load and no import in between. */
export function graphChanges(): number {
  return changes
}

/**
 * Every module that these modules reach, including themselves, in a fixed order. Modules of the checker and
 * the compiler are listed but not followed. Undefined for a module that was loaded before `instrumentChecks`.
 */
export function reachedFrom(urls: readonly string[]): [url: string, module: LoadedModule | undefined][] {
  const seen = new Set(urls)
  for (const url of seen) if (!isOwn(url)) for (const next of imports.get(url) ?? []) seen.add(next)
  return [...seen].sort().map(url => [url, modules.get(url)])
}
