import { runsInOneGo } from '../coroutine/coroutine.ts'
import { FUNCTIONS_PER_MODULE } from './moduletable.ts'

export type AnyFunction = (...args: any[]) => unknown

/** A function that tasks run, as one CPU has it. */
export interface TaskFunction {
  readonly fn: AnyFunction
  readonly name: string
  /** It never stops before it returns: it needs no coroutine. */
  readonly inOneGo: boolean
  /** It is an async function: what it awaits goes on outside of any task. */
  readonly isAsync: boolean
}

/** What the booting thread is told of a module's export. */
export interface ExportedFunction {
  readonly name: string
  readonly number: number
}

/** Function number 0: loads a module on the CPU that runs it. */
export const LOAD_MODULE = 0

/** The functions of the kernel's tasks on one CPU, by number. */
export class FunctionTable {
  private readonly byNumber: (TaskFunction | undefined)[] = []
  private readonly numbers = new Map<AnyFunction, number>()
  private readonly loader: string | null
  private readonly companions: readonly string[]
  private readonly loading = new Map<string, Promise<readonly ExportedFunction[]>>()

  /** See CpuBoot. */
  constructor(loader: string | null, companions: readonly string[]) {
    this.loader = loader
    this.companions = companions
  }

  get(number: number): TaskFunction | undefined {
    return this.byNumber[number]
  }

  /** The number of a function that another CPU can find too; undefined: it exists here only. */
  numberOf(fn: AnyFunction): number | undefined {
    return this.numbers.get(fn)
  }

  set(number: number, name: string, fn: AnyFunction): void {
    this.byNumber[number] = taskFunction(name, fn)
    if (!this.numbers.has(fn)) this.numbers.set(fn, number)
  }

  /** Imports a module, once, and gives its functions their numbers. */
  load(url: string, base: number): Promise<readonly ExportedFunction[]> {
    let loading = this.loading.get(url)
    if (loading === undefined) {
      loading = this.importModule(url, base)
      this.loading.set(url, loading)
      // Another try, later, may find the file mended.
      loading.catch(() => this.loading.delete(url))
    }
    return loading
  }

  private async importModule(url: string, base: number): Promise<readonly ExportedFunction[]> {
    if (this.loader !== null && !(runtimeSymbol in globalThis)) await import(/* @vite-ignore */ this.loader)
    for (const companion of this.companions) await import(/* @vite-ignore */ companion)
    const module = (await import(/* @vite-ignore */ url)) as Record<string, unknown>
    const names = Object.keys(module)
      .filter(name => typeof module[name] === 'function')
      .sort()
    if (names.length > FUNCTIONS_PER_MODULE) {
      throw new RangeError(
        `${url} exports ${names.length} functions; a module of tasks has at most ${FUNCTIONS_PER_MODULE}`,
      )
    }
    return names.map((name, index) => {
      this.set(base + index, name, module[name] as AnyFunction)
      return { name, number: base + index }
    })
  }
}

/** Where the compiler's loader leaves its runtime: it is active on this thread. */
const runtimeSymbol: unique symbol = Symbol.for('heddle.runtime') as never

export function taskFunction(name: string, fn: AnyFunction): TaskFunction {
  const inOneGo = runsInOneGo(fn)
  const isAsync = inOneGo && Object.prototype.toString.call(fn) === '[object AsyncFunction]'
  return { fn, name, inOneGo, isAsync }
}
