import * as format from './format.ts'
import { define, makeError, type ObjectSource, PayloadDecoder } from './decode.ts'
import {
  type CodeName,
  type ImageCode,
  imageCode,
  ImageError,
  type ImageKind,
  imageKindByName,
} from './imagekinds.ts'
import { PLATFORM } from './imageencode.ts'
import { intrinsicByName, symbolByName } from './intrinsics.ts'
import { WeakEntry } from './weakentries.ts'

function damaged(what: string): ImageError {
  return new ImageError(`the image is damaged: ${what}; use another copy of it`)
}

/** An allocated object whose content follows. `carriers`: the classes that declare its private fields. */
interface Deferred {
  readonly object: object
  readonly kind: ImageKind | null
  readonly carriers?: readonly CodeName[]
  /** Its prototype travels too. */
  readonly isMade?: boolean
}

/** A module that an image names. */
export interface ImageModule {
  readonly key: string
  readonly url: string
}

/**
 * Reads an image (imageencode.ts). It trusts no word of it: each length, position and number is checked
 * before it is used, and code is found by name only.
 */
export class ImageDecoder extends PayloadDecoder {
  private code: ImageCode | null = null
  private codes: (CodeName | null)[] = []
  private modules: ImageModule[] = []
  private kinds: ImageKind[] = []
  private deferred: Deferred[] = []
  private unsettled: { readonly object: object; readonly kind: ImageKind }[] = []
  private integrity: { readonly object: object; readonly level: number }[] = []
  /** Objects of modules and of the platform, which an image names and never changes. */
  private foreign = new Set<unknown>()
  private readonly isPortable: boolean

  /** `isPortable`: the image may come from another process, so it cannot name objects of this one. */
  constructor(buffer: ArrayBufferLike, source: ObjectSource, isPortable: boolean) {
    super(buffer, source)
    this.isPortable = isPortable
  }

  override decode(pointer: number): unknown {
    this.checkSize(pointer)
    return super.decode(pointer)
  }

  private checkSize(pointer: number): void {
    const words = this.i32[pointer + format.STRUCTURE_WORDS_AT]
    const published = this.i32[pointer + format.PUBLISHED_COUNT_AT]
    const isWhole = words > format.HEADER_WORDS && pointer + words <= this.i32.length
    if (!isWhole || !(published >= 0 && published < words)) throw damaged('its size is wrong')
    if (this.isPortable && published !== 0) throw damaged('it names memory of another process')
  }

  /**
   * The modules that the image at `pointer` names, so that they can be loaded before it is read. What the
   * platform holds is there.
   */
  modulesOf(pointer: number): readonly ImageModule[] {
    this.checkSize(pointer)
    const { at, end } = this
    this.end = pointer + this.i32[pointer + format.STRUCTURE_WORDS_AT]
    this.at = pointer + format.HEADER_WORDS
    try {
      if (this.next() >>> 1 !== format.IMAGE) return []
      const table = pointer + this.next()
      return this.moduleTable(table).filter(({ key }) => key !== PLATFORM)
    } finally {
      this.at = at
      this.end = end
    }
  }

  private moduleTable(table: number): ImageModule[] {
    if (!(table > this.pointer && table < this.end)) throw damaged('its module table is outside of it')
    const back = this.at
    this.at = table
    const modules: ImageModule[] = []
    const count = this.count(this.next())
    for (let module = 0; module < count; module++)
      modules.push({ key: this.nameText(), url: this.nameText() })
    this.tableEnd = this.at
    this.at = back
    return modules
  }

  private tableEnd = 0

