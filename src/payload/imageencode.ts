import * as format from './format.ts'
import {
  type ClosureName,
  type CodeName,
  type ImageCode,
  imageCode,
  type ImageKind,
  imageKindOf,
  type PrivateValues,
} from './imagekinds.ts'
import { intrinsicName, isHostClass, symbolName } from './intrinsics.ts'
import * as kinds from './kinds.ts'
import { errorNumber } from './errorclass.ts'
import { extraProperties, isOrdinary } from './extraproperties.ts'
import { PayloadEncoder, type ObjectIds } from './encode.ts'
import { isProxy } from './proxies.ts'
import { type HeldWeakly, type WeakEntry, weakEntryOf } from './weakentries.ts'
import { describe, formatPath, type PathStep, UntravelableError } from './untravelable.ts'

/** Deeper values are deferred: a linked list of any length fits on the stack. */
const DEPTH_MAX = 200
/** Longer paths are cut: the path of each deferred object is kept. */
const PATH_MAX = 1000

const getOwn = Object.getOwnPropertyDescriptor
const getPrototype = Object.getPrototypeOf as (value: object) => object | null

const none: readonly HeldWeakly[] = []
const noKeys: readonly PropertyKey[] = []
const noPrivates: readonly PrivateValues[] = []

/** The module of the objects that the platform holds. */
export const PLATFORM = 'platform'

/** An object whose content is written after the value that contains it. */
interface Deferred {
  readonly object: object
  readonly privates: readonly PrivateValues[]
  /** A prototype that travels too, or null. */
  readonly prototype: object | null
  readonly steps: readonly (PathStep | object)[]
  readonly indices: readonly number[]
  readonly mapKeys: readonly unknown[]
}

/**
 * Writes an image: a value that may contain code by name, closures, class instances, and the objects of
 * registered kinds. It copies objects exactly, with their prototypes, property flags and frozen state. It
 * refuses what it cannot copy.
 *
 * A closure is made only when its captured values are known, and they may contain the closure. So the objects
 * among them are deferred: the receiver allocates them at once and fills them later.
 */
export class ImageEncoder extends PayloadEncoder {
  protected override readonly omits: boolean = false
  private readonly isPortable: boolean
  private code: ImageCode | null = null
  private codes = new Map<CodeName, number>()
  private modules = new Map<string, { number: number; url: string }>()
  private kindNumbers = new Map<ImageKind, number>()
  private deferred: Deferred[] = []
  /** What weak collections of modules say about the objects of the image. */
  private entries: WeakEntry[] = []
  /** Where a step is an object of a registered kind, the number of its part. */
  private indices: number[] = []
  /** How many closures are around the value that is being written. */
  private capturing = 0
  private intrinsicNames = new Map<object, CodeName>()

  /** `isPortable`: for another process. Shared memory and objects of the kernel are refused. */
  constructor(lender: ObjectIds, isPortable: boolean) {
    super(lender)
    this.isPortable = isPortable
  }

  /** Writes the whole image, between `start` and `finish`. */
  image(value: unknown): void {
    const { writer } = this
    this.code = imageCode()
    this.code?.begin()
    this.capturing = 0
    writer.tag(format.IMAGE, 0)
    const patch = writer.at
    writer.word(0)
    this.value(value)
    let next = 0
    for (let entry = 0; ; entry++) {
      for (; next < this.deferred.length; next++) this.content(this.deferred[next])
      // An entry may contain objects that have entries themselves.
      if (entry === this.entries.length) break
      this.value(this.entries[entry])
    }
    writer.words[patch] = writer.at
    writer.word(this.modules.size)
    for (const [key, { url }] of this.modules) {
      writer.string(key)
      writer.string(url)
    }
  }

  override release(): void {
    super.release()
    this.codes = new Map()
    this.modules = new Map()
    this.kindNumbers = new Map()
    this.deferred = []
    this.entries = []
    this.lastPrototype = null
    this.open = new Set()
  }

  override value(value: unknown): void {
    if (typeof value === 'function') this.fn(value)
    else if (typeof value === 'symbol') this.symbol(value)
    else super.value(value)
  }

  private symbol(value: symbol): void {
    const known = symbolName(value)
    if (known !== undefined) {
      this.writer.tag(format.SYMBOL, known.isRegistered ? 1 : 0)
      this.writer.string(known.name)
      return
    }
    const name = this.code?.nameOf(value)
    if (name === undefined) return this.refuse(value, `the symbol ${String(value.description)}`)
    this.writer.tag(format.SYMBOL, 2)
    this.name(name)
  }

