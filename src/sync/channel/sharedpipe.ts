import { assert } from '../../arena/assert.ts'
import type { FutexContext } from '../../futex/core/context.ts'
import { wakeAll } from '../../futex/core/queue.ts'
import { Waiter } from '../../futex/core/records.ts'
import type { PayloadCodec } from '../../payload/codec.ts'
import {
  blockIn,
  copyValue,
  dropValue,
  VALUE_WORDS,
  readValue,
  takeValue,
  TAKEN,
  type Words,
} from '../wait/value.ts'
import { codecOf } from '../wait/payloads.ts'
import type { ObjectWords } from '../wait/objectwords.ts'
import { lockObject, unlockObject } from '../wait/objectlock.ts'
import { claimDomain, ParkingQueue } from '../wait/queue.ts'
import { Closing, Fetching, Handing, Refilling, type Serving } from './serving.ts'

/**
 * A channel in shared memory: a ring of values, a queue of senders that found it full, a queue of receivers
 * that found it empty. It has two locks (objectlock.ts), each on a cache line of its own with what it guards:
 * first the tail's, then the head's. A thread that queues, serves a waiter, or closes takes both, before the
 * lock of a queue; of several channels the one with the lower id first. While there are no waiters at the
 * other end, a send needs only the tail's lock and a receive only the head's, so a sender and a receiver do
 * not meet: each keeps what it last saw of the other's index.
 *
 *   ring      senders   receivers
 *   has some  may wait  none       [1] a receiver takes the first, and a sender's value takes the free slot
 *   is empty  may wait  none       [2] unbuffered: a receiver takes the value from the sender itself
 *   is empty  none      may wait   [3] a sender hands its value to a receiver
 *
 * A value is handed over under the queue's lock, with the wakeup: a woken waiter has received, or its value
 * was received. A waiter at several channels (select) is served at one of them: its sleeper's `claim` says
 * which, and a thread that loses the claim skips the waiter.
 *
 * The holder of a lock may die at any step. The ring changes by single stores: a value is in it from the
 * store of `tail` until the store of `head`. A value is handed to a waiter, or fetched from it, by the store
 * of the first word in the waiter. A waiter that was served and not woken finds that out when it checks
 * again, or leaves (`CasesWait.servedByDead`). Only a sender's value that goes into the ring needs both:
 *
 *   (A) journal: which waiter, and where the tail is
 *   (B) the slot
 *   (C) the waiter's value: TAKEN
 *   (D) tail: the value is in the ring
 *   (E) journal: 0
 *
 * After a death between (C) and (D), the waiter says TAKEN and the tail is where it was at (A): the thread
 * that breaks the lock does (D) and (E) (`repair`). The sender's record is not freed before the sender has
 * had the lock.
 *
 * A payload always has an owner: the thread that encoded it, or reads it (the block's header names the
 * thread); a waiter, whose payload the recovery frees when the sleeper died (`giveUpHandover`); the ring; or,
 * in transit between a thread and one of the others, the channel itself (`giving`, `taking`):
 *
 *   a thread gives                            a thread takes
 *   [1] the thread has the block              [3] the ring or a waiter has it
 *   (F) noted under the lock: `giving`        (F) noted under the lock: `taking`
 *   (G) the header names the channel          (G) the header names the channel
 *   (H) the tail moves, or a value is there  (H) the head moves, or a value says TAKEN
 *                                             (I) the header names the thread
 *   (J) noted: 0                              (J) noted: 0
 *   [3] the ring or a waiter has it           [1] the thread has the block
 *
 * Recovery frees the blocks of the dead thread, [1]; it cannot see the ring. Between (G) and (I) or (J) the
 * block is the channel's: the next holder of the lock finds the note, and checks whether the ring or a waiter
 * names the block. If so the block stays, else it is freed (`resolve`). *Broken*: without (G) recovery frees
 * a block that the ring names, or a block that no owner names is never freed. *Broken*: a sender that
 * accesses the header again, after (H):
 *
 *   sender, has the tail's lock               receiver, has the head's lock
 *   (H) the tail moves
 *                                             takes the value, reads it, frees the block
 *   accesses the header of a freed block
 *
 * The blocks in a channel that no thread uses again are not freed.
 */
