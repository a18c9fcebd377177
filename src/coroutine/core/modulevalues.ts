/**
 * What a module holds: the functions, objects and symbols that its variables reach, by their path: `total`,
 * `Parser.prototype.next`, `rules[0].test`, `types.get("name")`. They are named when the module has been
 * loaded: every CPU loads the same text, so the same path leads to the same object there, whatever the
 * program does with it later. Objects that the module reaches later have no name. Reads run no getter of
 * the program.
 *
 *   step                           is
 *   -----------------------------  -------------------------------------------------------------------
 *   property, string key of a Map  a name: it survives a change of the module's code
 *   element, entry of a Map, Set,  a position: the name then has the hash of the whole module
 *   captured variable
 *
 * A closure that a module made when it was loaded keeps the module's state in the variables that it captures
 * (stamps.ts), and a class in its private fields (privatefields.ts). So both are read like properties.
 */
import { type CodeName, imageKindOf } from '../../payload/imagekinds.ts'
import { intrinsicName, symbolName } from '../../payload/intrinsics.ts'
import * as kinds from '../../payload/kinds.ts'
import { isProxy } from '../../payload/proxies.ts'
import { type HeldWeakly, isWeak } from '../../payload/weakentries.ts'
import { privateFieldsOf, staticFieldsOf } from './privatefields.ts'
import { madeBy } from './stamps.ts'

/** The most objects of a module that are named, and the most slots of these that are read. */
export const OBJECTS_MAX = 50_000
const SLOTS_MAX = 1_000_000
/** Nor are objects that are nested deeper. */
export const LEVELS_MAX = 100

const PROPERTY = 0
const GETTER = 1
const SETTER = 2
const ELEMENT = 3
const ENTRY = 4
const KEY = 5
const PROTOTYPE = 6
/** A variable that a closure captures. */
const CAPTURED = 7
/** A private field. */
const PRIVATE = 8

type Step =
  | typeof PROPERTY
  | typeof GETTER
  | typeof SETTER
  | typeof ELEMENT
  | typeof ENTRY
  | typeof KEY
  | typeof PROTOTYPE
  | typeof CAPTURED
  | typeof PRIVATE

type Visit = (value: unknown, step: Step, key: unknown) => void

let numbered = 100

/** An object that a module holds, and its name. */
export class ModuleValue implements CodeName {
  readonly of: ModuleValues
  readonly value: object | symbol
  readonly parent: ModuleValue | null
  private readonly step: Step
  private readonly name: unknown
  /** The object comes from a module that is not movable. */
  readonly isImported: boolean
  readonly level: number
  /** Its slots are looked through again when a task moves. */
  isOpen = false
  /** Depends on the content, except for that of objects inside. Compared in debug mode. */
  content = 0
  readonly number: number = numbered++

  constructor(
    of: ModuleValues,
    value: object | symbol,
    parent: ModuleValue | null,
    step: Step,
    name: unknown,
    isImported: boolean,
  ) {
    this.of = of
    this.value = value
    this.parent = parent
    this.step = step
    this.name = name
    this.isImported = isImported
    this.level = parent === null ? 0 : parent.level + 1
  }

  get module(): string {
    return this.of.key
  }

  get url(): string {
    return this.of.url
  }

  get key(): string {
    return (this.parent?.key ?? '') + stepText(this)
  }

  /** What must be the same at the other side: the kind of value, and deep inside a function its text. */
  get hash(): string {
    const { value } = this
    const module = this.hasPosition ? ` ${this.of.hash}` : ''
    if (typeof value === 'function') return this.level > 1 ? `text ${functionHash(value)}${module}` : ''
    return `value ${kindText(value)}${module}`
  }

  /** True if the path has the position of an element. */
  get hasPosition(): boolean {
    const { step, name, parent } = this
    if (step === ELEMENT || step === KEY || step === CAPTURED || (step === ENTRY && typeof name !== 'string'))
      return true
    return parent !== null && parent.hasPosition
  }

