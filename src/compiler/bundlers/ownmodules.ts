import { fileURLToPath } from 'node:url'
import { withoutQuery } from '../analysis/parse.ts'

/** The folder of heddle's own modules: `dist` in the package, `src` unbuilt. */
const home: string = fileURLToPath(new URL('../../', import.meta.url)).replaceAll('\\', '/')

/** A file's path without what a bundler adds to it. */
export function pathOf(id: string): string {
  return withoutQuery(id).replaceAll('\\', '/')
}

/**
 * The path of one of heddle's own modules from its home, without the ending (`machine/bundled`); null for
 * others.
 */
export function ownModule(id: string): string | null {
  const path = pathOf(id)
  const installed = /\/node_modules\/heddle\/dist\/(.*)\.js$/.exec(path)?.[1]
  if (installed !== undefined) return installed
  return path.startsWith(home) ? path.slice(home.length).replace(/\.[jt]s$/, '') : null
}

/** Whether a reference of heddle's own leads to the worker of the other platform. */
export function isOtherPlatform(specifier: string, isNode: boolean): boolean {
  return (isNode ? /\/web-[\w-]+\.[jt]s$/ : /\/node-[\w-]+\.[jt]s$/).test(specifier)
}

/** Whether a reference of heddle's own leads to the loader, which a bundle has no use for. */
export function isLoader(specifier: string): boolean {
  return /\/ondemand\.[jt]s$/.test(specifier)
}
