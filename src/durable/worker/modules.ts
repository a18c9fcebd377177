import { fileURLToPath } from 'node:url'
import { moduleKey } from '../../compiler/loading/modulekey.ts'
import type { Kernel } from '../../kernel/boot/kernel.ts'
import { FunctionReference } from '../../kernel/spawn/modules.ts'

/**
 * The functions that runs may name: those of modules that the program has imported into the kernel. A row of
 * the database never leads to an import.
 */
export class RunModules {
  private readonly kernel: Kernel
  private readonly keys = new Map<string, string>()

  constructor(kernel: Kernel) {
    this.kernel = kernel
  }

  /** Null: no module of this key is imported, or it exports no such function. */
  async find(module: string, name: string): Promise<FunctionReference | null> {
    for (const [url, functions] of this.kernel.internals.imported) {
      if (this.keyOf(url) !== module) continue
      const found = await functions.catch(() => null)
      if (found !== null && Object.hasOwn(found, name)) return found[name] as FunctionReference
    }
    return null
  }

  private keyOf(url: string): string {
    let key = this.keys.get(url)
    if (key === undefined) this.keys.set(url, (key = runModuleKey(url)))
    return key
  }
}

/** The name of a module that is the same on every machine. */
export function runModuleKey(url: string): string {
  return url.startsWith('file:') ? moduleKey(fileURLToPath(url)) : url
}