  private fn(value: object): void {
    // The receiver makes a closure only when it knows what it captures.
    if (this.open.size > 0 && this.open.has(value))
      throw new UntravelableError(this.path(), 'a closure that captures itself through this object', '')
    if (this.reference(value) || this.named(value)) return
    this.refuseHeld(value)
    const made = this.code?.closureOf(value)
    if (made === undefined) return this.refuseFunction(value)
    this.weakly(value)
    const prototype = getPrototype(value)
    if (prototype === null || intrinsicName(prototype) === undefined)
      return this.refuse(value, 'a function with a prototype of its own')
    const { writer } = this
    const own = closureExtras(value, made)
    const integrity = integrityOf(value)
    if (integrity !== 0) writer.tag(format.EXTRA, integrity << format.EXTRA_INTEGRITY_SHIFT)
    writer.tag(format.CLOSURE, made.captured.length * 4 + (made.isMarked ? 2 : 0) + (own.length > 0 ? 1 : 0))
    this.name(made.code)
    this.capturing++
    this.open.add(value)
    const depth = this.depth++
    for (let index = 0; index < made.captured.length; index++) {
      this.steps[depth] = `captured[${index}]`
      this.value(made.captured[index])
    }
    this.depth = depth
    this.capturing--
    this.open.delete(value)
    if (own.length > 0) this.defer(value)
  }

  /** The closures whose captured values are being written. */
  private open = new Set<object>()

  private refuseFunction(value: object): never {
    const { name } = value as { name?: unknown }
    const text = typeof name === 'string' && name !== '' ? `the function ${name}` : 'a function'
    throw new UntravelableError(
      this.path(),
      text,
      "only functions of modules that are compiled with 'use task movable' can, and closures made in them",
    )
  }

  /** A copy of what a module holds would be a second one, and `===` would tell. */
  private refuseHeld(value: object): void {
    const held = this.depth === 0 ? undefined : this.code?.heldBy(value)
    if (held === undefined) return
    throw new UntravelableError(this.path(), `${describe(value)} that ${held.holder} holds`, held.advice)
  }

  /** Finds the entries of the object in weak collections of modules: they are written at the end. */
  private weakly(value: object): void {
    for (const held of this.code?.weaks() ?? none) {
      const entry = weakEntryOf(held, value)
      if (entry !== undefined) this.entries.push(entry)
    }
  }

  private named(value: object): boolean {
    const name = this.code?.nameOf(value) ?? this.intrinsic(value)
    if (name === undefined) return false
    this.writer.tag(format.NAMED, 0)
    this.name(name)
    return true
  }

  private intrinsic(value: object): CodeName | undefined {
    const key = intrinsicName(value)
    if (key === undefined) return undefined
    let name = this.intrinsicNames.get(value)
    if (name === undefined) {
      name = { module: PLATFORM, url: '', key, hash: '' }
      this.intrinsicNames.set(value, name)
    }
    return name
  }

  private name(name: CodeName): void {
    const { writer, codes, modules } = this
    const known = codes.get(name)
    if (known !== undefined) {
      writer.word(known)
      return
    }
    writer.word(codes.size)
    codes.set(name, codes.size)
    let module = modules.get(name.module)
    if (module === undefined) {
      module = { number: modules.size, url: name.url }
      modules.set(name.module, module)
    }
    writer.word(module.number)
    writer.string(name.key)
    writer.string(name.hash)
  }

  private kind(kind: ImageKind): void {
    const { writer, kindNumbers } = this
    const known = kindNumbers.get(kind)
    writer.word(known ?? kindNumbers.size)
    if (known !== undefined) return
    kindNumbers.set(kind, kindNumbers.size)
    writer.string(kind.name)
  }

  protected override object(value: object): void {
    if (this.reference(value) || this.named(value)) return
    // Its traps are code of the program: no other part of it is read.
    if (isProxy?.(value) === true) throw new UntravelableError(this.path(), 'a Proxy', '')
    const prototype = getPrototype(value)
    if (imageKindOf(prototype) === undefined) {
      this.refuseHeld(value)
      this.weakly(value)
      if (prototype !== Object.prototype && prototype !== null) {
        if (this.withPrivates(value, prototype)) return
        if (this.isMade(prototype) && kinds.kindOf(value) === kinds.PLAIN) {
          // The prototype has methods, whose captured values may contain the object.
          this.writer.tag(format.DEFERRED, format.DEFERRED_MADE)
          this.defer(value, noPrivates, prototype)
          return
        }
      }
    }
    if (this.capturing > 0 || this.depth - this.depthBase > DEPTH_MAX) {
      if (this.allocation(value)) return
    }
    this.whole(value)
  }