  protected override other(tag: number, argument: number): unknown {
    switch (tag) {
      case format.IMAGE:
        return this.image()
      case format.NAMED: {
        const number = this.reserve()
        const found = this.found(this.name())
        if (typeof found === 'symbol') throw damaged('a symbol in place of an object')
        this.foreign.add(found)
        return (this.objects[number] = found)
      }
      case format.CLOSURE:
        return this.closure(argument)
      case format.KIND:
        return this.kindObject(this.count(argument))
      case format.INSTANCE: {
        this.into = this.remember(Object.create(this.prototypeOf(this.name())) as object)
        return this.value()
      }
      case format.OBJECT_EXACT:
        return this.exact(this.takeInto() ?? this.remember({}), this.count(argument))
      case format.OBJECT_WITHOUT_PROTOTYPE:
        this.into = this.remember(Object.create(null) as object)
        return this.value()
      case format.EXTRA:
        return this.extra(argument)
      case format.DEFERRED:
        return this.allocate(argument)
      case format.SYMBOL: {
        if (argument === 2) {
          const symbol = this.found(this.name())
          if (typeof symbol !== 'symbol') throw damaged('an object in place of a symbol')
          return symbol
        }
        const name = this.nameText()
        const found = symbolByName(name, argument === 1)
        if (found === undefined) throw new ImageError(`this platform has no Symbol.${name}`)
        return found
      }
      case format.ARGUMENTS: {
        const made = this.remember(argumentsOf(this.count(argument)))
        for (let index = 0; index < argument; index++) made[index] = this.value()
        return made
      }
      case format.REGEXP_AT: {
        const lastIndex = this.double()
        const made = this.own(this.value())
        if (!(made instanceof RegExp)) throw damaged('a position without its regular expression')
        made.lastIndex = lastIndex
        return made
      }
      default:
        throw damaged(`tag ${tag} starts no value`)
    }
  }

  private image(): unknown {
    // The state of an image around this one: an object of a registered class may contain one.
    const { codes, modules, kinds, deferred, unsettled, integrity, code, foreign } = this
    const table = this.pointer + this.next()
    this.modules = this.moduleTable(table)
    const end = this.tableEnd
    this.codes = []
    this.kinds = []
    this.deferred = []
    this.unsettled = []
    this.integrity = []
    this.foreign = new Set()
    this.code = imageCode()
    try {
      const value = this.value()
      let next = 0
      for (;;) {
        for (; next < this.deferred.length; next++) this.content(this.deferred[next])
        if (this.at >= table) break
        if (!(this.value() instanceof WeakEntry)) throw damaged('more than one value')
      }
      if (this.at !== table) throw damaged('its value does not end where its module table begins')
      for (const { object, kind } of this.unsettled) kind.settle!(object)
      for (const { object, level } of this.integrity) {
        if (level === 3) Object.freeze(object)
        else if (level === 2) Object.seal(object)
        else Object.preventExtensions(object)
      }
      this.at = end
      return value
    } finally {
      Object.assign(this, { codes, modules, kinds, deferred, unsettled, integrity, code, foreign })
    }
  }

  private content({ object, kind, carriers, isMade }: Deferred): void {
    if (kind !== null) return this.kindContent(object, kind)
    if (isMade === true) {
      const prototype = this.value()
      if (typeof prototype !== 'object') throw damaged('a prototype is no object')
      Object.setPrototypeOf(object, prototype)
    }
    this.into = object
    if (this.value() !== object) throw damaged('content without its object')
    for (const carrier of carriers ?? []) this.privates(object, carrier)
  }

  protected override value(): unknown {
    if (this.at >= this.end) throw damaged('it ends in the middle of a value')
    return super.value()
  }

  protected override reference(number: number): unknown {
    const value = this.objects[number]
    if (value === undefined) throw damaged('a reference to an object that does not exist')
    return value
  }

  private next(): number {
    if (this.at >= this.end) throw damaged('it ends in the middle of a value')
    return this.i32[this.at++]
  }

  /** A count of values that follow: each takes a word at least. */
  protected override count(count: number): number {
    if (!(count >= 0 && count <= this.end - this.at)) throw damaged('a length exceeds its size')
    return count
  }

