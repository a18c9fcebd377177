import { bundled } from '../web/bundled.ts'

/**
 * Imports a module by its absolute address. The one place where this is done: bundlers leave the call as it
 * stands.
 */
export function importByUrl(url: string): Promise<unknown> {
  const load = bundled[url]
  return load === undefined ? import(/* webpackIgnore: true */ /* @vite-ignore */ url) : load()
}
