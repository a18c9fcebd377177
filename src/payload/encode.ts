import { isIndex, matchKeys, namedKeys } from './arraykeys.ts'
import { descriptorValue, errorNumber, ownName } from './errorclass.ts'
import * as format from './format.ts'
import * as kinds from './kinds.ts'
import { ObjectNumbers } from './objectnumbers.ts'
import { insteadOf } from './staying.ts'
import { isDetached } from './transfer.ts'
import { ofAnotherCopy, travellingOf } from './travelling.ts'
import {
  describe,
  formatPath,
  keyStep,
  type PathStep,
  reasonInWords,
  UntravelableError,
  valueStep,
} from './untravelable.ts'
import { followsBuffer, isOutOfBounds, isResizable } from './views.ts'
import { PayloadWriter } from './writer.ts'

/** Gives an id to each published object: every thread of the kernel can find the object by it. */
export interface ObjectIds {
  /** False: the platform cannot send the object to all threads. */
  carries(object: object): boolean
  idOf(object: object): number
}

/** An object's keys are compared with at most this many shapes, the latest first. */
const SHAPES_COMPARED = 4
/**
 * Arrays longer than this are not searched for named properties: the platform lists every index with them.
 */
const NAMED_LENGTH_MAX = 64

const hasOwn = Object.hasOwn
const mapForEach = Map.prototype.forEach
const setForEach = Set.prototype.forEach

/**
 * Writes a value in the order of structured clone: own enumerable properties in order, getters called,
 * internal slots where there are some. Call `start`, `value`, `finish`, then `release`: the encoder keeps no
 * part of the value after that.
 */
export class PayloadEncoder {
  readonly writer: PayloadWriter = new PayloadWriter()
  protected readonly lender: ObjectIds
  protected root: string = ''
  protected readonly steps: PathStep[] = []
  protected readonly mapKeys: unknown[] = []
  protected depth: number = 0
  protected readonly numbers: ObjectNumbers = new ObjectNumbers()
  protected shapes: string[][] = []
  protected published: number[] = []
  /** Whether a property of an error that cannot travel is left out. */
  protected readonly omits: boolean = true
  /** Whether the value was thrown: an error in it arrives, whatever its parts are. */
  private isFailure: boolean = false

  constructor(lender: ObjectIds) {
    this.lender = lender
  }

  /** `root` names the value in error messages: 'args', 'result'. */
  start(root: string, isFailure: boolean = false): void {
    this.root = root
    this.isFailure = isFailure
    this.depth = 0
    this.writer.start(format.HEADER_WORDS)
  }

  /** Ends the structure. Returns the size of the block in words. */
  finish(): number {
    const { writer, published } = this
    for (let index = 0; index < published.length; index++) writer.word(published[index])
    writer.words[format.STRUCTURE_WORDS_AT] = writer.at
    writer.words[format.PUBLISHED_COUNT_AT] = published.length
    return writer.layOut()
  }

  release(): void {
    if (this.numbers.count !== 0) this.numbers.forget(0)
    if (this.shapes.length !== 0) this.shapes = []
    if (this.published.length !== 0) this.published = []
    this.steps.length = 0
    this.mapKeys.length = 0
  }

  value(value: unknown): void {
    const writer = this.writer
    switch (typeof value) {
      case 'number':
        this.number(value)
        return
      case 'string':
        writer.string(value)
        return
      case 'object':
        if (value === null) writer.tag(format.NULL, 0)
        else this.object(value)
        return
      case 'boolean':
        writer.tag(value ? format.TRUE : format.FALSE, 0)
        return
      case 'undefined':
        writer.tag(format.UNDEFINED, 0)
        return
      case 'bigint':
        this.bigint(value)
        return
      default:
        this.refuse(value)
    }
  }

  private number(value: number): void {
    if (
      (value | 0) === value &&
      value >= format.INTEGER_MIN &&
      value <= format.INTEGER_MAX &&
      !Object.is(value, -0)
    ) {
      this.writer.word((value << 1) | 1)
      return
    }
    this.writer.tag(format.NUMBER, 0)
    this.writer.double(value)
  }