  static text({ parent, step, name }: ModuleValue): string {
    if (parent === null) return String(name)
    switch (step) {
      case ELEMENT:
        return `[${String(name)}]`
      case ENTRY:
        return typeof name === 'string' ? `.get(${JSON.stringify(name)})` : `.values()[${String(name)}]`
      case KEY:
        return `.keys()[${String(name)}]`
      case PROTOTYPE:
        return '.[[Prototype]]'
      case CAPTURED:
        return `.captured[${String(name)}]`
      case PRIVATE:
        return `.${String(name)}`
      default: {
        const ending = step === GETTER ? ':get' : step === SETTER ? ':set' : ''
        if (typeof name === 'symbol') return `[${String(name)}]${ending}`
        const text = String(name)
        return (identifier.test(text) ? `.${text}` : `[${JSON.stringify(text)}]`) + ending
      }
    }
  }
}

const stepText = ModuleValue.text
const identifier = /^[A-Za-z_$][\w$]*$/

/** The names of all modules' values. */
export const names: Map<object | symbol, ModuleValue> = new Map()
/** Values of modules that are not movable, at positions: they cannot be found by name. */
export const nameless: Map<object | symbol, ModuleValue> = new Map()

/** The variables of one copy of a module, and what they hold. */
export class ModuleValues {
  readonly key: string
  readonly url: string
  /** Its variables, by name. A read throws while a constant is not set. */
  readonly variables: Map<string, () => unknown> = new Map()
  /** The variables that other modules set. */
  imports: ReadonlySet<string> = new Set()
  /** The hash of the module's code. */
  hash = ''
  /** The last statement of the module names its values, not the first need. */
  awaitsEnd = false
  /** Some of its objects are not named: they are too many, or too deep. */
  isLarge = false
  /** Its regular expressions that have a position. */
  searches: readonly RegExp[] = []
  /** Its WeakMaps and WeakSets. */
  weaks: readonly HeldWeakly[] = []
  private held: ModuleValue[] = []
  private byKey: Map<string, ModuleValue> | null = null
  private initial: Map<string, unknown> = new Map()
  private near: readonly ModuleValues[] | null = null

  constructor(key: string, url: string) {
    this.key = key
    this.url = url
  }

  /** Names the values of the module. True: all its variables are set. */
  survey(): boolean {
    // oxlint-disable-next-line typescript/no-this-alias
    const self = this
    let isWhole = true
    const seen = new Map<object | symbol, ModuleValue>()
    const held: ModuleValue[] = []
    this.isLarge = false
    for (const [name, read] of this.variables) {
      const value = readOf(read)
      if (value === undefined) isWhole = false
      if (!this.imports.has(name)) this.initial.set(name, value)
      add(value, null, PROPERTY, name, this.imports.has(name))
    }
    let slots = 0
    for (let at = 0; at < held.length && !this.isLarge; at++) {
      const parent = held[at]
      const { value, isImported } = parent
      if (typeof value === 'symbol' || isClosed(value, seen)) continue
      parent.isOpen = !isImported
      parent.content = contentOf(value, this, (slot, step, key) => {
        slots++
        if (isOne(slot)) add(slot, parent, step, key, isImported)
      })
      if (slots > SLOTS_MAX) this.isLarge = true
    }
    this.held = held.filter(({ value }) => typeof value !== 'symbol')
    this.searches = held
      .map(({ value }) => value)
      .filter((value): value is RegExp => isSearch(value) && names.get(value)?.of === this)
    this.weaks = held.flatMap(one => {
      const { value, key } = one
      const isOwn = typeof value === 'object' && isWeak(value) && names.get(value) === one
      return isOwn ? [{ collection: value, holder: `${key} of ${this.key}` }] : []
    })
    this.byKey = null
    return isWhole

    function add(
      this: void,
      value: unknown,
      parent: ModuleValue | null,
      step: Step,
      name: unknown,
      isImported: boolean,
    ): void {
      if (!isOne(value) || seen.has(value) || travelsByItself(value)) return
      if (held.length === OBJECTS_MAX || (parent !== null && parent.level === LEVELS_MAX)) {
        self.isLarge = true
        return
      }
      const one = new ModuleValue(self, value, parent, step, name, isImported)
      seen.set(value, one)
      held.push(one)
      const known = names.get(value)
      if (known !== undefined && known.of !== self && (isImported || !known.isImported)) return
      if (isImported && typeof value === 'object' && one.hasPosition) nameless.set(value, one)
      else names.set(value, one)
    }
  }