const CAPACITY = 3
const LATEST = 4
const HEAD_SEEN = 5
const TAIL = 6
const IS_CLOSED = 7
const RECEIVERS = 8
const JOURNAL = 10
const JOURNAL_TAIL = 11
const JOURNAL_ORDER = 12
const GIVING = 13
/** The head's line. */
const HEAD_LOCK = 16
const HEAD = 17
const TAIL_SEEN = 18
const SENDERS = 19
const TAKING = 20
const HEADER_WORDS = 32
/** Slots for values that are put back because their receivers were cancelled; one of them is always free. */
const SLACK = 4

export const PIPE_DONE = 0
export const PIPE_WOULD_WAIT = 1
export const PIPE_ENDED = 2
export type Outcome = typeof PIPE_DONE | typeof PIPE_WOULD_WAIT | typeof PIPE_ENDED

assert(Waiter.handover % 2 === 0, 'a number in a value is aligned')

/** A value that is being put back. */
const returnedWords = new ArrayBuffer(VALUE_WORDS * 4)
const returned: Words = { i32: new Int32Array(returnedWords), f64: new Float64Array(returnedWords) }

export function pipeWords(capacity: number): number {
  return HEADER_WORDS + (capacity + SLACK) * VALUE_WORDS
}

export class SharedPipe implements ObjectWords {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly heap: SharedArrayBuffer | null
  readonly senders: ParkingQueue
  readonly receivers: ParkingQueue
  readonly codec: () => PayloadCodec
  private readonly words: Words
  private readonly slots: number
  private readonly headLock: ObjectWords
  /** The context of the last lock by this thread: the channel belongs to its domain. */
  private joined: FutexContext | null = null

  constructor({ i32, at }: ObjectWords, heap: SharedArrayBuffer | null) {
    assert(at % 2 === 0, 'a channel starts at an even word')
    this.i32 = i32
    this.at = at
    this.heap = heap
    this.codec = () => codecOf(heap)
    this.words = { i32, f64: new Float64Array(i32.buffer, 0, Math.floor(i32.length / 2)) }
    this.senders = new ParkingQueue(this, 0)
    this.receivers = new ParkingQueue(this, 1)
    this.slots = i32[at + CAPACITY] + SLACK
    this.headLock = { i32, at: at + HEAD_LOCK }
  }

  /** Initializes the words of a new channel. */
  static initialize({ i32, at }: ObjectWords, capacity: number, latest: boolean): void {
    i32[at + CAPACITY] = capacity
    i32[at + LATEST] = latest ? 1 : 0
  }

  get capacity(): number {
    return this.i32[this.at + CAPACITY]
  }

  get latest(): boolean {
    return this.i32[this.at + LATEST] === 1
  }

  /** How many values are in the ring now. */
  get count(): number {
    const { i32, at } = this
    return this.between(Atomics.load(i32, at + HEAD), Atomics.load(i32, at + TAIL))
  }

  get closed(): boolean {
    return Atomics.load(this.i32, this.at + IS_CLOSED) === 1
  }

  lock(context: FutexContext): void {
    if (context !== this.joined) this.join(context)
    const tailDied = lockObject(context, this)
    if (lockObject(context, this.headLock) || tailDied) this.repair(context)
  }

  /** Also wakes the waiters that were served. */
  unlock(context: FutexContext): void {
    unlockObject(context, this.headLock)
    unlockObject(context, this)
    if (context.wakeQueue.length > 0) wakeAll(context)
  }

