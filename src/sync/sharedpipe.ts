import { assert } from '../arena/assert.ts'
import type { FutexContext } from '../futex/context.ts'
import { type Decision, SKIP, STOP, WAKE } from '../futex/decision.ts'
import { wakeAll } from '../futex/queue.ts'
import { Waiter } from '../futex/records.ts'
import type { PayloadCodec } from '../task/payload/codec.ts'
import {
  CLOSED,
  copyParcel,
  dropParcel,
  NOTHING,
  PARCEL_WORDS,
  readParcel,
  settleParcel,
  TAKEN,
  type Words,
} from './parcel.ts'
import { codecOf } from './payloads.ts'
import type { Place } from './place.ts'
import { lockPlace, unlockPlace } from './placelock.ts'
import { ParkingQueue } from './queue.ts'

/**
 * A channel in shared memory: a ring of parcels, a queue of senders that found it full, a queue of receivers that found it empty. All under one
 * lock, the place's first word (placelock.ts), which is taken before a queue's; of several channels the one with the lower id first.
 *
 *   ring      senders   receivers
 *   has some  may wait  none       [1] a receiver takes the first, and a sender's value takes the free slot
 *   is empty  may wait  none       [2] unbuffered: a receiver takes the value from the sender itself
 *   is empty  none      may wait   [3] a sender hands its value to a receiver
 *
 * A value is handed over under the queue's lock, with the wake: who is woken has received, or has been received from. One that waits at
 * several channels (select) is served at one of them: its sleeper's `claim` says which, and who loses the claim passes it by.
 */
const CAPACITY = 3
const LATEST = 4
const HEAD = 5
const COUNT = 6
const IS_CLOSED = 7
const SENDERS = 8
const RECEIVERS = 9
const HEADER_WORDS = 16
/** Room for values that come back: their receivers were cancelled as they got them. */
const SLACK = 4

export const DONE = 0
export const WOULD_WAIT = 1
export const ENDED = 2
export type Outcome = typeof DONE | typeof WOULD_WAIT | typeof ENDED

assert(Waiter.parcel % 2 === 0, 'a number in a parcel is aligned')

export function pipeWords(capacity: number): number {
  return HEADER_WORDS + (capacity + SLACK) * PARCEL_WORDS
}

export class SharedPipe implements Place {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly heap: SharedArrayBuffer | null
  readonly senders: ParkingQueue
  readonly receivers: ParkingQueue
  readonly codec: () => PayloadCodec
  private readonly words: Words
  private readonly slots: number

  constructor({ i32, at }: Place, heap: SharedArrayBuffer | null) {
    assert(at % 2 === 0, 'a channel starts at an even word')
    this.i32 = i32
    this.at = at
    this.heap = heap
    this.codec = () => codecOf(heap)
    this.words = { i32, f64: new Float64Array(i32.buffer, 0, i32.buffer.byteLength >> 3) }
    this.senders = new ParkingQueue(this, 0)
    this.receivers = new ParkingQueue(this, 1)
    this.slots = i32[at + CAPACITY] + SLACK
  }

  /** Marks a new place. */
  static initialize({ i32, at }: Place, capacity: number, latest: boolean): void {
    i32[at + CAPACITY] = capacity
    i32[at + LATEST] = latest ? 1 : 0
  }

  get capacity(): number {
    return this.i32[this.at + CAPACITY]
  }

  get latest(): boolean {
    return this.i32[this.at + LATEST] === 1
  }

  /** How many values are in the ring, as of now. */
  get count(): number {
    return Atomics.load(this.i32, this.at + COUNT)
  }

  get closed(): boolean {
    return Atomics.load(this.i32, this.at + IS_CLOSED) === 1
  }

  lock(context: FutexContext): void {
    lockPlace(context, this)
  }

  /** And tells those who were served meanwhile. */
  unlock(context: FutexContext): void {
    unlockPlace(context, this)
    if (context.wakeQueue.length > 0) wakeAll(context)
  }

  /** Locked. Sends the parcel at `from`; DONE: it is another's. */
  put(context: FutexContext, from: Words, fromAt: number): Outcome {
    const { i32, at } = this
    if (i32[at + IS_CLOSED] === 1) return ENDED
    if (i32[at + RECEIVERS] === 1) {
      settleParcel(from, fromAt, this.codec)
      if (this.serve(context, this.receivers, new Handing(from.i32, fromAt))) return DONE
      i32[at + RECEIVERS] = 0
    }
    const count = i32[at + COUNT]
    if (count > 0 && i32[at + LATEST] === 1) {
      const last = this.slot(count - 1)
      dropParcel(this.words, last, this.codec)
      this.store(from, fromAt, last)
      return DONE
    }
    if (count >= i32[at + CAPACITY]) return WOULD_WAIT
    this.store(from, fromAt, this.slot(count))
    Atomics.store(i32, at + COUNT, count + 1)
    return DONE
  }

