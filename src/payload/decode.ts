import { isStackLimitable } from '../machine/core/stacklimit.ts'
import { assert } from '../arena/assert.ts'
import { copyOf } from './bytes.ts'
import * as format from './format.ts'
import { TextBytes } from './text.ts'
import { travellingByName } from './travelling.ts'
import { isStackOverflow } from './untravelable.ts'

/** Finds published objects by their ids. */
export interface ObjectSource {
  objectOf(id: number): object
}

const doubles = new Float64Array(1)
const halves = new Int32Array(doubles.buffer)

/** Reads the value of a block in the payload heap. It copies: no part of the result refers to the arena. */
export class PayloadDecoder {
  protected readonly i32: Int32Array
  private readonly u8: Uint8Array
  private readonly buffer: ArrayBufferLike
  private readonly text: TextBytes
  private readonly objectSource: ObjectSource
  protected at = 0
  protected pointer = 0
  /** The end of the structure. */
  protected end = 0
  protected objects: unknown[] = []
  /** The object to fill with the next value, which was allocated before; null: it is new. */
  protected into: object | null = null
  private shapes: (readonly string[])[] = []

  constructor(buffer: ArrayBufferLike, borrower: ObjectSource) {
    this.buffer = buffer
    this.i32 = new Int32Array(buffer)
    this.u8 = new Uint8Array(buffer)
    this.text = new TextBytes(buffer)
    this.objectSource = borrower
  }

  decode(pointer: number): unknown {
    // Creating an object of a registered class may decode another payload: the outer state is saved here.
    const { at, pointer: outer, objects, shapes, end: outerEnd } = this
    const nested = outer !== 0
    if (nested) {
      this.objects = []
      this.shapes = []
    }
    const end = pointer + this.i32[pointer + format.STRUCTURE_WORDS_AT]
    this.pointer = pointer
    this.end = end
    this.at = pointer + format.HEADER_WORDS
    try {
      const value = this.value()
      const published = this.i32[pointer + format.PUBLISHED_COUNT_AT]
      assert(this.at === end - published, 'the decoder reads a payload to its end')
      return value
    } catch (error) {
      throw isStackOverflow(error) ? tooDeepHere() : error
    } finally {
      this.pointer = outer
      this.end = outerEnd
      this.into = null
      if (nested) {
        this.at = at
        this.objects = objects
        this.shapes = shapes
      } else {
        if (this.objects.length !== 0) this.objects = []
        if (this.shapes.length !== 0) this.shapes = []
      }
    }
  }

  protected value(): unknown {
    const word = this.i32[this.at++]
    if ((word & 1) !== 0) return word >> 1
    let argument = word >>> format.ARGUMENT_SHIFT
    if (argument === format.ARGUMENT_LARGE) argument = this.i32[this.at++] >>> 0
    switch ((word >>> 1) & format.TAG_MASK) {
      case format.UNDEFINED:
        return undefined
      case format.NULL:
        return null
      case format.TRUE:
        return true
      case format.FALSE:
        return false
      case format.NUMBER:
        return this.double()
      case format.LATIN1:
        return this.latin1(argument)
      case format.UTF16:
        return this.utf16(argument)
      case format.BIGINT64: {
        const low = this.i32[this.at++]
        return (BigInt(this.i32[this.at++]) << 32n) | BigInt(low >>> 0)
      }
      case format.BIGINT: {
        const magnitude = BigInt(`0x${this.value() as string}`)
        return argument === 1 ? -magnitude : magnitude
      }
      case format.REFERENCE:
        return this.reference(argument)
      case format.OBJECT:
        return this.object(this.shapes[argument])
      case format.OBJECT_NEW_SHAPE: {
        const keys = this.keys(argument)
        this.shapes.push(keys)
        return this.object(keys)
      }
      case format.OBJECT_DICTIONARY:
        return this.object(this.keys(argument))
      case format.ARRAY:
      case format.ARRAY_INT32:
      case format.ARRAY_FLOAT64:
      case format.ARRAY_SPARSE:
      case format.ARRAY_NAMED:
        return this.array((word >>> 1) & format.TAG_MASK, argument)
      case format.MAP:
        return this.map(argument)
      case format.SET:
        return this.set(argument)
      case format.DATE:
        return this.remember(new Date(this.double()))
      case format.REGEXP: {
        const source = this.value() as string
        return this.remember(new RegExp(source, this.value() as string))
      }
      case format.BOXED: {
        const number = this.objects.push(undefined) - 1
        return (this.objects[number] = Object(this.value()) as unknown)
      }
      case format.ERROR:
        return this.error(argument)
      case format.DOM_EXCEPTION:
        return this.domException(argument)
      case format.BUFFER:
      case format.BUFFER_FAR:
        return this.arrayBuffer((word >>> 1) & format.TAG_MASK, argument, undefined)
      case format.BUFFER_RESIZABLE: {
        const maxByteLength = this.double()
        const inner = this.i32[this.at++]
        let length = inner >>> format.ARGUMENT_SHIFT
        if (length === format.ARGUMENT_LARGE) length = this.i32[this.at++] >>> 0
        return this.arrayBuffer((inner >>> 1) & format.TAG_MASK, length, { maxByteLength })
      }
      case format.VIEW:
      case format.VIEW_WHOLE:
        return this.view(argument, ((word >>> 1) & format.TAG_MASK) === format.VIEW_WHOLE)
      case format.PUBLISHED:
        return this.remember(this.objectSource.objectOf(argument))
      case format.TRAVELLING:
        return this.travelling()
      default:
        return this.other((word >>> 1) & format.TAG_MASK, argument)
    }
  }