  /** Sends the value at `from` without waiting. After PIPE_DONE it no longer belongs to the caller. */
  send(context: FutexContext, from: Words, fromAt: number): Outcome {
    const { i32, at } = this
    if (context !== this.joined) this.join(context)
    const broken = lockObject(context, this)
    if (!broken && i32[at + RECEIVERS] === 0 && i32[at + LATEST] === 0 && i32[at + IS_CLOSED] === 0) {
      const tail = i32[at + TAIL]
      const hasRoom = this.hasRoom(tail)
      if (hasRoom) this.push(context, from, fromAt, tail)
      unlockObject(context, this)
      return hasRoom ? PIPE_DONE : PIPE_WOULD_WAIT
    }
    if (lockObject(context, this.headLock) || broken) this.repair(context)
    const outcome = this.put(context, from, fromAt)
    this.unlock(context)
    return outcome
  }

  /** Receives into the words at `to` without waiting. */
  receive(context: FutexContext, to: Int32Array, toAt: number): Outcome {
    const { i32, at, headLock } = this
    if (context !== this.joined) this.join(context)
    if (lockObject(context, headLock)) this.resolve(context, TAKING)
    const head = i32[at + HEAD]
    const quiet = i32[at + SENDERS] === 0
    const hasValue = quiet && this.hasValue(head)
    if (hasValue) this.shift(context, head, to, toAt)
    // If it is closed, values that were sent before may have arrived since.
    const done = hasValue || (quiet && Atomics.load(i32, at + IS_CLOSED) === 0)
    unlockObject(context, headLock)
    if (done) return hasValue ? PIPE_DONE : PIPE_WOULD_WAIT
    this.lock(context)
    const outcome = this.take(context, to, toAt)
    this.unlock(context)
    return outcome
  }

  /** Locked. Sends the value at `from`. After PIPE_DONE it no longer belongs to the caller. */
  put(context: FutexContext, from: Words, fromAt: number): Outcome {
    const { i32, at } = this
    if (i32[at + IS_CLOSED] === 1) return PIPE_ENDED
    if (i32[at + RECEIVERS] === 1) {
      if (this.handOver(context, from.i32, fromAt)) return PIPE_DONE
      i32[at + RECEIVERS] = 0
    }
    const latest = i32[at + LATEST] === 1
    const tail = i32[at + TAIL]
    if (!latest && !this.hasRoom(tail)) return PIPE_WOULD_WAIT
    this.push(context, from, fromAt, tail)
    if (latest && this.count > 1) this.dropFirst(context)
    return PIPE_DONE
  }

  /** Locked. Receives into the words at `to`. */
  take(context: FutexContext, to: Int32Array, toAt: number): Outcome {
    const { i32, at } = this
    const head = i32[at + HEAD]
    if (this.hasValue(head)) {
      this.shift(context, head, to, toAt)
      if (i32[at + SENDERS] === 1 && this.count < i32[at + CAPACITY])
        this.fetch(context, new Refilling(this, context, i32[at + TAIL]))
      return PIPE_DONE
    }
    if (i32[at + SENDERS] === 1 && this.fetch(context, new Fetching(this, context, to, toAt)))
      return PIPE_DONE
    return i32[at + IS_CLOSED] === 1 ? PIPE_ENDED : PIPE_WOULD_WAIT
  }

  /** Locked. Puts the value that this thread's waiter received at `from` back, before all others. */
  putBack(context: FutexContext, from: Words, fromAt: number): void {
    const { i32, at } = this
    // The thread takes it from its waiter: recovery would free a block that a waiter names.
    copyValue(from.i32, fromAt, returned.i32, 0)
    takeValue(from, fromAt, this.codec, context.thread)
    if (i32[at + RECEIVERS] === 1 && this.handOver(context, returned.i32, 0)) return
    const count = this.count
    if (count === this.slots - 1 || (count > 0 && i32[at + LATEST] === 1)) {
      dropValue(returned, 0, this.codec)
      return
    }
    const head = i32[at + HEAD] === 0 ? this.slots - 1 : i32[at + HEAD] - 1
    const block = this.give(context, returned.i32, 0)
    copyValue(returned.i32, 0, i32, this.slot(head))
    Atomics.store(i32, at + HEAD, head) // (H)
    this.given(block)
    // HEAD_SEEN may be behind the head, and never ahead of it.
    i32[at + HEAD_SEEN] = head
  }

