import { constants, runInThisContext } from 'node:vm'
import { instrumentChecks } from '../../../src/checker/run/loader.ts'

/**
 * A module of this folder, instrumented, inside a test runner that has an `import` of its own: this one is
 * Node's.
 */
export async function loadInstrumented<T>(url: URL): Promise<T> {
  instrumentChecks()
  const native = runInThisContext('url => import(url)', {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }) as (url: string) => Promise<T>
  return await native(`${url.href}?checked`)
}