  private bigint(value: bigint): void {
    const writer = this.writer
    if (BigInt.asIntN(64, value) === value) {
      writer.tag(format.BIGINT64, 0)
      writer.word(Number(BigInt.asIntN(32, value)))
      writer.word(Number(BigInt.asIntN(32, value >> 32n)))
      return
    }
    writer.tag(format.BIGINT, value < 0n ? 1 : 0)
    writer.string((value < 0n ? -value : value).toString(16))
  }

  protected object(value: object): void {
    if (!this.reference(value)) this.slots(value, kinds.kindOf(value))
  }

  /** Writes an object of this kind that has a number already. */
  protected slots(value: object, kind: number): void {
    const writer = this.writer
    switch (kind) {
      case kinds.PLAIN:
        this.properties(value as Record<string, unknown>)
        return
      case kinds.ARRAY:
        this.array(value as unknown[])
        return
      case kinds.MAP:
        this.map(value as Map<unknown, unknown>)
        return
      case kinds.SET:
        this.set(value as Set<unknown>)
        return
      case kinds.DATE:
        writer.tag(format.DATE, 0)
        writer.double(kinds.dateTime(value))
        return
      case kinds.REGEXP:
        writer.tag(format.REGEXP, 0)
        writer.string(kinds.regexpSource(value) as string)
        writer.string(kinds.regexpFlags(value) as string)
        return
      case kinds.ERROR:
        this.error(value as Error)
        return
      case kinds.DOM_EXCEPTION:
        this.domException(value as DOMException)
        return
      case kinds.VIEW:
        this.view(value as ArrayBufferView)
        return
      case kinds.ARRAY_BUFFER:
        this.buffer(value as ArrayBuffer)
        return
      case kinds.BOXED:
        writer.tag(format.BOXED, 0)
        this.value(kinds.unbox(value))
        return
      case kinds.PUBLISHED:
        this.lend(value)
        return
      case kinds.TRAVELLING:
        this.travelling(value)
        return
      default:
        this.refuse(value)
    }
  }

  /** Writes a reference and returns true if the object has a number already; else numbers it. */
  protected reference(value: object): boolean {
    const number = this.numbers.number(value)
    if (number < 0) return false
    this.writer.tag(format.REFERENCE, number)
    return true
  }

  protected properties(value: Record<string, unknown>): void {
    const keys = Object.keys(value)
    const count = keys.length
    const writer = this.writer
    const shape = count <= format.SHAPE_KEYS_MAX ? this.shapeOf(keys) : -1
    if (shape >= 0) {
      writer.tag(format.OBJECT, shape)
    } else {
      writer.tag(count <= format.SHAPE_KEYS_MAX ? format.OBJECT_NEW_SHAPE : format.OBJECT_DICTIONARY, count)
      for (let index = 0; index < count; index++) writer.string(keys[index])
      if (count <= format.SHAPE_KEYS_MAX) this.shapes.push(keys)
    }
    const depth = this.depth++
    for (let index = 0; index < count; index++) {
      const key = keys[index]
      this.steps[depth] = key
      const property = value[key]
      if (property === undefined && !hasOwn(value, key)) writer.tag(format.ABSENT, 0)
      else this.value(property)
    }
    this.depth = depth
  }

  private shapeOf(keys: readonly string[]): number {
    const shapes = this.shapes
    const last = Math.max(0, shapes.length - SHAPES_COMPARED)
    for (let at = shapes.length - 1; at >= last; at--) {
      const shape = shapes[at]
      if (shape.length !== keys.length) continue
      let index = 0
      while (index < keys.length && shape[index] === keys[index]) index++
      if (index === keys.length) return at
    }
    return -1
  }

  protected array(value: unknown[]): void {
    const length = value.length
    const named = length <= NAMED_LENGTH_MAX ? namedKeys(value) : matchKeys(value)
    if (named !== null) this.writer.tag(format.ARRAY_NAMED, named.length)
    this.elements(value, length)
    if (named === null) return
    const depth = this.depth++
    for (const key of named) {
      this.steps[depth] = key
      this.writer.string(key)
      const property = (value as unknown as Record<string, unknown>)[key]
      if (property === undefined && !hasOwn(value, key)) this.writer.tag(format.ABSENT, 0)
      else this.value(property)
    }
    this.depth = depth
  }