  /** The value with this path, as it was when the module had been loaded. */
  find(key: string): ModuleValue | undefined {
    if (this.byKey === null) {
      this.byKey = new Map()
      for (const one of this.held) if (!this.byKey.has(one.key)) this.byKey.set(one.key, one)
      for (const [value, one] of names)
        if (typeof value === 'symbol' && one.of === this) this.byKey.set(one.key, one)
    }
    return this.byKey.get(key)
  }

  /** The movable modules whose values this one imports. */
  neighbours(): readonly ModuleValues[] {
    if (this.near !== null) return this.near
    const found = new Set<ModuleValues>()
    for (const name of this.imports) {
      const value = readOf(this.variables.get(name)!)
      if (!isOne(value)) continue
      const look = (one: unknown): void => {
        const of = isOne(one) ? names.get(one)?.of : undefined
        if (of !== undefined && of !== this) found.add(of)
      }
      look(value)
      if (typeof value === 'object') eachSlot(value, true, look)
    }
    return (this.near = [...found])
  }

  /** Adds what the variables reach now and had not been named. False: these are too many. */
  reachedNow(found: Map<object | symbol, ModuleValue>): boolean {
    if (this.isLarge) return false
    const { imports } = this
    const queue: ModuleValue[] = []
    let slots = 0
    const add = (value: unknown, parent: ModuleValue | null, step: Step, name: unknown): void => {
      slots++
      if (!isOne(value) || names.has(value) || found.has(value)) return
      if (travelsByItself(value) || isValue(value)) return
      const one = new ModuleValue(this, value, parent, step, name, false)
      found.set(value, one)
      queue.push(one)
    }
    for (const [name, read] of this.variables) if (!imports.has(name)) add(readOf(read), null, PROPERTY, name)
    for (const parent of this.held) {
      if (!parent.isOpen) continue
      eachSlot(parent.value as object, true, (slot, step, key) => add(slot, parent, step, key))
      if (slots > SLOTS_MAX) return false
    }
    for (let at = 0; at < queue.length; at++) {
      const parent = queue[at]
      if (typeof parent.value === 'symbol' || isClosed(parent.value, names)) continue
      eachSlot(parent.value, true, (slot, step, key) => add(slot, parent, step, key))
      if (slots > SLOTS_MAX || queue.length > OBJECTS_MAX) return false
    }
    return true
  }

  /** The paths of variables and objects that have changed since the module was loaded. For debug mode. */
  changes(): string[] {
    const changed: string[] = []
    for (const [name, value] of this.initial)
      if (!Object.is(readOf(this.variables.get(name)!), value)) changed.push(name)
    for (const one of this.held) {
      if (one.isOpen && contentOf(one.value as object, this, nothing) !== one.content) changed.push(one.key)
    }
    return changed
  }
}

function nothing(): void {}

function isOne(value: unknown): value is object | symbol {
  return (
    typeof value === 'function' || (typeof value === 'object' && value !== null) || typeof value === 'symbol'
  )
}