  protected override far(position: number, length: number): number {
    const start = super.far(position, length)
    const isInside = start >= this.end * 4 && start + length <= this.i32.byteLength
    if (!isInside) throw damaged('a buffer is outside of it')
    return start
  }

  protected override travelling(): object {
    if (this.isPortable) throw damaged('it names an object of a kernel')
    return super.travelling()
  }

  protected override own<T>(value: T): T {
    if (this.foreign.has(value)) throw damaged('it changes an object that is not its own')
    return value
  }

  private nameText(): string {
    const value = this.value()
    if (typeof value !== 'string') throw damaged('a name is no text')
    return value
  }

  private takeInto(): object | null {
    const { into } = this
    this.into = null
    return into
  }

  private reserve(): number {
    return this.objects.push(undefined) - 1
  }

  private name(): CodeName {
    const number = this.next()
    if (number === this.codes.length) {
      // The number is taken first, as the sender did.
      this.codes.push(null)
      const module = this.modules[this.next()]
      if (module === undefined) throw damaged('a name without its module')
      const name = { module: module.key, url: module.url, key: this.nameText(), hash: this.nameText() }
      this.codes[number] = name
      return name
    }
    const known = this.codes[number]
    if (known === undefined || known === null) throw damaged('a name that does not exist')
    return known
  }

  private found(name: CodeName): object | symbol {
    if (name.module === PLATFORM) return platformObject(name.key)
    return this.codeOf(name).find(name)
  }

  private codeOf(name: CodeName): ImageCode {
    if (this.code === null)
      throw new ImageError(`${name.module} ${name.key}: this thread has not loaded heddle's compiled code`)
    return this.code
  }

  private prototypeOf(name: CodeName): object {
    if (name.module !== PLATFORM) return this.codeOf(name).prototypeOf(name)
    const { prototype } = platformObject(name.key) as { prototype?: unknown }
    if (typeof prototype !== 'object' || prototype === null) throw damaged(`${name.key} is no class`)
    return prototype
  }

  private closure(argument: number): object {
    const number = this.reserve()
    const name = this.name()
    const count = this.count(argument >>> 2)
    const captured: unknown[] = []
    for (let index = 0; index < count; index++) captured.push(this.value())
    const made = this.codeOf(name).make(name, captured, (argument & 2) !== 0)
    this.objects[number] = made
    if ((argument & 1) !== 0) this.deferred.push({ object: made, kind: null })
    return made
  }

  private kind(): ImageKind {
    const number = this.next()
    if (number === this.kinds.length) {
      const name = this.nameText()
      const kind = imageKindByName(name)
      if (kind === undefined) throw new ImageError(`an object of kind ${name} arrived, which is unknown here`)
      this.kinds.push(kind)
    }
    const kind = this.kinds[number]
    if (kind === undefined) throw damaged('a kind that does not exist')
    return kind
  }

  private kindObject(count: number): object {
    const kind = this.kind()
    const object = this.takeInto() ?? this.remember(kind.create())
    this.fill(object, kind, count)
    return object
  }

  private kindContent(object: object, kind: ImageKind): void {
    const word = this.next()
    if (((word >>> 1) & format.TAG_MASK) !== format.KIND) throw damaged('content of another kind')
    let count = word >>> format.ARGUMENT_SHIFT
    if (count === format.ARGUMENT_LARGE) count = this.next() >>> 0
    if (this.kind() !== kind) throw damaged('content of another kind')
    this.fill(object, kind, this.count(count))
  }

  private fill(object: object, kind: ImageKind, count: number): void {
    const parts: unknown[] = []
    for (let part = 0; part < count; part++) parts.push(this.value())
    kind.fill(object, parts)
    if (kind.settle !== undefined) this.unsettled.push({ object, kind })
  }

