import { runsInOneGo } from '../../coroutine/core/coroutine.ts'
import { immovable } from '../../coroutine/core/movable.ts'
import { tellUncompiledModule } from '../../coroutine/core/markedmodule.ts'
import {
  loaderFace,
  saysTask,
  tellUncompiled,
  uncompiledText,
  warnUncompiled,
} from '../../coroutine/core/uncompiled.ts'
import { importByUrl } from '../../machine/core/moduleimport.ts'
import { runtime } from '../../machine/core/runtime.ts'
import type { EnterContext } from '../cpu/context.ts'
import { FUNCTIONS_PER_MODULE } from './moduletable.ts'
import type { CpuTask } from '../cpu/cputask.ts'

export type AnyFunction = (...args: any[]) => unknown

/** A function of tasks on one CPU. */
export interface TaskFunction {
  readonly fn: AnyFunction
  readonly name: string
  /** It is never suspended before it returns: it needs no coroutine. */
  readonly neverSuspends: boolean
  /** It is an async function: the code after an await runs outside of any task. */
  readonly isAsync: boolean
  /** A task that runs it may move to another CPU after it has started. */
  readonly isMovable: boolean
  /** It runs a part of another task: in this asynchronous context, with that task's locals and signal. */
  readonly onBehalfOf?: { readonly run: CpuTask; readonly enter: EnterContext | null }
}

/** An export of a module, as it is sent to the booting thread. */
export interface ExportedFunction {
  readonly name: string
  readonly number: number
  readonly isClass: boolean
  /** Why its task cannot move; null: it can. */
  readonly immovable: string | null
  /** It has no resumable form, and its own source does not contain 'use task'. */
  readonly isPlain: boolean
  /**
   * Why it was not compiled, if the CPU has no loader that warns: the booting thread does, once for all CPUs.
   */
  readonly warning: string | null
}

/**
 * Warns of functions and modules that begin with 'use task' but are not compiled: in a page, in a bundle, in
 * a package under Bun.
 */
export function warnOfModule(
  url: string,
  functions: readonly ExportedFunction[],
  loader: string | null,
): void {
  for (const { name, warning } of functions)
    if (warning !== null) warnUncompiled(warning, `uncompiled ${name}`)
  const isCompiled = loader !== null && !(runtime() === 'bun' && url.includes('/node_modules/'))
  if (isCompiled || functions.length === 0 || !functions.every(({ isPlain }) => isPlain)) return
  void tellUncompiledModule(url)
}

/** Function number 0: loads a module on its CPU. */
export const LOAD_MODULE = 0

/** The functions of the kernel's tasks on one CPU, by number. */
export class FunctionTable {
  private readonly byNumber: (TaskFunction | undefined)[] = []
  private readonly numbers = new Map<AnyFunction, number>()
  private readonly code: CodeSource

  constructor(code: CodeSource) {
    this.code = code
  }

  get(number: number): TaskFunction | undefined {
    return this.byNumber[number]
  }

  /** The number of a function that other CPUs can find too; undefined: it exists only on this CPU. */
  numberOf(fn: AnyFunction): number | undefined {
    return this.numbers.get(fn)
  }

  set(number: number, name: string, fn: AnyFunction): void {
    this.byNumber[number] = taskFunction(name, fn)
    if (!this.numbers.has(fn)) this.numbers.set(fn, number)
  }

  /**
   * Gives a module's functions their numbers. Imports the module first, unless this thread has: then there is
   * nothing to wait for.
   */
  load(url: string, base: number): readonly ExportedFunction[] | Promise<readonly ExportedFunction[]> {
    const module = importedHere.get(url)
    return module === undefined ? this.importAndNumber(url, base) : this.number(module, base)
  }

  private async importAndNumber(url: string, base: number): Promise<readonly ExportedFunction[]> {
    return this.number(await importModule(url, this.code), base)
  }

  private number(module: TaskModule, base: number): readonly ExportedFunction[] {
    return module.map(({ name, fn }, index) => {
      const warning = runsInOneGo(fn) ? uncompiledText(fn, name) : null
      this.set(base + index, name, fn)
      return {
        name,
        number: base + index,
        isClass: isClass(fn),
        immovable: immovable(fn),
        isPlain: this.byNumber[base + index]!.neverSuspends && !saysTask(fn),
        warning,
      }
    })
  }
}

