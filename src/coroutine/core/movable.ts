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
import { unwinds } from './coroutine.ts'
import { type CodeName, type ImageCode, setImageCode } from '../../payload/imagekinds.ts'
import { isHostClass } from '../../payload/intrinsics.ts'
import { itself } from './coroutine.ts'
import { type HeldWeakly, isWeak } from '../../payload/weakentries.ts'
import type { Reenter } from './frames.ts'
import { install, mayHavePrivates, type PrivateFields, privateFieldsOf } from './privatefields.ts'
import { LEVELS_MAX, ModuleValues, nameless, names as namesOfValues, OBJECTS_MAX } from './modulevalues.ts'
import { madeBy } from './stamps.ts'
import { saysTask } from './uncompiled.ts'

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
  /** The number of its places, which count from 1. Missing: any is possible. */
  readonly places?: number
  /** By place: whether the value at an index is still used. Others are not sent. Missing: all are. */
  readonly isLive?: ((place: number, index: number) => boolean) | null
  /** The function or class itself, if the module holds it. Called when it is first needed. */
  readonly value?: (() => unknown) | null
  /** Makes the closure again from its captured values. */
  readonly make?: ((...captured: any[]) => object) | null
}

interface Entry extends CodeName {
  readonly fn: MovableFunction
  readonly of: Module
  /** The name and the length of a closure of this maker, when they were asked for. */
  sample: { readonly name: string; readonly length: number } | null
}

interface Module {
  readonly key: string
  readonly url: string
  readonly entries: Map<string, Entry>
  readonly values: ModuleValues
}

/** The variables of a compiled module. */
export interface MovableVariables {
  /** A property for each variable: functions, classes and objects are found in them. */
  readonly all: object
  /** The names of those that other modules set: modules that are not JSON. */
  readonly imports: readonly string[]
  /** The hash of the module's code. */
  readonly hash: string
  /** The module calls `moduleLoaded` at its end. */
  readonly awaitsEnd: boolean
}

/** By key; the module that was loaded last comes first. */
const modules = new Map<string, Module[]>()

/** Names by second form. */
const names = new Map<Reenter, Entry>()
/** Names by maker of closures. */
const makers = new Map<object, Entry>()

/**
 * Registers functions of a module. `module` is the same wherever the module runs; `url` is where this copy
 * was loaded from. A module may call it several times.
 */
export function registerMovable(
  module: string,
  url: string,
  functions: readonly MovableFunction[],
  variables: MovableVariables | null = null,
): void {
  const found = moduleOf(module, url)
  const { entries, values } = found
  for (const fn of functions) {
    const entry: Entry = { module, url, key: fn.key, hash: fn.hash, fn, of: found, sample: null }
    if (fn.hash !== '') entries.set(fn.key, entry)
    if (fn.reenter) names.set(fn.reenter, entry)
    if (fn.make) makers.set(fn.make, entry)
    if (fn.value) values.variables.set(fn.key, fn.value)
  }
  if (variables !== null) {
    const { all, imports, hash, awaitsEnd } = variables
    for (const name of Object.keys(all)) {
      values.variables.set(name, () => (all as Record<string, unknown>)[name])
    }
    values.imports = new Set(imports)
    values.hash = hash
    values.awaitsEnd = awaitsEnd
  }
  unnamed.add(values)
}

/**
 * The module has been loaded: from now on its objects have their names, whatever the program does with
 * them.
 */
export function moduleLoaded(module: string, url: string): void {
  const { values } = moduleOf(module, url)
  values.survey()
  unnamed.delete(values)
}