  /** A value whose tag occurs only in images. */
  protected other(tag: number, _argument: number): unknown {
    throw new Error(
      `tag ${tag} at ${this.at - 1} starts no value: the payload is damaged; report this as a defect of heddle`,
    )
  }

  /** A count of words that follow. An image, which may come from anywhere, checks it. */
  protected count(count: number): number {
    return count
  }

  /** A value that was made here. An image can name others, which it must not change. */
  protected own<T>(value: T): T {
    return value
  }

  protected remember<T>(value: T): T {
    this.objects.push(value)
    return value
  }

  protected reference(number: number): unknown {
    const value = this.objects[number]
    if (value === undefined) {
      throw new TypeError(
        'toPlain of a registered class returned a value that contains the object itself; return a value without it',
      )
    }
    return value
  }

  protected double(): number {
    halves[0] = this.i32[this.at++]
    halves[1] = this.i32[this.at++]
    return doubles[0]
  }

  private latin1(length: number): string {
    this.count((length + 3) >>> 2)
    const text = this.text.readLatin1(this.at * 4, length)
    this.at += (length + 3) >>> 2
    return text
  }

  private utf16(length: number): string {
    this.count((length + 1) >>> 1)
    const text = this.text.readUtf16(this.at * 4, length)
    this.at += (length + 1) >>> 1
    return text
  }

  protected keys(count: number): readonly string[] {
    const keys = new Array<string>(this.count(count))
    for (let index = 0; index < count; index++) keys[index] = this.value() as string
    return keys
  }

  protected isAbsent(): boolean {
    if (this.i32[this.at] !== format.ABSENT << 1) return false
    this.at++
    return true
  }

  private object(keys: readonly string[]): Record<string, unknown> {
    let object = this.into as Record<string, unknown> | null
    const isInstance = object !== null
    if (object === null) {
      object = {}
      this.objects.push(object)
    } else this.into = null
    for (let index = 0; index < keys.length; index++) {
      if (this.isAbsent()) continue
      const key = keys[index]
      const value = this.value()
      // An instance may hide an accessor of its class, which an assignment would call.
      if (key === '__proto__' || (isInstance && key in object)) define(object, key, value)
      else object[key] = value
    }
    return object
  }

  private array(tag: number, argument: number): unknown[] {
    switch (tag) {
      case format.ARRAY_INT32: {
        const array = this.newArray(this.count(argument))
        const { i32, at } = this
        for (let index = 0; index < argument; index++) array[index] = i32[at + index]
        this.at = at + argument
        return array
      }
      case format.ARRAY_FLOAT64: {
        // The alignment counts from the block's start, which is on an even word.
        this.at += (this.at - this.pointer) & 1
        this.count(argument * 2)
        const source = new Float64Array(this.buffer, this.at * 4, argument)
        this.at += argument * 2
        const array = this.newArray(argument)
        for (let index = 0; index < argument; index++) array[index] = source[index]
        return array
      }
      case format.ARRAY_SPARSE: {
        const array = this.newArray(0)
        array.length = this.double()
        const count = this.count(this.i32[this.at++])
        for (let element = 0; element < count; element++) array[this.double()] = this.value()
        return array
      }
      case format.ARRAY_NAMED: {
        const array = this.own(this.value()) as unknown[]
        this.count(argument)
        for (let property = 0; property < argument; property++) {
          const key = this.value() as string
          if (!this.isAbsent()) define(array, key, this.value())
        }
        return array
      }
      default: {
        const array = this.newArray(this.count(argument))
        for (let index = 0; index < argument; index++) {
          if (!this.isAbsent()) array[index] = this.value()
        }
        return array
      }
    }
  }

  /** The array to fill: a new one, or the one that was allocated before. */
  private newArray(length: number): unknown[] {
    const allocated = this.into as unknown[] | null
    if (allocated === null) return this.remember(new Array<unknown>(length))
    this.into = null
    allocated.length = length
    return allocated
  }