/** A class cannot be called, so no task can run it. */
function isClass(fn: AnyFunction): boolean {
  return /^class\b/.test(Function.prototype.toString.call(fn))
}

export function classError(name: string): TypeError {
  return new TypeError(
    `spawn(${name}): ${name} is a class, and a task needs a function; export a function that creates the object, and spawn that`,
  )
}

/** A module's functions, by name. */
type TaskModule = readonly { readonly name: string; readonly fn: AnyFunction }[]

/**
 * The modules that this thread has imported for tasks. A failed import is not cached: the file may be fixed
 * later.
 */
const importedHere = new Map<string, TaskModule>()

/** How this thread loads the code of its tasks. */
export interface CodeSource {
  /** The module that compiles 'use task' functions as they are loaded; null: they are compiled already. */
  readonly loader: string | null
  /** Packages and files that are compiled without a 'use task'. */
  readonly compile: readonly string[]
  /** Modules that every CPU loads, because they register classes (payload/travelling.ts). */
  readonly companions: readonly string[]
}

/** Imports a module of tasks on this thread, with the modules that its functions need. */
export async function importModule(
  url: string,
  { loader, compile, companions }: CodeSource,
): Promise<TaskModule> {
  if (loader !== null && loaderFace() === undefined) await importByUrl(loader)
  if (compile.length > 0) loaderFace()?.include(compile)
  for (const companion of companions) await importByUrl(companion)
  const exported = functionsOf(await importOrLocate(url))
  loaderFace()?.warnOfUnmatched?.(url)
  const names = Object.keys(exported)
  if (names.length > FUNCTIONS_PER_MODULE) {
    throw new RangeError(
      `${url} exports ${names.length} functions; a module of tasks can have at most ${FUNCTIONS_PER_MODULE}; split the module`,
    )
  }
  const module = names.sort().map(name => ({ name, fn: exported[name]! }))
  importedHere.set(url, module)
  return module
}

/**
 * `work.ts` if there is only `work.js`, and vice versa: `tsc` renames files, but not the text in `new URL`.
 */
const scriptEnding = /\.([cm]?)([jt])s$/

function otherEnding(_ending: string, kind: string, language: string): string {
  return `.${kind}${language === 't' ? 'j' : 't'}s`
}

/** Whether the module itself does not exist, rather than one that it imports. */
function isMissing(error: unknown, url: string): boolean {
  if (!url.startsWith('file:')) return false
  const { code, message } = error as { code?: unknown; message?: unknown }
  const missing =
    code === 'ERR_MODULE_NOT_FOUND' || /module not found|cannot find module/i.test(String(message))
  return missing && String(message).includes(decodeURI(new URL(url).pathname))
}

/** An engine's own SyntaxError does not name the file. */
async function importOrLocate(url: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await importByUrl(url)) as Readonly<Record<string, unknown>>
  } catch (error) {
    const other = isMissing(error, url) ? url.replace(scriptEnding, otherEnding) : url
    if (other !== url) {
      const found = await importByUrl(other).catch(() => undefined)
      if (found !== undefined) return found as Readonly<Record<string, unknown>>
    }
    if (!(error instanceof SyntaxError) || /:\d+:\d+(?:\n|$)/.test(error.message)) throw error
    const found = loaderFace()?.findSyntaxError(url) ?? null
    throw found === null ? error : new SyntaxError(found, { cause: error })
  }
}

/**
 * The functions of a module. A CommonJS module may show only its `default`, which is its `module.exports`.
 */
function functionsOf(exported: Readonly<Record<string, unknown>>): Record<string, AnyFunction> {
  const found: Record<string, AnyFunction> = {}
  const whole = exported.default
  const isCommon = 'module.exports' in exported || (typeof whole === 'object' && whole !== null)
  for (const from of isCommon ? [whole as Readonly<Record<string, unknown>>, exported] : [exported]) {
    for (const name of Object.keys(from ?? {})) {
      const value = from[name]
      if (typeof value === 'function' && name !== 'module.exports') found[name] = value as AnyFunction
    }
  }
  return found
}

export function taskFunction(name: string, fn: AnyFunction): TaskFunction {
  const neverSuspends = runsInOneGo(fn)
  if (neverSuspends) tellUncompiled(fn, name)
  const isAsync = neverSuspends && Object.prototype.toString.call(fn) === '[object AsyncFunction]'
  return { fn, name, neverSuspends, isAsync, isMovable: !neverSuspends && immovable(fn) === null }
}
