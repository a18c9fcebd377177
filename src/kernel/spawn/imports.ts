import { codeSource, type BootedKernel } from '../boot/boot.ts'
import { loaderUrl } from '../boot/machines.ts'
import type { SpawnOptions } from '../boot/options.ts'
import { describe } from '../join/errors.ts'
import type { Task } from '../join/task.ts'
import { type ExportedFunction, importModule, LOAD_MODULE, warnOfModule } from './functions.ts'
import { missingFile } from './missingfile.ts'
import { FunctionReference, moduleView } from './modules.ts'
import { ModuleTable } from './moduletable.ts'

type Functions = Record<string, FunctionReference>
type Start = (reference: FunctionReference, args: readonly unknown[], options: SpawnOptions) => Task<unknown>

/** The modules that a kernel has imported, on the booting thread. */
export class ModuleImports {
  private readonly kernel: object
  private readonly booted: BootedKernel
  private readonly start: Start
  private readonly isSimulated: boolean
  private readonly modules: ModuleTable
  readonly imported: Map<string, Promise<Functions>> = new Map<string, Promise<Functions>>()
  private readonly functionNames = new Map<number, string>()

  constructor(kernel: object, booted: BootedKernel, isSimulated: boolean, start: Start) {
    this.kernel = kernel
    this.booted = booted
    this.isSimulated = isSimulated
    this.start = start
    this.modules = new ModuleTable(booted.view.i32, booted.view.plan.moduleTable)
  }

  /** The functions of a module, which is loaded on every CPU first. */
  import(url: string): Promise<Functions> {
    let loading = this.imported.get(url)
    if (loading === undefined) {
      loading = this.load(url)
      this.imported.set(url, loading)
      loading.catch(() => this.imported.delete(url))
    }
    return loading
  }

  /** Numbers the functions of a module that no CPU has loaded yet. `names`: all its exported functions. */
  declare(url: string, names: readonly string[]): readonly FunctionReference[] {
    const base = this.add(url)
    return [...names].sort().map((name, index) => {
      this.functionNames.set(base + index, name)
      return new FunctionReference(this.kernel, url, name, base + index)
    })
  }

  nameOf(fn: number): string | undefined {
    return this.functionNames.get(fn)
  }

  /** Adds the module to the table of the arena. Returns the number of its first function. */
  private add(url: string): number {
    const { codec, heap } = this.booted.view
    const word = codec.encode(url, 'url')
    if (word > 0) heap.publish(word)
    return this.modules.add(word)
  }

  private async load(url: string): Promise<Functions> {
    const { machine, settings } = this.booted
    // Reading files takes real time, which must not affect virtual time. Errors are reported by the CPUs.
    if (this.isSimulated) await importModule(url, codeSource(settings.compile)).catch(() => undefined)
    const args = [url, this.add(url)]
    const load = new FunctionReference(this.kernel, 'heddle', 'heddle import', LOAD_MODULE)
    const options: SpawnOptions = { priority: 'high', restartable: true }
    const loads: Task<unknown>[] = []
    for (let cpu = 0; cpu < machine.cpus; cpu++) {
      if (!machine.isActive(cpu)) continue
      loads.push(this.start(load, args, { ...options, affinity: [cpu], name: `import on CPU ${cpu}` }))
    }
    // All CPUs are being replaced: the first one that starts reports the exports.
    if (loads.length === 0) loads.push(this.start(load, args, { ...options, name: 'import' }))
    try {
      const functions = (await Promise.all(loads)) as (readonly ExportedFunction[])[]
      for (const { name, number } of functions[0]) this.functionNames.set(number, name)
      warnOfModule(url, functions[0], loaderUrl())
      return moduleView(this.kernel, url, functions[0])
    } catch (error) {
      const why = missingFile(url) ?? describe(error)
      throw new Error(`kernel.import: cannot load ${url}: ${why}`, { cause: error })
    }
  }
}
