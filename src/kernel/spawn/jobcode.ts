import {
  type AnyFunction,
  type CodeSource,
  FunctionTable,
  LOAD_MODULE,
  type TaskFunction,
  taskFunction,
} from './functions.ts'
import { Job, LOCAL_FUNCTION, JOB_RESTARTABLE } from './job.ts'
import type { CpuBoot } from '../boot/layout.ts'
import { ModuleTable } from './moduletable.ts'
import type { KernelView } from '../boot/view.ts'

/** The code of jobs on this CPU: their functions and arguments. */
export class JobCode {
  readonly functions: FunctionTable
  readonly source: CodeSource
  private readonly view: KernelView
  private readonly modules: ModuleTable
  private readonly local = new Map<number, { fn: TaskFunction; args: readonly unknown[] }>()

  constructor(view: KernelView, { code }: CpuBoot) {
    this.view = view
    this.functions = new FunctionTable(code)
    this.source = code
    this.modules = new ModuleTable(view.i32, view.plan.moduleTable)
    this.functions.set(LOAD_MODULE, 'heddle import', (url: string, base: number) =>
      this.functions.load(url, base),
    )
  }

  /**
   * Loads all modules that the kernel has imported so far. A new CPU does this before it takes its first
   * task: a task that waited for its module there would be lost if the CPU died again. Undefined: there is
   * nothing to load.
   */
  loadModules(): Promise<unknown> | undefined {
    const loads: Promise<unknown>[] = []
    for (const { url, base } of this.modules.all()) {
      const load = this.functions.load(this.view.codec.decode(url) as string, base)
      if (load instanceof Promise) loads.push(load)
    }
    return loads.length === 0 ? undefined : Promise.allSettled(loads)
  }

  /**
   * Loads the module of the job's function, on a CPU that started later. Undefined: no known module has it.
   */
  loadModuleOf(job: number): Promise<unknown> | undefined {
    const module = this.modules.find(this.view.i32[job + Job.fn])
    if (module === undefined) return undefined
    return Promise.resolve(this.functions.load(this.view.codec.decode(module.url) as string, module.base))
  }

  /** The module and the name of a function; null: it is not an export of a module. */
  nameOf(fn: number): { readonly module: string; readonly name: string } | null {
    const module = this.modules.find(fn)
    const name = this.functions.get(fn)?.name
    if (module === undefined || name === undefined) return null
    return { module: this.view.codec.decode(module.url) as string, name }
  }

  /** Adds a function and its arguments that stay in this heap, for a job with LOCAL_FUNCTION. */
  addLocal(
    job: number,
    name: string,
    fn: AnyFunction,
    args: readonly unknown[],
    onBehalfOf?: TaskFunction['onBehalfOf'],
  ): void {
    const made = taskFunction(name, fn)
    this.local.set(job, { fn: onBehalfOf === undefined ? made : { ...made, onBehalfOf }, args })
  }

  /** Undefined: this CPU has not loaded it. */
  functionOf(job: number): TaskFunction | undefined {
    const number = this.view.i32[job + Job.fn]
    return number === LOCAL_FUNCTION ? this.local.get(job)?.fn : this.functions.get(number)
  }

  /** Called once for each start: frees the payload, unless the job may restart. */
  takeArguments(job: number): readonly unknown[] {
    const { i32, codec } = this.view
    if (i32[job + Job.fn] === LOCAL_FUNCTION) {
      const local = this.local.get(job)
      this.local.delete(job)
      return local?.args ?? []
    }
    const pointer = i32[job + Job.args]
    if (pointer === 0) return []
    if ((i32[job + Job.control] & JOB_RESTARTABLE) !== 0) return codec.decode(pointer) as readonly unknown[]
    const word = codec.take(job + Job.args)
    try {
      return codec.decode(word) as readonly unknown[]
    } finally {
      codec.free(word)
    }
  }
}