  /** Locked. Wakes all waiters. */
  close(context: FutexContext): void {
    const { i32, at } = this
    if (i32[at + IS_CLOSED] === 1) return
    Atomics.store(i32, at + IS_CLOSED, 1)
    if (i32[at + SENDERS] === 1) this.serve(context, this.senders, new Closing())
    if (i32[at + RECEIVERS] === 1) this.serve(context, this.receivers, new Closing())
  }

  /** Locked. Queues the waiter. */
  addWaiter(context: FutexContext, sends: boolean, waiter: number): void {
    const queue = sends ? this.senders : this.receivers
    queue.lock(context)
    queue.add(context, waiter)
    queue.unlockQuietly(context)
    this.i32[this.at + (sends ? SENDERS : RECEIVERS)] = 1
  }

  /** The value that this thread has received. */
  read(context: FutexContext, words: Words, at: number): unknown {
    return readValue(words, at, this.codec, context.thread)
  }

  private join(context: FutexContext): void {
    claimDomain(context, this)
    this.joined = context
  }

  /** The tail's lock is held. Whether the ring has fewer values than its capacity. */
  private hasRoom(tail: number): boolean {
    const { i32, at } = this
    const capacity = i32[at + CAPACITY]
    if (this.between(i32[at + HEAD_SEEN], tail) < capacity) return true
    const head = Atomics.load(i32, at + HEAD)
    i32[at + HEAD_SEEN] = head
    return this.between(head, tail) < capacity
  }

  /** The head's lock is held. Called before the head moves: TAIL_SEEN is never behind the head. */
  private hasValue(head: number): boolean {
    const { i32, at } = this
    if (head !== i32[at + TAIL_SEEN]) return true
    const tail = Atomics.load(i32, at + TAIL)
    i32[at + TAIL_SEEN] = tail
    return head !== tail
  }

  private between(head: number, tail: number): number {
    return tail < head ? tail - head + this.slots : tail - head
  }

  private push(context: FutexContext, from: Words, fromAt: number, tail: number): void {
    const block = this.give(context, from.i32, fromAt)
    copyValue(from.i32, fromAt, this.i32, this.slot(tail))
    Atomics.store(this.i32, this.at + TAIL, this.after(tail)) // (H)
    this.given(block)
  }

  private shift(context: FutexContext, head: number, to: Int32Array, toAt: number): void {
    const block = this.takes(context, this.i32, this.slot(head))
    copyValue(this.i32, this.slot(head), to, toAt)
    Atomics.store(this.i32, this.at + HEAD, this.after(head)) // (H)
    this.taken(context, block)
  }

  /**
   * Both locks are held. Hands the value to a waiting receiver; false: there is none, and the thread keeps
   * it.
   */
  private handOver(context: FutexContext, from: Int32Array, fromAt: number): boolean {
    const block = this.give(context, from, fromAt)
    const isServed = this.serve(context, this.receivers, new Handing(from, fromAt)) // (H)
    if (isServed) this.given(block)
    else if (block !== 0) {
      this.codec().heap.claim(context.thread, block)
      this.i32[this.at + GIVING] = 0
    }
    return isServed
  }

  /** The tail's lock is held. The value's block, if it has one, is about to leave the thread. */
  private give(context: FutexContext, from: Int32Array, fromAt: number): number {
    const block = blockIn(from, fromAt)
    if (block !== 0) {
      this.i32[this.at + GIVING] = block // (F)
      this.codec().heap.mark(block, this.markOf(context, GIVING)) // (G)
    }
    return block
  }

  /** From (H) on the thread does not access the block: a receiver may have freed it already. */
  private given(block: number): void {
    if (block !== 0) this.i32[this.at + GIVING] = 0 // (J)
  }

  /** The head's lock is held. The same for a block that the thread is about to take. */
  takes(context: FutexContext, from: Int32Array, fromAt: number): number {
    const block = blockIn(from, fromAt)
    if (block !== 0) {
      this.i32[this.at + TAKING] = block // (F)
      this.codec().heap.mark(block, this.markOf(context, TAKING)) // (G)
    }
    return block
  }

