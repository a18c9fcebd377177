import { checkOptions } from '../../coroutine/core/knownoptions.ts'
import {
  handleOf,
  openHandle,
  type OwnPlace,
  type ObjectWords,
  wordsFor,
  ownPlaceKinds,
  type SyncHandle,
} from '../wait/objectwords.ts'

/** A float64 or a 64-bit integer that threads change without a lock. Two words, the first of them even. */
abstract class Cell64 {
  static readonly words = 2
  protected readonly bits: BigInt64Array
  protected readonly index: number
  private readonly kind: string
  private readonly own: ObjectWords

  protected constructor(kind: string, options: OwnPlace) {
    checkOptions(`new ${kind}(options)`, options, ownPlaceKinds)
    this.own = wordsFor(kind, Cell64.words, options)
    const { i32, at } = this.own
    if (at % 2 !== 0) throw new RangeError(`new ${kind}({ index }): it starts at an even word`)
    this.kind = kind
    this.bits = new BigInt64Array(i32.buffer, 0, Math.floor(i32.length / 2))
    this.index = at / 2
  }

  /** For `postMessage`; the receiver calls `from` of the same class. */
  get handle(): SyncHandle {
    return handleOf(this.kind, this.own)
  }

  /** Its memory: pass it to the constructor on another thread. */
  get place(): { readonly buffer: SharedArrayBuffer; readonly index: number } {
    return { buffer: this.own.i32.buffer, index: this.own.at }
  }
}

function placeOf(kind: string, handle: SyncHandle): OwnPlace {
  const { place } = openHandle(kind, handle)
  return { buffer: place.i32.buffer, index: place.at }
}

export class AtomicBigInt64 extends Cell64 {
  constructor(options: OwnPlace = {}) {
    super('AtomicBigInt64', options)
  }

  static from(handle: SyncHandle): AtomicBigInt64 {
    return new AtomicBigInt64(placeOf('AtomicBigInt64', handle))
  }

  /** What `console.log` and JSON show of it. JSON has no bigint. */
  toJSON(): { readonly value: string } {
    return { value: String(this.load()) }
  }

  load(): bigint {
    return Atomics.load(this.bits, this.index)
  }

  store(value: bigint): void {
    Atomics.store(this.bits, this.index, value)
  }

  add(by: bigint): bigint {
    return Atomics.add(this.bits, this.index, by)
  }

  sub(by: bigint): bigint {
    return Atomics.sub(this.bits, this.index, by)
  }

  exchange(value: bigint): bigint {
    return Atomics.exchange(this.bits, this.index, value)
  }

  compareExchange(expected: bigint, value: bigint): bigint {
    return Atomics.compareExchange(this.bits, this.index, expected, value)
  }
}

const float = new Float64Array(1)
const floatBits = new BigInt64Array(float.buffer)

function bitsOf(value: number): bigint {
  float[0] = value
  return floatBits[0]
}

function floatOf(bits: bigint): number {
  floatBits[0] = bits
  return float[0]
}

export class AtomicFloat64 extends Cell64 {
  constructor(options: OwnPlace = {}) {
    super('AtomicFloat64', options)
  }

  static from(handle: SyncHandle): AtomicFloat64 {
    return new AtomicFloat64(placeOf('AtomicFloat64', handle))
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly value: number } {
    return { value: this.load() }
  }

  load(): number {
    return floatOf(Atomics.load(this.bits, this.index))
  }

  store(value: number): void {
    Atomics.store(this.bits, this.index, bitsOf(value))
  }

  exchange(value: number): number {
    return floatOf(Atomics.exchange(this.bits, this.index, bitsOf(value)))
  }

  /** By bits, as Object.is compares: NaN is NaN, and 0 is not -0. */
  compareExchange(expected: number, value: number): number {
    return floatOf(Atomics.compareExchange(this.bits, this.index, bitsOf(expected), bitsOf(value)))
  }

  /** Returns the value before the change. */
  add(by: number): number {
    for (;;) {
      const seen = Atomics.load(this.bits, this.index)
      const before = floatOf(seen)
      if (Atomics.compareExchange(this.bits, this.index, seen, bitsOf(before + by)) === seen) return before
    }
  }
}