/** Undefined while a constant is not set. */
export function readOf(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The platform's objects, shared memory and registered classes keep their identity without a name. */
function travelsByItself(value: object | symbol): boolean {
  if (typeof value === 'symbol') return symbolName(value) !== undefined
  if (intrinsicName(value) !== undefined) return true
  if (typeof value === 'function' || isProxy?.(value) === true) return false
  const kind = imageKindOf(Object.getPrototypeOf(value) as object | null)
  if (kind !== undefined) return kind.isVariable !== true
  switch (kinds.kindOf(value)) {
    case kinds.PUBLISHED:
    case kinds.TRAVELLING:
      return true
    case kinds.VIEW:
      return kinds.kindOf((value as ArrayBufferView).buffer) === kinds.PUBLISHED
    default:
      return false
  }
}

/** A regular expression without a position is like a number: programs keep them in caches, and copies do. */
function isValue(value: object | symbol): boolean {
  return isRegExp(value) && !isSearch(value)
}

function isRegExp(value: object | symbol): boolean {
  return typeof value === 'object' && isProxy?.(value) !== true && kinds.kindOf(value) === kinds.REGEXP
}

function isSearch(value: object | symbol): boolean {
  return isRegExp(value) && /[gy]/.test(kinds.regexpFlags(value as object) as string)
}

/** Nothing inside of the object is named: a proxy, or an instance of a class that no movable module holds. */
function isClosed(value: object, known: ReadonlyMap<object | symbol, unknown>): boolean {
  if (typeof value === 'function') return false
  if (isProxy?.(value) === true) return true
  if (kinds.kindOf(value) !== kinds.PLAIN) return false
  const prototype = Object.getPrototypeOf(value) as object | null
  if (prototype === null || prototype === Object.prototype || imageKindOf(prototype) !== undefined)
    return false
  const own = descriptorOf(prototype, 'constructor')?.value as object | undefined
  if (typeof own !== 'function') return false
  return !known.has(own) && !names.has(own) && intrinsicName(own) === undefined
}

const mapForEach = Map.prototype.forEach
const setForEach = Set.prototype.forEach

/**
 * Calls `visit` for each slot. `isBrief`: not for what a program hardly ever changes after a module was
 * loaded: the methods of classes, frozen objects, prototypes.
 */
function eachSlot(value: object, isBrief: boolean, visit: Visit): void {
  if (typeof value === 'function') {
    for (const key of isBrief ? Object.keys(value) : Reflect.ownKeys(value)) {
      if (typeof key === 'symbol' ? isOurs(key) : functionKeys.has(key)) continue
      property(value, key, visit)
    }
    const made = madeBy(value)
    if (made !== undefined) for (let at = 1; at < made.length; at++) visit(made[at], CAPTURED, at - 1)
    const statics = staticFieldsOf(value)
    statics?.reads.forEach((read, at) => visit(readOf(read), PRIVATE, statics.names[at]))
    if (!isBrief) visit(Object.getPrototypeOf(value), PROTOTYPE, '')
    return
  }
  if (isProxy?.(value) === true) return
  const kind = kinds.kindOf(value)
  if (kind === kinds.PLAIN) eachPrivate(value, visit)
  if (isBrief && Object.isFrozen(value)) return
  switch (kind) {
    case kinds.ARRAY: {
      const list = value as unknown[]
      const { length } = list
      if (length > SLOTS_MAX) break
      // An element may have a getter: then each is a property.
      if (!isPlainList(list)) break
      for (let index = 0; index < length; index++) visit(list[index], ELEMENT, index)
      for (const key of namedKeys(list)) property(value, key, visit)
      if (!isBrief && prototypeIsOwn(value, kind)) visit(Object.getPrototypeOf(value), PROTOTYPE, '')
      return
    }
    case kinds.MAP: {
      let at = 0
      mapForEach.call(value as Map<unknown, unknown>, (item, key) => {
        visit(item, ENTRY, typeof key === 'string' ? key : at)
        if (typeof key === 'object' || typeof key === 'function') visit(key, KEY, at)
        at++
      })
      break
    }
    case kinds.SET: {
      let at = 0
      setForEach.call(value as Set<unknown>, item => visit(item, ENTRY, at++))
      break
    }
    case kinds.VIEW:
      if (!isBrief) visit((value as ArrayBufferView).buffer, PROPERTY, 'buffer')
      return
    default:
  }
  for (const key of Reflect.ownKeys(value)) property(value, key, visit)
  const isVariable = imageKindOf(Object.getPrototypeOf(value) as object | null) !== undefined
  if (!isBrief && !isVariable && prototypeIsOwn(value, kind))
    visit(Object.getPrototypeOf(value), PROTOTYPE, '')
}

/** The private fields of an instance, by each class of its chain that gives its own. */
function eachPrivate(value: object, visit: Visit): void {
  let prototype = Object.getPrototypeOf(value) as object | null
  for (; prototype !== null && prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype)) {
    const own = descriptorOf(prototype, 'constructor')?.value as unknown
    const fields = typeof own === 'function' ? privateFieldsOf(own) : undefined
    if (fields === undefined || !fields.has(value)) continue
    // A field that its constructor has not set yet is missing, and a read of it throws.
    const values = readOf(() => fields.read(value)) as unknown[] | undefined
    values?.forEach((one, at) => visit(one, PRIVATE, fields.names[at]))
  }
}