  /** Writes the arguments of a call: an array without named properties. */
  list(value: readonly unknown[]): void {
    if (!this.reference(value)) this.elements(value, value.length)
  }

  private elements(value: readonly unknown[], length: number): void {
    const writer = this.writer
    let numbers = 0
    let integers = true
    while (numbers < length) {
      const element = value[numbers]
      if (typeof element !== 'number') break
      if ((element | 0) !== element || (element === 0 && Object.is(element, -0))) integers = false
      numbers++
    }
    if (numbers === length && length > 0) {
      if (integers) {
        writer.tag(format.ARRAY_INT32, length)
        writer.integers(value as readonly number[])
      } else {
        writer.tag(format.ARRAY_FLOAT64, length)
        writer.doubles(value as readonly number[])
      }
      return
    }
    if (length > 1024 && this.sparse(value, length)) return
    writer.tag(format.ARRAY, length)
    const depth = this.depth++
    for (let index = 0; index < length; index++) {
      const element = value[index]
      if (element === undefined) {
        writer.tag(hasOwn(value, index) ? format.UNDEFINED : format.ABSENT, 0)
      } else {
        this.steps[depth] = index
        this.value(element)
      }
    }
    this.depth = depth
  }

  /** Writes an array that is mostly holes as its elements: `a[4e9] = 1` is short. */
  private sparse(value: readonly unknown[], length: number): boolean {
    // Probe a few indices first: listing the keys of a long dense array costs more than writing it.
    for (let probe = 0; probe < 32; probe++) if (Math.floor((probe * length) / 32) in value) return false
    const keys = Object.keys(value).filter(isIndex)
    if (keys.length * 2 > length) return false
    this.writer.tag(format.ARRAY_SPARSE, 0)
    this.writer.double(length)
    this.writer.word(keys.length)
    const depth = this.depth++
    for (const key of keys) {
      this.steps[depth] = Number(key)
      this.writer.double(Number(key))
      this.value(value[Number(key)])
    }
    this.depth = depth
    return true
  }

  protected map(value: Map<unknown, unknown>): void {
    const entries: unknown[] = []
    mapForEach.call(value, (item, key) => void entries.push(key, item))
    this.writer.tag(format.MAP, entries.length >>> 1)
    const depth = this.depth++
    for (let index = 0; index < entries.length; index += 2) {
      const key = entries[index]
      this.steps[depth] = keyStep(index >>> 1)
      this.value(key)
      this.steps[depth] = valueStep(index >>> 1)
      this.mapKeys[depth] = key
      this.value(entries[index + 1])
    }
    this.depth = depth
  }

  protected set(value: Set<unknown>): void {
    const items: unknown[] = []
    setForEach.call(value, item => void items.push(item))
    this.writer.tag(format.SET, items.length)
    const depth = this.depth++
    for (let index = 0; index < items.length; index++) {
      this.steps[depth] = valueStep(index)
      this.mapKeys[depth] = undefined
      this.value(items[index])
    }
    this.depth = depth
  }

  protected error(error: Error): void {
    const writer = this.writer
    const number = errorNumber(error)
    const message = descriptorValue(error, 'message')
    const stack = this.read(() => error.stack)
    const hasCause = hasOwn(error, 'cause')
    const isSuppressed = number === format.SUPPRESSED_ERROR
    const errors = number === format.AGGREGATE_ERROR ? descriptorValue(error, 'errors') : undefined
    writer.tag(format.ERROR, number)
    writer.word(
      (message === undefined ? 0 : format.ERROR_HAS_MESSAGE) |
        (typeof stack === 'string' ? format.ERROR_HAS_STACK : 0) |
        (hasCause ? format.ERROR_HAS_CAUSE : 0) |
        (Array.isArray(errors) ? format.ERROR_HAS_ERRORS : 0) |
        (isSuppressed ? format.ERROR_HAS_SUPPRESSED : 0),
    )
    if (message !== undefined) writer.string(this.read(() => String(message)) ?? '')
    if (typeof stack === 'string') writer.string(stack)
    const depth = this.depth++
    if (hasCause) this.part(depth, 'cause', () => error.cause)
    if (Array.isArray(errors)) this.errorList(depth, errors)
    if (isSuppressed) {
      this.part(depth, 'error', () => descriptorValue(error, 'error'))
      this.part(depth, 'suppressed', () => descriptorValue(error, 'suppressed'))
    }
    this.errorProperties(error, depth, this.nameOfError(error))
    this.depth = depth
  }