function moduleOf(key: string, url: string): Module {
  let list = modules.get(key)
  if (list === undefined) modules.set(key, (list = []))
  let found = list.find(other => other.url === url)
  if (found === undefined) {
    found = { key, url, entries: new Map(), values: new ModuleValues(key, url) }
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
  // It has no place where it could stop: its task needs no state.
  if (entry === undefined && name !== undefined && unwinds(fn)) return null
  if (name !== undefined && (entry !== undefined || saysTask(fn as () => unknown)))
    return 'the compiler could not make it movable; `heddle compile --stats` says why'
  const marks = "begin it, or its module, with 'use task movable'"
  // The text of a function does not show the mark of its module.
  return name === undefined
    ? `it is not compiled as movable; ${marks}`
    : `it is not compiled as movable; ${marks}; if one of them does, \`heddle compile --stats\` says why`
}

/** Whether the module with this key has been loaded here. */
export function isMovableModule(key: string): boolean {
  return modules.has(key)
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

  constructor({ module, url }: Pick<CodeName, 'module' | 'url'>) {
    super(`the task needs the module ${module}, which is not loaded here; import it first (it was at ${url})`)
    this.module = module
    this.url = url
  }
}

/** Modules whose values are not named yet: they are being loaded, or register themselves without an end. */
const unnamed = new Set<ModuleValues>()

function nameValues(): void {
  for (const values of unnamed) if (values.survey() || values.awaitsEnd) unnamed.delete(values)
}

/** The copies of a module, the sender's first: it may be loaded twice. */
function copiesOf(name: CodeName): readonly Module[] {
  const list = modules.get(name.module)
  if (list === undefined) throw new ModuleMissingError(name)
  if (list.length === 1 || list[0].url === name.url) return list
  const same = list.find(({ url }) => url === name.url)
  return same === undefined ? list : [same, ...list]
}

function findValue(name: CodeName): object | symbol {
  const list = copiesOf(name)
  nameValues()
  for (const { values } of list) {
    const found = values.find(name.key)
    if (found !== undefined && found.hash === name.hash) return found.value
  }
  const what = name.hash.startsWith('value') ? 'object' : 'function or class'
  throw new CodeChangedError(
    name.module,
    name.key,
    `${name.module}: ${name.key} is no longer the same ${what} there; restart the task, or go on with the code that made it`,
  )
}

/** The modules of the functions on the stack that an image contains. */
let scope: Set<Module> = new Set()
/** What these modules hold without a name; null: not asked yet. A text: the module that holds too much. */
let heldNow: Map<object | symbol, CodeName> | string | null = null

/** Their WeakMaps and WeakSets; null: not asked yet. */
let weakNow: readonly HeldWeakly[] | null = null
const noWeaks: readonly HeldWeakly[] = []

/** The frames with these second forms will be written. */
export function enterFrames(reenters: Iterable<Reenter | null>): void {
  scope = new Set()
  heldNow = null
  weakNow = null
  for (const reenter of reenters) {
    const of = reenter === null ? undefined : names.get(reenter)?.of
    if (of !== undefined) scope.add(of)
  }
}

/** The regular expressions of the modules around these frames that are in the middle of a text. */
export function searchesAround(reenters: Iterable<Reenter | null>): RegExp[] {
  enterFrames(reenters)
  return [...around(scope)].flatMap(({ searches }) => searches.filter(({ lastIndex }) => lastIndex !== 0))
}

/**
 * Gives them their positions here, and all others position 0: a task reads the matches of `while
 * (r.exec(text))` one by one, and may move between two.
 */
export function restoreSearches(
  reenters: Iterable<Reenter | null>,
  positions: ReadonlyMap<unknown, number>,
): void {
  enterFrames(reenters)
  for (const { searches } of around(scope))
    for (const search of searches) Reflect.set(search, 'lastIndex', positions.get(search) ?? 0)
}

/** The values of modules, and of those that they import. */
function around(modulesOfStack: Iterable<Module>): Set<ModuleValues> {
  nameValues()
  const all = new Set<ModuleValues>()
  for (const { values } of modulesOfStack) all.add(values)
  for (const values of all) for (const near of values.neighbours()) all.add(near)
  return all
}

function reachedNow(): Map<object | symbol, CodeName> | string {
  const found: Parameters<ModuleValues['reachedNow']>[0] = new Map()
  for (const values of around(scope)) if (!values.reachedNow(found)) return values.key
  return found
}

/** Those with a name, and those that a module got later: an entry in one of these is refused with it. */
function weaksAround(): readonly HeldWeakly[] {
  const found: HeldWeakly[] = []
  for (const { weaks } of around(scope)) found.push(...weaks)
  heldNow ??= reachedNow()
  if (typeof heldNow === 'string') return found
  for (const [value, { key, module }] of heldNow)
    if (typeof value === 'object' && isWeak(value))
      found.push({ collection: value, holder: `${key} of ${module}` })
  return found
}

/**
 * For debug mode: the variables and objects of the modules on a stack that have changed since these were
 * loaded, as `module: path`. Each CPU has its own.
 */
export function changedState(reenters: Iterable<Reenter | null>): string[] {
  enterFrames(reenters)
  return [...around(scope)].flatMap(values => values.changes().map(path => `${path} of ${values.key}`))
}

function find(name: CodeName): MovableFunction {
  const { module, key, hash } = name
  const list = copiesOf(name)
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

function fieldsOf(name: CodeName): { cls: object; fields: PrivateFields } {
  const cls = found.find(name)
  const fields = typeof cls === 'function' ? privateFieldsOf(cls) : undefined
  if (!fields?.write) throw otherFields(name)
  return { cls: cls as object, fields }
}

function otherFields({ module, key }: CodeName): CodeChangedError {
  return new CodeChangedError(
    module,
    key,
    `${module}: the class ${key} has other #private fields there; restart the task, or go on with the code that made it`,
  )
}

const remedy = 'let the task hold it alone, share its memory, or spawn with `movable: false`'

const found: ImageCode = {
  begin() {
    enterFrames([])
  },
  nameOf(value) {
    if (typeof value === 'function') {
      const second = names.get(value as Reenter)
      if (second !== undefined) return second
    }
    if (unnamed.size > 0) nameValues()
    return namesOfValues.get(value)
  },
  heldBy(value) {
    if (scope.size === 0) return undefined
    heldNow ??= reachedNow()
    if (typeof heldNow === 'string') {
      return {
        holder: `the task or the module ${heldNow}`,
        advice: `the module holds more than ${OBJECTS_MAX} objects, or some that are nested ${LEVELS_MAX} deep, so they have no names; keep them in a module that is not movable, or spawn with \`movable: false\``,
      }
    }
    const held = heldNow.get(value)
    if (held !== undefined)
      return {
        holder: `${held.key} of ${held.module}`,
        advice: `the module got it after it was loaded, and would keep another one; ${remedy}`,
      }
    const foreign = nameless.get(value)
    if (foreign !== undefined)
      return {
        holder: `${foreign.key} of ${foreign.module}`,
        advice: `it is imported from a module without 'use task movable', so it has no name; compile that module too, or: ${remedy}`,
      }
    return undefined
  },
  weaks() {
    return scope.size === 0 ? noWeaks : (weakNow ??= weaksAround())
  },
  classOf(prototype) {
    const own = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value as object | undefined
    if (typeof own !== 'function' || (own as { prototype?: unknown }).prototype !== prototype)
      return undefined
    const name = found.nameOf(own)
    return name === undefined ? undefined : (privatesIn(prototype).refused ?? name)
  },
  privatesOf(value) {
    const { carriers } = privatesIn(Object.getPrototypeOf(value) as object)
    if (carriers.length === 0) return noPrivates
    return carriers.flatMap(carrier => {
      const fields = privateFieldsOf(carrier)!
      const code = fields.has(value) ? found.nameOf(carrier) : undefined
      return code === undefined ? [] : [{ code, names: fields.names, values: fields.read(value) }]
    })
  },
  install(carriers, prototype) {
    const classes = carriers.map((name, at) => {
      const { cls, fields } = fieldsOf(name)
      // The object of a base class cannot be that of another class.
      if (at > 0 && !fields.isDerived) throw otherFields(name)
      return cls
    })
    if (new Set(classes).size < classes.length) throw otherFields(carriers[0])
    return install(classes, prototype)
  },
  writePrivates(name, object, names, values) {
    const { fields } = fieldsOf(name)
    if (names.join() !== fields.names.join()) throw otherFields(name)
    fields.write!(object, values)
  },
  closureOf(fn) {
    const made = madeBy(fn)
    if (made === undefined) return undefined
    const entry = makers.get(made[0] as object)
    if (entry === undefined) return undefined
    const captured = made.slice(1)
    if (entry.sample === null) {
      const { name, length } = entry.fn.make!(...captured) as { name: string; length: number }
      entry.sample = { name, length }
    }
    const { name, length } = entry.sample
    return { code: entry, captured, isMarked: Object.hasOwn(fn, itself), name, length }
  },
  find(name) {
    if (name.hash === '' || /^(?:text|value) /.test(name.hash)) return findValue(name)
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
  make(name, captured, isMarked) {
    const { make } = find(name)
    if (make) {
      const made = make(...captured)
      if (isMarked) Object.defineProperty(made, itself, { value: made, configurable: true, writable: true })
      return made
    }
    throw new CodeChangedError(name.module, name.key, `${name.module}: ${name.key} is no longer a closure`)
  },
}

setImageCode(found)

/**
 * Where the private fields of instances with this prototype come from. `carriers`: the classes that have
 * accessors for them, the base class first. `refused`: a class of the chain has members without these. Null:
 * there are none.
 */
interface Privates {
  readonly carriers: readonly object[]
  readonly refused: string | null
}

const withPrivates = new WeakMap<object, Privates>()
const noPrivates: ReturnType<ImageCode['privatesOf']> = []
const withoutAny: Privates = { carriers: [], refused: null }

function privatesIn(prototype: object): Privates {
  let known = withPrivates.get(prototype)
  if (known === undefined) {
    const own = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value as unknown
    const above = Object.getPrototypeOf(prototype) as object | null
    const isBase = above === null || above === Object.prototype
    known = isBase ? withoutAny : privatesIn(above)
    if (typeof own === 'function' && isHostClass(own)) {
      known = { carriers: [], refused: `keeps its state in the platform (${own.name})` }
    } else if (typeof own === 'function' && known.refused === null && mayHavePrivates(own)) {
      if (privateFieldsOf(own)?.write && Object.isExtensible(own))
        known = { carriers: [...known.carriers, own], refused: null }
      else known = { carriers: [], refused: refusalOf(own, isBase) }
    }
    withPrivates.set(prototype, known)
  }
  return known
}

function refusalOf({ name }: { name: string }, isBase: boolean): string {
  return isBase ? `has #private members (of ${name})` : `has #private members of a derived class (${name})`
}