  /** Defers an instance with private fields: the receiver makes it by its class. False: it has none. */
  private withPrivates(value: object, prototype: object): boolean {
    if (this.code === null) return false
    const slot = kinds.kindOf(value)
    if (slot !== kinds.PLAIN && prototype === standardPrototype(value, slot)) return false
    const privates = this.code.privatesOf(value)
    if (privates.length === 0) return false
    if (slot !== kinds.PLAIN) {
      const { key } = privates[0].code
      this.refuse(
        value,
        `${classText(value)} extends a class of the platform and has #private members (${key}), and`,
      )
    }
    this.writer.tag(format.DEFERRED, format.DEFERRED_PRIVATE)
    this.name(this.classOf(value, prototype))
    this.writer.word(privates.length)
    for (const { code } of privates) this.name(code)
    this.defer(value, privates)
    return true
  }

  private privates({ names, values }: PrivateValues): void {
    const { writer } = this
    writer.word(names.length)
    const depth = this.depth++
    for (let index = 0; index < names.length; index++) {
      this.steps[depth] = names[index]
      writer.string(names[index])
      this.value(values[index])
    }
    this.depth = depth
  }

  /** Writes what to allocate now, and defers the content. False: an object without content of this kind. */
  private allocation(value: object): boolean {
    const { writer } = this
    const prototype = getPrototype(value)
    const kind = imageKindOf(prototype)
    if (kind !== undefined) {
      writer.tag(format.DEFERRED, format.DEFERRED_KIND)
      this.kind(kind)
      this.defer(value)
      return true
    }
    switch (kinds.kindOf(value)) {
      case kinds.PLAIN: {
        if (isArguments(value)) return false
        if (prototype === Object.prototype) writer.tag(format.DEFERRED, format.DEFERRED_OBJECT)
        else if (prototype === null) writer.tag(format.DEFERRED, format.DEFERRED_WITHOUT_PROTOTYPE)
        else if (this.code?.classOf(prototype) === undefined) return false
        else {
          const name = this.classOf(value, prototype)
          writer.tag(format.DEFERRED, format.DEFERRED_INSTANCE)
          this.name(name)
        }
        break
      }
      case kinds.ARRAY:
        writer.tag(format.DEFERRED, format.DEFERRED_ARRAY)
        break
      case kinds.MAP:
        writer.tag(format.DEFERRED, format.DEFERRED_MAP)
        break
      case kinds.SET:
        writer.tag(format.DEFERRED, format.DEFERRED_SET)
        break
      case kinds.ERROR:
        writer.tag(format.DEFERRED, format.DEFERRED_ERROR + errorNumber(value as Error))
        break
      default:
        return false
    }
    this.defer(value)
    return true
  }

  private defer(
    object: object,
    privates: readonly PrivateValues[] = noPrivates,
    prototype: object | null = null,
  ): void {
    const depth = Math.min(this.depth, PATH_MAX)
    this.deferred.push({
      object,
      privates,
      prototype,
      steps: this.steps.slice(0, depth),
      indices: this.indices.slice(0, depth),
      mapKeys: this.mapKeys.slice(0, depth),
    })
  }

  /** Writes the content of a deferred object. */
  private content({ object, privates, prototype, steps, indices, mapKeys }: Deferred): void {
    const { length } = steps
    for (let at = 0; at < length; at++) {
      this.steps[at] = steps[at] as PathStep
      this.indices[at] = indices[at]
      this.mapKeys[at] = mapKeys[at]
    }
    this.depth = length
    // The path may be long, but the stack is short here: the content counts from the start again.
    const base = this.depthBase
    this.depthBase = length
    if (prototype !== null) {
      this.steps[this.depth++] = 'prototype'
      this.value(prototype)
      this.depth--
    }
    if (typeof object === 'function') this.exact(object, closureExtras(object, this.code!.closureOf(object)!))
    else this.whole(object, true)
    for (const one of privates) this.privates(one)
    this.depthBase = base
    this.depth = 0
  }

  private depthBase = 0

