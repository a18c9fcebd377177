import { fileURLToPath } from 'node:url'
import { withoutQuery } from '../analysis/parse.ts'

/** The folder of heddle's own modules: `dist` in the package, `src` unbuilt. */
const home: string = fileURLToPath(new URL('../../', import.meta.url)).replaceAll('\\', '/')

/** The path of a module without the query that a bundler appends. */
export function pathOf(id: string): string {
  return withoutQuery(id).replaceAll('\\', '/')
}

/**
 * The path of one of heddle's own modules in its home folder, without the extension (`machine/bundled`); else
 * null.
 */
export function ownModule(id: string): string | null {
  const path = pathOf(id)
  const installed = /\/node_modules\/heddle\/dist\/(.*)\.js$/.exec(path)?.[1]
  if (installed !== undefined) return installed
  return path.startsWith(home) ? path.slice(home.length).replace(/\.[jt]s$/, '') : null
}

/** True if a reference in heddle's own code names the worker of the other platform. */
export function isOtherPlatform(specifier: string, isNode: boolean): boolean {
  return (isNode ? /\/web-[\w-]+\.[jt]s$/ : /\/node-[\w-]+\.[jt]s$/).test(specifier)
}

/** True if a reference in heddle's own code names the loader, which a bundle does not need. */
export function isLoader(specifier: string): boolean {
  return /\/installloader\.[jt]s$/.test(specifier)
}