function prototypeIsOwn(value: object, kind: number): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  return kind === kinds.PLAIN ? prototype !== Object.prototype && prototype !== null : true
}

function property(value: object, key: string | symbol, visit: Visit): void {
  const found = descriptorOf(value, key)
  if (found === undefined) return
  if ('value' in found) visit(found.value, PROPERTY, key)
  else {
    visit(found.get, GETTER, key)
    visit(found.set, SETTER, key)
  }
}

/** The keys of an array that are no indices, without `length`. The engine lists indices first. */
function namedKeys(list: unknown[]): (string | symbol)[] {
  const keys = Reflect.ownKeys(list)
  return keys.slice(keys.indexOf('length') + 1)
}

/** True if no property of the array has a getter: the engine copies such a one without calls. */
function isPlainList(list: unknown[]): boolean {
  if (list.length === 0) return Object.keys(list).length === 0
  if (list.length > 32) return descriptorOf(list, '0')?.get === undefined
  for (const key of Object.keys(list)) if (!('value' in (descriptorOf(list, key) ?? {}))) return false
  return true
}

/**
 * Visits the slots, and returns a number that depends on what they hold: of objects, only on which one of the
 * module `of` it is.
 */
function contentOf(value: object, of: ModuleValues, visit: Visit): number {
  let content = stateOf(value)
  eachSlot(value, false, (slot, step, key) => {
    // It names the objects of the module.
    visit(slot, step, key)
    content = (Math.imul(content, 31) + numberOf(slot, of)) | 0
  })
  return content
}

/** The state of an object that is in no slot: the bytes of a buffer, the time of a Date. */
function stateOf(value: object): number {
  if (typeof value === 'function' || isProxy?.(value) === true) return 0
  switch (kinds.kindOf(value)) {
    case kinds.DATE:
      return numberOf(kinds.dateTime(value), null)
    case kinds.ARRAY_BUFFER: {
      const { byteLength } = value as ArrayBuffer
      // Of a buffer that has been given away no view can be made.
      if (byteLength === 0) return 0
      const words = new Int32Array(value as ArrayBuffer, 0, byteLength >>> 2)
      let state = byteLength
      for (let at = 0; at < words.length; at++) state = (Math.imul(state, 31) + words[at]) | 0
      for (const byte of new Uint8Array(value as ArrayBuffer, words.byteLength))
        state = Math.imul(state, 31) + byte
      return state | 0
    }
    default:
      return 0
  }
}

function numberOf(slot: unknown, of: ModuleValues | null): number {
  switch (typeof slot) {
    case 'number':
      return (slot | 0) ^ ((slot * 4096) | 0)
    case 'string':
      return slot.length * 31 + (slot.charCodeAt(0) | 0) * 7 + (slot.charCodeAt(slot.length - 1) | 0)
    case 'boolean':
      return slot ? 3 : 5
    case 'undefined':
      return 11
    default: {
      if (slot === null) return 13
      const one = names.get(slot as object | symbol)
      return one === undefined || one.of !== of || one.isImported ? 1 : one.number
    }
  }
}

const functionKeys: ReadonlySet<string> = new Set(['length', 'name', 'caller', 'arguments'])

function isOurs({ description }: symbol): boolean {
  return description?.startsWith('heddle.') === true
}

/** A proxy may throw, and so does an export that is not set. */
function descriptorOf(value: object, key: PropertyKey): PropertyDescriptor | undefined {
  try {
    return Object.getOwnPropertyDescriptor(value, key)
  } catch {
    return undefined
  }
}

/** The kind of a value, and its class. */
function kindText(value: object | symbol): string {
  if (typeof value === 'symbol') return 'symbol'
  if (isProxy?.(value) === true) return 'proxy'
  const prototype = Object.getPrototypeOf(value) as object | null
  const own = prototype === null ? undefined : (descriptorOf(prototype, 'constructor')?.value as unknown)
  return `${kinds.kindOf(value)} ${typeof own === 'function' ? own.name : ''}`
}

/**
 * The hash of a function's text. A function that is found deep inside objects, which a program may change,
 * must be the same one there.
 */
function functionHash(fn: object): string {
  const text = Function.prototype.toString.call(fn)
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16)
}