  /** Writes an object that has a number already. `isAllocated`: the receiver has allocated it. */
  private whole(value: object, isAllocated = false): void {
    const { writer } = this
    const prototype = getPrototype(value)
    const kind = imageKindOf(prototype)
    if (kind !== undefined) {
      this.parts(value, kind)
      return
    }
    const slot = kinds.kindOf(value)
    const extras = this.extra(value, slot, prototype)
    if (slot === kinds.PLAIN) {
      if (isArguments(value)) {
        const list = Array.from(value as ArrayLike<unknown>)
        writer.tag(format.ARGUMENTS, list.length)
        const depth = this.depth++
        for (let index = 0; index < list.length; index++) {
          this.steps[depth] = index
          this.value(list[index])
        }
        this.depth = depth
        return
      }
      if (!isAllocated && prototype === null) writer.tag(format.OBJECT_WITHOUT_PROTOTYPE, 0)
      else if (!isAllocated && prototype !== Object.prototype) {
        writer.tag(format.INSTANCE, 0)
        this.name(this.classOf(value, prototype))
      }
      const keys = Reflect.ownKeys(value)
      if (isSimple(value, keys)) this.properties(value as Record<string, unknown>)
      else this.exact(value, keys)
      return
    }
    if (slot === kinds.REGEXP && (value as RegExp).lastIndex !== 0) {
      writer.tag(format.REGEXP_AT, 0)
      writer.double((value as RegExp).lastIndex)
    }
    this.slots(value, slot)
    if (extras.length > 0) this.exact(value, extras)
  }

  /**
   * What a wrapper says about an object beyond its slots: its class, its properties, its frozen state.
   * Returns the properties.
   */
  private extra(value: object, slot: number, prototype: object | null): readonly PropertyKey[] {
    let flags = 0
    let extras: readonly PropertyKey[] = noKeys
    let name: CodeName | undefined
    if (slot !== kinds.PLAIN && slot !== kinds.TRAVELLING && slot !== kinds.PUBLISHED) {
      if (prototype !== standardPrototype(value, slot)) {
        name = this.classOf(value, prototype)
        flags |= format.EXTRA_PROTOTYPE
      }
      extras = extraProperties(value, slot, name !== undefined)
      if (extras.length > 0) flags |= format.EXTRA_PROPERTIES
    }
    flags |= integrityOf(value) << format.EXTRA_INTEGRITY_SHIFT
    if (flags === 0) return extras
    this.writer.tag(format.EXTRA, flags)
    if (name !== undefined) this.name(name)
    return extras
  }

  /** The others are written with their flags, and an accessor is not called. */
  protected override errorKeys(error: Error): string[] {
    return super.errorKeys(error).filter(key => isOrdinary(getOwn(error, key)!))
  }

  /** True if the prototype has no class that a module holds: then it travels like any object. */
  private isMade(prototype: object): boolean {
    if (prototype === this.lastPrototype) return this.lastIsMade
    const own = getOwn(prototype, 'constructor')?.value as unknown
    const isMade =
      (typeof own !== 'function' || this.code?.closureOf(own) !== undefined) &&
      kinds.kindOf(prototype) === kinds.PLAIN
    this.lastPrototype = prototype
    return (this.lastIsMade = isMade)
  }

  private lastPrototype: object | null = null
  private lastIsMade = false

  private classOf(value: object, prototype: object | null): CodeName {
    if (prototype === null) return this.refuse(value, `${describe(value)} without a prototype`)
    const name = this.code?.classOf(prototype) ?? this.platformClass(value, prototype)
    if (name === undefined) return this.refuse(value, classText(value))
    if (typeof name === 'string') return this.refuse(value, `${classText(value)} ${name}, and`)
    return name
  }

  private platformClass(value: object, prototype: object): CodeName | undefined {
    const own = getOwn(prototype, 'constructor')?.value as object | undefined
    if (own === undefined || intrinsicName(own) === undefined || intrinsicName(prototype) === undefined)
      return undefined
    // The platform keeps its state where no code of the program reads it.
    return isHostClass(own) && kinds.kindOf(value) === kinds.PLAIN ? undefined : this.intrinsic(own)
  }

  private parts(value: object, kind: ImageKind): void {
    const { writer } = this
    const parts = kind.parts(value)
    writer.tag(format.KIND, parts.length)
    this.kind(kind)
    const depth = this.depth++
    for (let index = 0; index < parts.length; index++) {
      this.steps[depth] = value as unknown as PathStep
      this.indices[depth] = index
      this.value(parts[index])
    }
    this.depth = depth
  }

  /** Writes properties with their flags, accessors and symbols. */
  private exact(value: object, keys: readonly PropertyKey[]): void {
    const { writer } = this
    writer.tag(format.OBJECT_EXACT, keys.length)
    const depth = this.depth++
    for (const key of keys) {
      const property = getOwn(value, key)!
      this.steps[depth] = typeof key === 'symbol' ? `[${String(key.description)}]` : String(key)
      this.value(key)
      const isAccessor = property.get !== undefined || property.set !== undefined
      writer.word(
        (property.writable ? format.PROPERTY_WRITABLE : 0) |
          (property.enumerable ? format.PROPERTY_ENUMERABLE : 0) |
          (property.configurable ? format.PROPERTY_CONFIGURABLE : 0) |
          (isAccessor ? format.PROPERTY_ACCESSOR : 0),
      )
      if (isAccessor) {
        this.value(property.get)
        this.value(property.set)
      } else this.value(property.value)
    }
    this.depth = depth
  }

