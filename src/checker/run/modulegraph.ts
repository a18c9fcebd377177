/**
 * The modules that this thread has loaded since `instrumentChecks`, and the imports of each, as Node resolved
 * them. The text of a module is the loaded one: the file may have changed since then.
 */
import { isOwn } from './own.ts'

export interface LoadedModule {
  readonly format: string
  /** Undefined: Node did not show it, as for a native addon. */
  readonly source: string | undefined
}

const imports = new Map<string, Set<string>>()
const modules = new Map<string, LoadedModule>()
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
  changes++
}

/** Whether a module was loaded, be it for another one that imports it. */
export function isLoaded(url: string): boolean {
  return modules.has(url)
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