  /** What an accessor of an error returns; in a failure undefined if it throws. */
  private read<T>(get: () => T): T | undefined {
    try {
      return get()
    } catch (thrown) {
      if (!this.isFailure) throw thrown
      return undefined
    }
  }

  /** Writes a part of an error. In a failure, a text replaces a part that cannot travel. */
  private part(depth: number, step: PathStep, get: () => unknown): void {
    this.steps[depth] = step
    if (!this.isFailure) {
      this.value(get())
      return
    }
    const refusal = this.attempt(() => this.value(get()))
    if (refusal !== null) this.writer.string(`(${reasonInWords(this.path(), refusal.thrown)})`)
  }

  private errorList(depth: number, errors: readonly unknown[]): void {
    this.steps[depth] = 'errors'
    if (!this.isFailure) {
      this.value(errors)
      return
    }
    if (this.reference(errors)) return
    this.writer.tag(format.ARRAY, errors.length)
    this.depth++
    for (let index = 0; index < errors.length; index++) this.part(depth + 1, index, () => errors[index])
    this.depth--
  }

  /** Writes a part of a value, or nothing if that throws. Returns null, or the error. */
  private attempt(write: () => void): { readonly thrown: unknown } | null {
    const { writer, depth, numbers, published, shapes } = this
    const mark = writer.at
    const farMark = writer.farCount
    const numbersMark = numbers.count
    const publishedMark = published.length
    const shapeCount = shapes.length
    try {
      write()
      return null
    } catch (thrown) {
      writer.rollback(mark, farMark)
      numbers.forget(numbersMark)
      published.length = publishedMark
      shapes.length = shapeCount
      this.depth = depth
      return { thrown }
    }
  }

  /**
   * Writes the other properties of an error (`code`, `path`, its own `name`). One that cannot travel is left
   * out: the error itself must arrive.
   */
  private errorProperties(error: Error, depth: number, name: string | undefined): void {
    const { writer } = this
    const keys = this.errorKeys(error)
    if (name !== undefined && !keys.includes('name')) keys.push('name')
    for (const key of keys) {
      this.steps[depth] = key
      const refusal = this.attempt(() => {
        writer.string(key)
        this.value(
          key === 'name' && name !== undefined ? name : (error as unknown as Record<string, unknown>)[key],
        )
      })
      if (refusal === null || this.isFailure) continue
      if (!this.omits || !(refusal.thrown instanceof UntravelableError)) throw refusal.thrown
    }
    writer.tag(format.ABSENT, 0)
  }

  protected errorKeys(error: Error): string[] {
    return Object.keys(error).filter(key => key !== 'message' && key !== 'stack' && key !== 'cause')
  }

  /** The name that an error has as a property of its own when it arrives. */
  protected nameOfError(error: Error): string | undefined {
    return this.read(() => ownName(error))
  }

  private domException(error: DOMException): void {
    const { writer } = this
    const hasCause = hasOwn(error, 'cause')
    const hasMore = hasCause || Object.keys(error).length > 0
    writer.tag(format.DOM_EXCEPTION, hasMore ? 1 : 0)
    writer.string(error.message)
    writer.string(error.name)
    const stack = this.read(() => error.stack)
    writer.string(typeof stack === 'string' ? stack : '')
    if (!hasMore) return
    const depth = this.depth++
    writer.tag(hasCause ? format.TRUE : format.FALSE, 0)
    if (hasCause) this.part(depth, 'cause', () => error.cause)
    this.errorProperties(error, depth, undefined)
    this.depth = depth
  }

