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

  /** Gives a module's functions their numbers. Imports it first, unless this thread has: then there is nothing to wait for. */
  load(url: string, base: number): readonly ExportedFunction[] | Promise<readonly ExportedFunction[]> {
    const module = importedHere.get(url)
    return module === undefined ? this.importAndNumber(url, base) : this.number(module, base)
  }

  private async importAndNumber(url: string, base: number): Promise<readonly ExportedFunction[]> {
    return this.number(await importModule(url, this.loader, this.companions), base)
  }

  private number(module: TaskModule, base: number): readonly ExportedFunction[] {
    return module.map(({ name, fn }, index) => {
      this.set(base + index, name, fn)
      return { name, number: base + index }
    })
  }
}

/** A module's functions, by name. */
type TaskModule = readonly { readonly name: string; readonly fn: AnyFunction }[]

/** What this thread has imported for tasks. One that failed is not here: another try, later, may find the file mended. */
const importedHere = new Map<string, TaskModule>()

/** Imports a module of tasks on this thread, with what its functions need (see CpuBoot). */
export async function importModule(
  url: string,
  loader: string | null,
  companions: readonly string[],
): Promise<TaskModule> {
  if (loader !== null && !(runtimeSymbol in globalThis)) await import(/* @vite-ignore */ loader)
  for (const companion of companions) await import(/* @vite-ignore */ companion)
  const exported = (await import(/* @vite-ignore */ url)) as Readonly<Record<string, unknown>>
  const names = Object.keys(exported).filter(name => typeof exported[name] === 'function')
  if (names.length > FUNCTIONS_PER_MODULE) {
    throw new RangeError(
      `${url} exports ${names.length} functions; a module of tasks has at most ${FUNCTIONS_PER_MODULE}`,
    )
  }
  const module = names.sort().map(name => ({ name, fn: exported[name] as AnyFunction }))
  importedHere.set(url, module)
  return module
}

/** Where the compiler's loader leaves its runtime: it is active on this thread. */
const runtimeSymbol: unique symbol = Symbol.for('heddle.runtime') as never

export function taskFunction(name: string, fn: AnyFunction): TaskFunction {
  const inOneGo = runsInOneGo(fn)
  const isAsync = inOneGo && Object.prototype.toString.call(fn) === '[object AsyncFunction]'
  return { fn, name, inOneGo, isAsync }
}
