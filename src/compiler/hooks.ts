/** The hooks for `module.register`, which runs them in a thread of their own: for a Node that has no registerHooks. */
import type { LoadHook } from 'node:module'
import { compileLoaded } from './loader.ts'

/** CommonJS is left to Module.prototype._compile, which sees what `require` loads as well. */
export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context)
  return loaded.format === 'commonjs' || loaded.format === 'commonjs-typescript'
    ? loaded
    : compileLoaded(url, loaded)
}