  private extra(flags: number): unknown {
    const prototype = (flags & format.EXTRA_PROTOTYPE) === 0 ? null : this.prototypeOf(this.name())
    const object = this.own(this.value())
    if (!isObject(object) || (typeof object === 'function' && prototype !== null))
      throw damaged('a wrapper without its object')
    if (prototype !== null) Object.setPrototypeOf(object, prototype)
    if ((flags & format.EXTRA_PROPERTIES) !== 0) {
      this.into = object
      if (this.value() !== object) throw damaged('properties without their object')
    }
    const level = flags >>> format.EXTRA_INTEGRITY_SHIFT
    if (level !== 0) this.integrity.push({ object, level })
    return object
  }

  private allocate(what: number): object {
    let object: object
    let kind: ImageKind | null = null
    let carriers: CodeName[] | undefined
    if (what >= format.DEFERRED_ERROR) {
      const number = what - format.DEFERRED_ERROR
      if (format.errorClasses[number] === undefined) throw damaged('an error of no class')
      object = makeError(number)
    } else if (what === format.DEFERRED_OBJECT || what === format.DEFERRED_MADE) object = {}
    else if (what === format.DEFERRED_ARRAY) object = []
    else if (what === format.DEFERRED_MAP) object = new Map()
    else if (what === format.DEFERRED_SET) object = new Set()
    else if (what === format.DEFERRED_WITHOUT_PROTOTYPE) object = Object.create(null) as object
    else if (what === format.DEFERRED_INSTANCE)
      object = Object.create(this.prototypeOf(this.name())) as object
    else if (what === format.DEFERRED_KIND) {
      kind = this.kind()
      object = kind.create()
    } else if (what === format.DEFERRED_PRIVATE) {
      const prototype = this.prototypeOf(this.name())
      const count = this.count(this.next())
      if (count === 0) throw damaged('private fields without their class')
      carriers = Array.from({ length: count }, () => this.name())
      object = this.codeOf(carriers[0]).install(carriers, prototype)
    } else throw damaged('an object of no kind')
    const isMade = what === format.DEFERRED_MADE
    this.deferred.push({ object, kind, isMade, ...(carriers !== undefined && { carriers }) })
    return this.remember(object)
  }

  private privates(object: object, carrier: CodeName): void {
    const count = this.count(this.next())
    const names: string[] = []
    const values: unknown[] = []
    for (let index = 0; index < count; index++) {
      names.push(this.nameText())
      values.push(this.value())
    }
    this.codeOf(carrier).writePrivates(carrier, object, names, values)
  }

  private exact(object: object, count: number): object {
    for (let index = 0; index < count; index++) {
      const key = this.value()
      if (typeof key !== 'string' && typeof key !== 'symbol') throw damaged('a property without a name')
      const flags = this.next()
      const enumerable = (flags & format.PROPERTY_ENUMERABLE) !== 0
      const configurable = (flags & format.PROPERTY_CONFIGURABLE) !== 0
      if ((flags & format.PROPERTY_ACCESSOR) === 0) {
        const writable = (flags & format.PROPERTY_WRITABLE) !== 0
        const value = this.value()
        if (writable && enumerable && configurable && typeof key === 'string') define(object, key, value)
        else Object.defineProperty(object, key, { value, writable, enumerable, configurable })
        continue
      }
      const get = this.accessor()
      const set = this.accessor()
      Object.defineProperty(object, key, { get, set, enumerable, configurable })
    }
    return object
  }

  private accessor(): (() => unknown) | undefined {
    const value = this.value()
    if (value !== undefined && typeof value !== 'function') throw damaged('an accessor is no function')
    return value as (() => unknown) | undefined
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function platformObject(key: string): object {
  const found = intrinsicByName(key)
  if (found === undefined) throw new ImageError(`this platform has no ${key}`)
  return found
}

function argumentsOf(count: number): unknown[] {
  return (function (..._list: unknown[]) {
    return arguments as unknown as unknown[]
  })(...new Array<unknown>(count))
}