  taken({ thread }: FutexContext, block: number): void {
    if (block === 0) return
    this.codec().heap.claim(thread, block) // (I)
    this.i32[this.at + TAKING] = 0 // (J)
  }

  /**
   * The mark in the header of a block in transit through this channel: unique to the channel and to the end.
   */
  private markOf(context: FutexContext, note: typeof GIVING | typeof TAKING): number {
    return -(2 * this.senders.objectId(context) + (note === GIVING ? 0 : 1))
  }

  /** The holder of the lock that guards the note died. */
  private resolve(context: FutexContext, note: typeof GIVING | typeof TAKING): void {
    const at = this.at + note
    const block = this.i32[at]
    if (block === 0) return
    this.codec().resolveMarked(block, this.markOf(context, note), this.names(context, block))
    this.i32[at] = 0
  }

  /** Whether the ring or a waiter names the block. */
  private names({ i32: arena, layout: { waiters } }: FutexContext, block: number): boolean {
    const { i32, at } = this
    const tail = Atomics.load(i32, at + TAIL)
    for (let slot = Atomics.load(i32, at + HEAD); slot !== tail; slot = this.after(slot))
      if (blockIn(i32, this.slot(slot)) === block) return true
    for (let waiter = waiters.after(arena, 0); waiter !== 0; waiter = waiters.after(arena, waiter))
      if (blockIn(arena, waiter + Waiter.handover) === block) return true
    return false
  }

  /** Moves the value of a waiting sender into the ring. */
  refill(context: FutexContext, waiter: number, tail: number): void {
    const { i32, at } = this
    const { i32: arena } = context
    const block = this.give(context, arena, waiter + Waiter.handover)
    i32[at + JOURNAL_TAIL] = tail
    i32[at + JOURNAL_ORDER] = arena[waiter + Waiter.order]
    i32[at + JOURNAL] = waiter // (A)
    copyValue(arena, waiter + Waiter.handover, i32, this.slot(tail)) // (B)
    arena[waiter + Waiter.handover] = TAKEN // (C)
    Atomics.store(i32, at + TAIL, this.after(tail)) // (D)
    i32[at + JOURNAL] = 0 // (E)
    this.given(block)
  }

  /** The last holder of a lock died. */
  private repair(context: FutexContext): void {
    const { i32, at } = this
    const { i32: arena } = context
    const waiter = i32[at + JOURNAL]
    // If the sender died as well, its record may belong to another waiter now: the order differs.
    if (waiter !== 0 && arena[waiter + Waiter.order] === i32[at + JOURNAL_ORDER]) {
      const tail = i32[at + JOURNAL_TAIL]
      if (i32[at + TAIL] === tail && arena[waiter + Waiter.handover] === TAKEN)
        Atomics.store(i32, at + TAIL, this.after(tail))
    }
    i32[at + JOURNAL] = 0
    this.resolve(context, GIVING)
    this.resolve(context, TAKING)
    while (i32[at + LATEST] === 1 && this.count > 1) this.dropFirst(context)
  }

  /** Both locks are held. */
  private dropFirst(context: FutexContext): void {
    const { i32, at } = this
    const head = i32[at + HEAD]
    if (!this.hasValue(head)) return
    const block = this.takes(context, i32, this.slot(head))
    Atomics.store(i32, at + HEAD, this.after(head)) // (H)
    this.taken(context, block)
    dropValue(this.words, this.slot(head), this.codec)
  }

  private fetch(context: FutexContext, fetching: Serving): boolean {
    if (this.serve(context, this.senders, fetching)) return true
    this.i32[this.at + SENDERS] = 0
    return false
  }

  private serve(context: FutexContext, queue: ParkingQueue, decision: Serving): boolean {
    if (!queue.lockIfWaiting(context)) return false
    queue.walk(context, decision)
    queue.unlockQuietly(context)
    return decision.served
  }

  private slot(index: number): number {
    return this.at + HEADER_WORDS + index * VALUE_WORDS
  }

  private after(index: number): number {
    return index + 1 === this.slots ? 0 : index + 1
  }
}