  /** Locked. Receives into the parcel at `to`. */
  take(context: FutexContext, to: Int32Array, toAt: number): Outcome {
    const { i32, at } = this
    const count = i32[at + COUNT]
    if (count > 0) {
      const first = this.slot(0)
      copyParcel(i32, first, to, toAt)
      i32[first] = NOTHING
      i32[at + HEAD] = (i32[at + HEAD] + 1) % this.slots
      const refilled =
        i32[at + SENDERS] === 1 &&
        count <= i32[at + CAPACITY] &&
        this.fetch(context, i32, this.slot(count - 1))
      if (!refilled) Atomics.store(i32, at + COUNT, count - 1)
      return DONE
    }
    if (i32[at + SENDERS] === 1 && this.fetch(context, to, toAt)) return DONE
    return i32[at + IS_CLOSED] === 1 ? ENDED : WOULD_WAIT
  }

  /** Locked. A value that was received comes back, to the head of the line. */
  putBack(context: FutexContext, from: Words, fromAt: number): void {
    const { i32, at } = this
    if (i32[at + RECEIVERS] === 1 && this.serve(context, this.receivers, new Handing(from.i32, fromAt)))
      return
    const count = i32[at + COUNT]
    if (count === this.slots || (count > 0 && i32[at + LATEST] === 1)) {
      dropParcel(from, fromAt, this.codec)
      return
    }
    i32[at + HEAD] = (i32[at + HEAD] + this.slots - 1) % this.slots
    copyParcel(from.i32, fromAt, i32, this.slot(0))
    Atomics.store(i32, at + COUNT, count + 1)
  }

  /** Locked. Whoever waits is told. */
  close(context: FutexContext): void {
    const { i32, at } = this
    if (i32[at + IS_CLOSED] === 1) return
    Atomics.store(i32, at + IS_CLOSED, 1)
    if (i32[at + SENDERS] === 1) this.serve(context, this.senders, new Closing())
    if (i32[at + RECEIVERS] === 1) this.serve(context, this.receivers, new Closing())
  }

  /** Locked. The waiter waits here from now on. */
  addWaiter(context: FutexContext, sends: boolean, waiter: number): void {
    const queue = sends ? this.senders : this.receivers
    queue.lock(context)
    queue.add(context, waiter)
    queue.unlockQuietly(context)
    this.i32[this.at + (sends ? SENDERS : RECEIVERS)] = 1
  }

  /** The value of a parcel that this thread has received. */
  read(context: FutexContext, words: Words, at: number): unknown {
    return readParcel(words, at, this.codec, context.thread)
  }

  private fetch(context: FutexContext, to: Int32Array, toAt: number): boolean {
    if (this.serve(context, this.senders, new Fetching(to, toAt))) return true
    this.i32[this.at + SENDERS] = 0
    return false
  }

  private serve(context: FutexContext, queue: ParkingQueue, decision: Serving): boolean {
    if (!queue.lockIfWaiting(context)) return false
    queue.walk(context, decision)
    queue.unlockQuietly(context)
    return decision.served
  }

  private slot(offset: number): number {
    const { i32, at, slots } = this
    return at + HEADER_WORDS + ((i32[at + HEAD] + offset) % slots) * PARCEL_WORDS
  }

  private store(from: Words, fromAt: number, slot: number): void {
    copyParcel(from.i32, fromAt, this.i32, slot)
    settleParcel(this.words, slot, this.codec)
  }
}

/** Serves the first who has not been served at another channel meanwhile. */
abstract class Serving implements Decision {
  served = false

  decide(i32: Int32Array, waiter: number): typeof SKIP | typeof STOP | typeof WAKE {
    if (this.served && !this.all) return STOP
    const claim = i32[waiter + Waiter.sleeper] + Waiter.claim
    if (Atomics.compareExchange(i32, claim, 0, i32[waiter + Waiter.bitset]) !== 0) return SKIP
    this.served = true
    this.hand(i32, waiter + Waiter.parcel)
    return WAKE
  }

  protected get all(): boolean {
    return false
  }

  protected abstract hand(i32: Int32Array, parcel: number): void
}

class Handing extends Serving {
  private readonly from: Int32Array
  private readonly at: number

  constructor(from: Int32Array, at: number) {
    super()
    this.from = from
    this.at = at
  }

  protected hand(i32: Int32Array, parcel: number): void {
    copyParcel(this.from, this.at, i32, parcel)
  }
}

class Fetching extends Serving {
  private readonly to: Int32Array
  private readonly at: number

  constructor(to: Int32Array, at: number) {
    super()
    this.to = to
    this.at = at
  }

  protected hand(i32: Int32Array, parcel: number): void {
    copyParcel(i32, parcel, this.to, this.at)
    i32[parcel] = TAKEN
  }
}

class Closing extends Serving {
  protected override get all(): boolean {
    return true
  }

  protected hand(i32: Int32Array, parcel: number): void {
    i32[parcel] = CLOSED
  }
}