  /** The object that was allocated before, or `made`, which gets a number. */
  private allocatedOr<T extends object>(made: T): T {
    const allocated = this.into as T | null
    if (allocated === null) return this.remember(made)
    this.into = null
    return allocated
  }

  private map(count: number): Map<unknown, unknown> {
    const map = this.allocatedOr(new Map<unknown, unknown>())
    this.count(count)
    for (let entry = 0; entry < count; entry++) {
      const key = this.value()
      map.set(key, this.value())
    }
    return map
  }

  private set(count: number): Set<unknown> {
    const set = this.allocatedOr(new Set<unknown>())
    this.count(count)
    for (let item = 0; item < count; item++) set.add(this.value())
    return set
  }

  private error(number: number): Error {
    const error = this.allocatedOr(makeError(number))
    const has = this.i32[this.at++]
    if ((has & format.ERROR_HAS_MESSAGE) !== 0) hide(error, 'message', this.value())
    if ((has & format.ERROR_HAS_STACK) !== 0) hide(error, 'stack', this.value())
    if ((has & format.ERROR_HAS_CAUSE) !== 0) hide(error, 'cause', this.value())
    if ((has & format.ERROR_HAS_ERRORS) !== 0) hide(error, 'errors', this.value())
    if ((has & format.ERROR_HAS_SUPPRESSED) !== 0) {
      hide(error, 'error', this.value())
      hide(error, 'suppressed', this.value())
    }
    this.errorProperties(error)
    return error
  }

  private errorProperties(error: Error): void {
    while (!this.isAbsent()) {
      const key = this.value() as string
      if (key === 'name') hide(error, key, this.value())
      else define(error, key, this.value())
    }
  }

  private domException(hasMore: number): DOMException {
    const message = this.value() as string
    const error = this.remember(withoutTrace(() => new DOMException(message, this.value() as string)))
    hide(error, 'stack', this.value())
    if (hasMore === 0) return error
    if (this.value() === true) hide(error, 'cause', this.value())
    this.errorProperties(error)
    return error
  }

  private arrayBuffer(
    tag: number,
    length: number,
    options: { maxByteLength: number } | undefined,
  ): ArrayBuffer {
    const Buffer = ArrayBuffer as new (length: number, options?: { maxByteLength: number }) => ArrayBuffer
    let start: number
    if (tag === format.BUFFER) {
      start = this.at * 4
      this.count((length + 3) >>> 2)
      this.at += (length + 3) >>> 2
    } else {
      start = this.far(this.i32[this.at++], length)
    }
    if (options === undefined) return this.remember(copyOf(this.u8, start, length))
    // A resizable buffer must be created first.
    const buffer = new Buffer(length, options)
    new Uint8Array(buffer).set(this.u8.subarray(start, start + length))
    return this.remember(buffer)
  }

  /** The byte at which a large buffer starts, from its position in the block. */
  protected far(position: number, _length: number): number {
    return (this.pointer + position) * 4
  }

  private view(kind: number, isWhole: boolean): ArrayBufferView {
    const number = this.objects.push(undefined) - 1
    const offset = isWhole ? 0 : this.double()
    const length = isWhole ? -1 : this.double()
    const buffer = this.value() as ArrayBuffer
    const View = format.viewClasses[kind]
    if (View === undefined)
      throw new TypeError('a Float16Array arrived, but this platform does not have that class')
    const view = length < 0 ? new View(buffer, offset) : new View(buffer, offset, length)
    this.objects[number] = view
    return view
  }

  protected travelling(): object {
    const number = this.objects.push(undefined) - 1
    const name = this.value() as string
    const plain = this.value()
    const travelling = travellingByName(name)
    if (travelling === undefined) {
      throw new TypeError(
        `an object of class ${name} arrived, but this thread has not imported the module of that class`,
      )
    }
    return (this.objects[number] = travelling.fromPlain(plain)) as object
  }
}

export function define(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}

function hide(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: false, configurable: true })
}

/** The sender's stack was larger, or less of it was used. */
function tooDeepHere(): RangeError {
  return new RangeError(
    'a value arrived that is nested too deeply for the stack of this thread; send it flatter, for example a list instead of a linked list',
  )
}

export function makeError(number: number): Error {
  return withoutTrace(() =>
    number === format.AGGREGATE_ERROR ? new AggregateError([]) : new format.errorClasses[number](),
  )
}

/** An error that arrives keeps the sender's stack, so none is captured here. */
function withoutTrace<T>(make: () => T): T {
  const limit = (Error as { stackTraceLimit?: number }).stackTraceLimit
  if (limit === undefined || !isStackLimitable) return make()
  try {
    Error.stackTraceLimit = 0
    return make()
  } finally {
    Error.stackTraceLimit = limit
  }
}
