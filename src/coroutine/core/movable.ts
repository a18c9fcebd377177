/**
 * The code that can move: functions, classes and closures of modules that are compiled with 'use task
 * movable', found by name. A module registers its own when it is loaded. docs/moving.md describes the names.
 *
 *   entry           found by                          used for
 *   --------------  --------------------------------  ---------------------------------------------------
 *   second form     module, key, hash                 a frame: its places and values have this meaning
 *   function, class module, key                       a value that a task holds
 *   maker           module, key, hash                 a closure: its captured values have this meaning
 *
 * A program may load a module twice, in two versions. Of several modules with one key, the one with the right
 * hash is used.
 */
import { type CodeName, type ImageCode, setImageCode } from '../../payload/imagekinds.ts'
import type { Reenter } from './frames.ts'
import { findNamed, functionHash, nameValues, readOf } from './modulevalues.ts'

/** One entry of a movable module. */
export interface MovableFunction {
  /** The path of names inside the module: `total`, `Parser.prototype.next`, `total.compare`. */
  readonly key: string
  /** The hash of the compiled body. */
  readonly hash: string
  /** The second form; null or missing: the function is never a frame. */
  readonly reenter?: Reenter | null
  /** The names of the saved values, in their order. Only for messages. */
  readonly slots?: readonly string[]
  /** By place: whether the value at an index is still used. Others are not sent. Missing: all are. */
  readonly isLive?: ((place: number, index: number) => boolean) | null
  /** The function or class itself, if the module holds it. Called when it is first needed. */
  readonly value?: (() => unknown) | null
  /** Makes the closure again from its captured values. */
  readonly make?: ((...captured: any[]) => object) | null
}

interface Entry extends CodeName {
  readonly fn: MovableFunction
}

interface Module {
  readonly key: string
  readonly url: string
  readonly entries: Map<string, Entry>
  /** Its variables, by name. A read throws while a constant is not set. */
  readonly variables: Map<string, () => unknown>
}

/** By key; the module that was loaded last comes first. */
const modules = new Map<string, Module[]>()

/** Names by second form. */
const names = new Map<Reenter, Entry>()
/** Names by maker of closures. */
const makers = new Map<object, Entry>()

/**
 * Registers functions of a module. `module` is the same wherever the module runs; `url` is where this copy
 * was loaded from. `variables` has a property for each variable of the module: functions and classes are
 * found in them. A module may call it several times.
 */
export function registerMovable(
  module: string,
  url: string,
  functions: readonly MovableFunction[],
  variables: object | null = null,
): void {
  const found = moduleOf(module, url)
  for (const fn of functions) {
    const entry: Entry = { module, url, key: fn.key, hash: fn.hash, fn }
    if (fn.hash !== '') found.entries.set(fn.key, entry)
    if (fn.reenter) names.set(fn.reenter, entry)
    if (fn.make) makers.set(fn.make, entry)
    if (fn.value) found.variables.set(fn.key, fn.value)
  }
  if (variables !== null) {
    for (const name of Object.keys(variables)) {
      found.variables.set(name, () => (variables as Record<string, unknown>)[name])
    }
  }
  unnamed.add(found)
}

function moduleOf(key: string, url: string): Module {
  let list = modules.get(key)
  if (list === undefined) modules.set(key, (list = []))
  let found = list.find(other => other.url === url)
  if (found === undefined) {
    found = { key, url, entries: new Map(), variables: new Map() }
    list.unshift(found)
  }
  return found
}

/** The entry of a second form, or undefined. */
export function movableOf(reenter: Reenter | null): MovableFunction | undefined {
  return reenter === null ? undefined : names.get(reenter)?.fn
}

/** The module and key of a second form, as messages show it. */
export function movableName(reenter: Reenter): string | undefined {
  const entry = names.get(reenter)
  return entry === undefined ? undefined : `${entry.module} ${entry.key}`
}

/** Why a task that runs this function cannot move. Null: its function can. */
export function immovable(fn: object): string | null {
  const name = found.nameOf(fn)
  const entry = name === undefined ? undefined : modules.get(name.module)?.[0]?.entries.get(name.key)
  if (entry?.fn.reenter) return null
  return name === undefined
    ? "it is not compiled as movable; begin it, or its module, with 'use task movable'"
    : 'the compiler could not make it movable; `heddle compile --stats` says why'
}

/** Whether the module with this key has been loaded here. */
export function isMovableModule(key: string): boolean {
  return modules.has(key)
}

// Closures: each carries the entry of its maker and its captured values in a private field, which no program
// can observe.

const Returned = function (fn: object): object {
  return fn
} as unknown as new (
  fn: object,
) => object

class Stamp extends Returned {
  #made: readonly unknown[]

  /** `made`: the entry's key under its module, then the captured values. */
  constructor(fn: object, made: readonly unknown[]) {
    super(fn)
    this.#made = made
  }

  static of(fn: object): readonly unknown[] | undefined {
    return #made in fn ? fn.#made : undefined
  }
}

/** Says how a closure was made: by this maker, with these captured values. Returns the closure. */
export function stamp<F extends object>(fn: F, made: readonly [maker: object, ...captured: unknown[]]): F {
  return new Stamp(fn, made) as F
}

