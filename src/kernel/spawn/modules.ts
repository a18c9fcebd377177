import { show } from '../../coroutine/core/knownoptions.ts'
import { printsAs } from '../../coroutine/core/printed.ts'
import { staysHere } from '../../payload/staying.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { type AnyFunction, classError, type ExportedFunction } from './functions.ts'
import { type SpawnOptions } from '../boot/options.ts'

declare const kinds: unique symbol

/**
 * A reference to a function of a module: the argument of `kernel.spawn`. The function itself is on the CPUs.
 */
export interface Spawnable<A extends readonly unknown[] = readonly any[], T = unknown> {
  readonly name: string
  readonly module: string
  /** Only for the types: its parameters and result. */
  readonly [kinds]?: (...args: A) => T
}

/**
 * The arguments of `spawn` after the function: its arguments, which may be omitted if it needs none, and the
 * options.
 */
export type SpawnArguments<A extends readonly unknown[]> = [] extends A
  ? [args?: A, options?: SpawnOptions]
  : [args: A, options?: SpawnOptions]

/**
 * The result of a task that runs a function: the return value of a generator, the value of a promise, else
 * the value.
 */
export type ResultOf<R> =
  R extends Generator<any, infer T, any>
    ? Awaited<T>
    : R extends AsyncGenerator<any, any, any>
      ? never
      : R extends Blocking<infer T>
        ? Awaited<T>
        : Awaited<R>

/** A module as `kernel.import` returns it: only its functions. */
export type ModuleView<M> = {
  readonly [K in keyof M as M[K] extends AnyFunction ? K : never]: M[K] extends (...args: infer A) => infer R
    ? Spawnable<A, ResultOf<R>>
    : never
}

/** The object behind a `Spawnable`. */
export class FunctionReference implements Spawnable {
  readonly name: string
  readonly module: string
  /** @internal Its kernel, and its number there. */
  readonly kernel: object
  /** @internal */
  readonly number: number
  /** @internal */
  readonly isClass: boolean
  /** @internal Why its tasks cannot move; null: they can, or no CPU has loaded it yet. */
  readonly immovable: string | null

  constructor(
    kernel: object,
    module: string,
    name: string,
    number: number,
    isClass: boolean = false,
    immovable: string | null = null,
  ) {
    this.kernel = kernel
    this.module = module
    this.name = name
    this.number = number
    this.isClass = isClass
    this.immovable = immovable
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly name: string; readonly module: string } {
    return { name: this.name, module: this.module }
  }

  get [Symbol.toStringTag](): string {
    return 'Spawnable'
  }
}

printsAs(FunctionReference, 'Spawnable')
staysHere(FunctionReference, 'let the task import its module')

/** What any object is asked for: to await it, to print it, to write it as JSON. */
const askedOfAll = new Set(['then', 'toJSON', ...Object.getOwnPropertyNames(Object.prototype)])

/** The functions of a module by name; reading another name throws an error that lists them. */
export function moduleView(
  kernel: object,
  url: string,
  functions: readonly ExportedFunction[],
): Record<string, FunctionReference> {
  const view: Record<string, FunctionReference> = Object.create(null)
  for (const { name, number, isClass, immovable } of functions) {
    view[name] = new FunctionReference(kernel, url, name, number, isClass, immovable)
  }
  return new Proxy(Object.freeze(view), {
    get(target, key) {
      if (typeof key === 'symbol' || key in target) return target[key as string]
      if (askedOfAll.has(key)) return undefined
      const known = Object.keys(target).join(', ') || 'no function at all'
      throw new TypeError(`${url} exports no function ${key}; it exports ${known}`)
    },
  })
}

/** The reference in an argument of `spawn`. Throws a TypeError that says what is wrong with it. */
export function referenceOf(kernel: object, fn: unknown): FunctionReference {
  if (fn instanceof FunctionReference) {
    if (fn.isClass) throw classError(fn.name)
    if (fn.kernel === kernel) return fn
    throw new TypeError(
      `spawn(${fn.name}): the function belongs to another kernel; import its module in this one`,
    )
  }
  if (typeof fn === 'function') {
    throw new TypeError(
      `spawn(${fn.name || 'function'}): a function of this thread cannot run on a CPU; export it from a module, and spawn it from the result of await kernel.import(url)`,
    )
  }
  throw new TypeError(
    `spawn(${show(fn)}): not a function of a module; give a function from the result of await kernel.import(url)`,
  )
}

/** The error of `spawn` with `movable: true`. */
export function immovableError(name: string, why: string): TypeError {
  return new TypeError(`spawn(${name}, args, { movable: true }): a task of ${name} cannot move: ${why}`)
}

/** The URL of a module, absolute. */
export function moduleUrl(url: unknown): string {
  if (url instanceof URL) return url.href
  if (typeof url === 'string') {
    if (/^[a-z][a-z\d+.-]+:/i.test(url)) return url
    if (url.startsWith('/')) return `file://${encodeURI(url)}`
    if (!/^\.{1,2}\/|\.[cm]?[jt]s$/.test(url)) {
      throw new TypeError(
        `import(${show(url)}): the name of a package, which a CPU cannot resolve; give import.meta.resolve(${show(url)})`,
      )
    }
    throw new TypeError(
      `import(${show(url)}): the address is relative, and a CPU cannot resolve it; give new URL(${show(url)}, import.meta.url)`,
    )
  }
  throw new TypeError(`import(${show(url)}): not a module; give new URL('./work.ts', import.meta.url)`)
}