  protected override nameOfError(error: Error): string | undefined {
    const own = getOwn(error, 'name')
    return typeof own?.value === 'string' ? own.value : undefined
  }

  protected override lend(value: object): void {
    if (this.isPortable) this.refusePortable(value, `${describe(value)} is memory of this process`)
    super.lend(value)
  }

  protected override travelling(value: object): void {
    if (this.isPortable) this.refusePortable(value, `${classText(value)} belongs to its kernel`)
    super.travelling(value)
  }

  private refusePortable(_value: object, what: string): never {
    throw new UntravelableError(this.path(), `${what}, and`, 'in an image for another process, leave it out')
  }

  protected override path(): string {
    const steps: PathStep[] = []
    const mapKeys: unknown[] = []
    for (let at = 0; at < this.depth; at++) {
      const step = this.steps[at] as PathStep | object
      if (typeof step === 'object') {
        const kind = imageKindOf(getPrototype(step))!
        steps.push(...(kind.steps?.(step, this.indices[at]) ?? [this.indices[at]]))
      } else steps.push(step)
      mapKeys[steps.length - 1] = this.mapKeys[at]
    }
    return formatPath(this.root, steps, mapKeys)
  }
}

/** "a Parser", "an object with a prototype of its own". */
function classText(value: object): string {
  const prototype = getPrototype(value)
  const own = prototype === null ? undefined : (getOwn(prototype, 'constructor')?.value as unknown)
  const name = typeof own === 'function' ? own.name : ''
  if (name === '' || name === 'Object') return 'an object with a prototype of its own'
  return `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`
}

/** Whether all properties are enumerable values under string keys. */
function isSimple(value: object, keys: readonly PropertyKey[]): boolean {
  for (const key of keys) {
    if (typeof key === 'symbol') return false
    const property = getOwn(value, key)
    if (property === undefined || !property.enumerable || property.get !== undefined) return false
    if (property.set !== undefined) return false
    if ((!property.writable || !property.configurable) && Object.isExtensible(value)) return false
  }
  return true
}

function isArguments(value: object): boolean {
  return Object.hasOwn(value, 'callee') && Object.prototype.toString.call(value) === '[object Arguments]'
}

/** 0: it can be extended. 1: not. 2: sealed. 3: frozen. */
function integrityOf(value: object): number {
  if (Object.isExtensible(value)) return 0
  return Object.isFrozen(value) ? 3 : Object.isSealed(value) ? 2 : 1
}

/** Keys that every function has, or that the compiler gives it. */
const functionKeys: ReadonlySet<PropertyKey> = new Set([
  'arguments',
  'caller',
  Symbol.for('heddle.twin'),
  Symbol.for('heddle.itself'),
  Symbol.for('heddle.takes'),
])

/** The properties of a closure that its maker does not give it: `name` and `length` if they are others. */
function closureExtras(fn: object, { name, length }: ClosureName): readonly PropertyKey[] {
  // The prototype of a generator function is made with it.
  const isGenerator = /Generator/.test(Object.prototype.toString.call(fn))
  return Reflect.ownKeys(fn).filter(key => {
    if (key === 'name' || key === 'length') {
      const property = getOwn(fn, key)!
      const isFixed = !property.writable && !property.enumerable && property.configurable
      return !isFixed || property.value !== (key === 'name' ? name : length)
    }
    return !functionKeys.has(key) && !(isGenerator && key === 'prototype')
  })
}

function standardPrototype(value: object, slot: number): object | null {
  switch (slot) {
    case kinds.ARRAY:
      return Array.prototype
    case kinds.MAP:
      return Map.prototype
    case kinds.SET:
      return Set.prototype
    case kinds.DATE:
      return Date.prototype
    case kinds.REGEXP:
      return RegExp.prototype
    case kinds.ERROR:
      return format.errorClasses[errorNumber(value as Error)].prototype as object
    case kinds.VIEW: {
      const number = format.viewNumbers.get((kinds.typedArrayName(value) as string | undefined) ?? 'DataView')
      return format.viewClasses[number as number]!.prototype as object
    }
    case kinds.ARRAY_BUFFER:
      return ArrayBuffer.prototype
    case kinds.DOM_EXCEPTION:
      return DOMException.prototype
    case kinds.BOXED:
      return Object.getPrototypeOf(Object(kinds.unbox(value))) as object
    default:
      return getPrototype(value)
  }
}