/** The code that an image names is not loaded here, or its body is another one. */
export class CodeChangedError extends Error {
  override readonly name = 'CodeChangedError'
  readonly code = 'ERR_HEDDLE_CODE_CHANGED'
  /** The key of the module. */
  readonly module: string
  /** The function: its path of names inside the module. Declared only: terser reads no field of this name. */
  declare readonly function: string

  constructor(module: string, key: string, message: string) {
    super(message)
    this.module = module
    this.function = key
  }
}

/** A module that an image names has not been loaded here. */
export class ModuleMissingError extends Error {
  override readonly name = 'ModuleMissingError'
  readonly code = 'ERR_HEDDLE_MODULE_MISSING'
  /** The key of the module, and where the sender had loaded it from. */
  readonly module: string
  readonly url: string

  constructor({ module, url }: CodeName) {
    super(`the task needs the module ${module}, which is not loaded here; import it first (it was at ${url})`)
    this.module = module
    this.url = url
  }
}

/** The names of the functions and classes in the variables of modules. */
let named = new WeakMap<object, CodeName>()
/** Modules whose variables have not all been named: constants are set late. */
const unnamed = new Set<Module>()

function namesOfValues(): WeakMap<object, CodeName> {
  for (const module of unnamed) if (nameValues(module, named)) unnamed.delete(module)
  return named
}

/** After a program has changed the objects of its modules: names are made again when they are needed. */
export function forgetNames(): void {
  named = new WeakMap()
  for (const list of modules.values()) for (const module of list) unnamed.add(module)
}

function findValue(name: CodeName): object {
  const list = modules.get(name.module)
  if (list === undefined) throw new ModuleMissingError(name)
  for (const { variables } of list) {
    const value = findNamed(variables, name.key)
    if (value !== undefined && (name.hash === '' || functionHash(value) === name.hash)) return value
  }
  throw new CodeChangedError(
    name.module,
    name.key,
    `${name.module}: ${name.key} is no longer the same function or class there; restart the task, or go on with the code that made it`,
  )
}

function find(name: CodeName): MovableFunction {
  const { module, key, hash } = name
  const list = modules.get(module)
  if (list === undefined) throw new ModuleMissingError(name)
  let other: Entry | undefined
  for (const { entries } of list) {
    const entry = entries.get(key)
    if (entry === undefined) continue
    if (hash === '' || entry.hash === hash) return entry.fn
    other ??= entry
  }
  throw new CodeChangedError(
    module,
    key,
    other === undefined
      ? `${module}: the function ${key} is no longer in the module; restart the task, or go on with the code that made it`
      : `${module}: the body of ${key} has changed (${hash} made the task, here it is ${other.hash}); restart the task, or go on with the code that made it`,
  )
}

const found: ImageCode = {
  nameOf(value) {
    if (typeof value === 'function') {
      const second = names.get(value as Reenter)
      if (second !== undefined) return second
    }
    return namesOfValues().get(value)
  },
  classOf(prototype) {
    const own = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value as object | undefined
    if (typeof own !== 'function' || (own as { prototype?: unknown }).prototype !== prototype)
      return undefined
    const name = namesOfValues().get(own)
    return name !== undefined && hasPrivates(prototype) ? 'has #private members' : name
  },
  closureOf(fn) {
    const made = Stamp.of(fn)
    if (made === undefined) return undefined
    const entry = makers.get(made[0] as object)
    return entry === undefined ? undefined : { code: entry, captured: made.slice(1) }
  },
  find(name) {
    if (name.hash === '' || name.hash.startsWith('text ')) return findValue(name)
    const { reenter } = find(name)
    if (reenter) return reenter
    throw new CodeChangedError(
      name.module,
      name.key,
      `${name.module}: ${name.key} is no longer a function there`,
    )
  },
  prototypeOf(name) {
    const value = found.find(name) as { prototype?: unknown }
    const { prototype } = value
    if (typeof prototype === 'object' && prototype !== null) return prototype
    throw new CodeChangedError(name.module, name.key, `${name.module}: ${name.key} is no longer a class`)
  },
  make(name, captured) {
    const { make } = find(name)
    if (make) return make(...captured)
    throw new CodeChangedError(name.module, name.key, `${name.module}: ${name.key} is no longer a closure`)
  },
}

setImageCode(found)

const withPrivates = new WeakMap<object, boolean>()

/** Whether a class, or a class above it, declares private members: no other code can copy these. */
function hasPrivates(prototype: object): boolean {
  let known = withPrivates.get(prototype)
  if (known === undefined) {
    const own = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value as unknown
    known = typeof own === 'function' && /[^\w$]#[\w$]/.test(Function.prototype.toString.call(own))
    const above = Object.getPrototypeOf(prototype) as object | null
    known ||= above !== null && above !== Object.prototype && hasPrivates(above)
    withPrivates.set(prototype, known)
  }
  return known
}

/**
 * For debug mode: the variable of a movable module that holds this object, as `module variable`, or
 * undefined. The object is copied when the task moves, and the variable keeps the original.
 */
export function variableHolding(object: object): string | undefined {
  for (const list of modules.values()) {
    for (const { key, variables } of list) {
      for (const [name, read] of variables) if (readOf(read) === object) return `${key} ${name}`
    }
  }
  return undefined
}
