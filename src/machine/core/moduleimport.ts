import { bundled } from '../web/bundled.ts'

/**
 * Imports a module by its absolute address. All such imports are here, so that bundlers leave the call
 * unchanged.
 */
export function importByUrl(url: string): Promise<unknown> {
  const load = bundled[url]
  return load === undefined ? import(/* webpackIgnore: true */ /* @vite-ignore */ url) : load()
}