  private view(view: ArrayBufferView): void {
    const writer = this.writer
    const name = kinds.typedArrayName(view) as string | undefined
    const number = format.viewNumbers.get(name ?? 'DataView') as number
    const buffer = view.buffer
    if (isDetached(buffer as ArrayBuffer)) this.refuse(view, 'a view of a detached ArrayBuffer')
    if (isResizable(buffer) && isOutOfBounds(view))
      this.refuse(view, 'a view beyond the end of its ArrayBuffer')
    const follows = followsBuffer(view)
    if (!follows && view.byteOffset === 0 && view.byteLength === buffer.byteLength && !isResizable(buffer)) {
      writer.tag(format.VIEW_WHOLE, number)
    } else {
      writer.tag(format.VIEW, number)
      writer.double(view.byteOffset)
      writer.double(follows ? -1 : name === undefined ? view.byteLength : (view as Uint8Array).length)
    }
    const depth = this.depth++
    this.steps[depth] = 'buffer'
    this.object(buffer)
    this.depth = depth
  }

  private buffer(buffer: ArrayBuffer): void {
    if (isDetached(buffer)) this.refuse(buffer, 'a detached ArrayBuffer')
    if (isResizable(buffer)) {
      this.writer.tag(format.BUFFER_RESIZABLE, 0)
      this.writer.double((buffer as { maxByteLength?: number }).maxByteLength as number)
    }
    this.writer.buffer(new Uint8Array(buffer, 0, buffer.byteLength))
  }

  protected lend(value: object): void {
    if (!this.lender.carries(value)) this.refuse(value)
    const id = this.lender.idOf(value)
    this.published.push(id)
    this.writer.tag(format.PUBLISHED, id)
  }

  protected travelling(value: object): void {
    const travelling = travellingOf(Object.getPrototypeOf(value) as object | null)
    if (travelling === undefined) return this.refuse(value)
    this.writer.tag(format.TRAVELLING, 0)
    this.writer.string(travelling.name)
    this.value(travelling.toPlain(value))
  }

  /** The path to the current value. */
  protected path(): string {
    return formatPath(this.root, this.steps.slice(0, this.depth), this.mapKeys)
  }

  protected refuse(value: unknown, what: string = describe(value)): never {
    const path = this.path()
    const advice =
      typeof value === 'function'
        ? 'export it from a module and let the task import that module'
        : isTransferable(value)
          ? 'list it in the option `transfer` to move it'
          : adviceFor(value)
    const foreign = typeof value === 'object' && value !== null ? ofAnotherCopy(value) : undefined
    if (foreign !== undefined) {
      throw new UntravelableError(
        path,
        `a ${foreign.replace('heddle.', '')} of another copy of heddle`,
        'this program has two copies; find them with `npm ls heddle`, and merge them with `npm dedupe`',
      )
    }
    throw new UntravelableError(path, what, advice)
  }
}

/** Objects that `postMessage` moves to another thread and never copies. */
const transferable =
  /^(?:MessagePort|OffscreenCanvas|ImageBitmap|ReadableStream|WritableStream|TransformStream|AudioData|VideoFrame|RTCDataChannel|MediaSourceHandle|FileHandle)$/

function adviceFor(value: unknown): string {
  if (typeof value === 'symbol') return 'send its name'
  const instead = typeof value === 'object' && value !== null ? insteadOf(value) : undefined
  if (instead !== undefined) return instead
  const kind = Object.prototype.toString.call(value)
  if (kind === '[object Promise]') return 'await it, and send the result'
  if (kind === '[object URL]') return 'send its href'
  if (kind === '[object AbortSignal]' || kind === '[object AbortController]')
    return 'give the signal to the spawn, as its option `signal`; the task has current().signal'
  if (kind === '[object WeakMap]' || kind === '[object WeakSet]' || kind === '[object WeakRef]')
    return 'send a Map, a Set or the value itself'
  return onlyMessages(value)
}

/** What to do with an object that only a message to one thread can copy; '' for others. */
function onlyMessages(value: unknown): string {
  if (typeof value !== 'object' || value === null || kinds.kindOf(value) !== kinds.PUBLISHED) return ''
  return Object.prototype.toString.call(value) === '[object WebAssembly.Memory]'
    ? 'make it with `shared: true`'
    : 'send it as a message: task.post(value), or post(value) in the task'
}

function isTransferable(value: unknown): boolean {
  return transferable.test(Object.prototype.toString.call(value).slice(8, -1))
}
