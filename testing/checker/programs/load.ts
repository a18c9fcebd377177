import { constants, runInThisContext } from 'node:vm'
import { instrumentChecks } from '../../../src/checker/run/loader.ts'

/** Loads an instrumented module of this folder with Node's `import`: the test runner has another one. */
export async function loadInstrumented<T>(url: URL): Promise<T> {
  instrumentChecks()
  const native = runInThisContext('url => import(url)', {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }) as (url: string) => Promise<T>
  return await native(`${url.href}?checked`)
}
