import { ArenaFullError, type Arena, type ArenaPlan, type Region } from '../arena/memory/arena.ts'
import { assert } from '../arena/assert.ts'
import type { PayloadHeap } from '../arena/memory/heap.ts'
import type { KernelThread } from '../arena/sync/thread.ts'
import { openObjectChannel } from './objectchannel.ts'
import { PayloadDecoder } from './decode.ts'
import { PayloadEncoder } from './encode.ts'
import { ImageDecoder, type ImageModule } from './imagedecode.ts'
import { ImageEncoder } from './imageencode.ts'
import { PUBLISHED_COUNT_AT, STRUCTURE_WORDS_AT } from './format.ts'
import { immediateOf, immediateOfList, readImmediate } from './immediate.ts'
import { PublishedObjects } from './publishedobjects.ts'
import { putPayload, takePayload } from './exchange.ts'
import { failureInWords, isStackOverflow, UntravelableError } from './untravelable.ts'
import { checkTransfer, detach } from './transfer.ts'

/** What `write` gets. */
const VALUE = 0
const LIST = 1
const FAILURE = 2

/**
 * Writes values into the arena's payload heap and reads them. Each thread has one codec. docs/payloads.md
 * describes the contract, format.ts the payload word.
 *
 * A block belongs to the thread that encoded it (it is unpublished) until a record takes it over
 * (exchange.ts).
 */
export class PayloadCodec {
  readonly heap: PayloadHeap
  readonly published: PublishedObjects
  private readonly thread: KernelThread
  private readonly arena: Arena
  private encoder: PayloadEncoder
  private spare: PayloadEncoder | null = null
  private readonly decoder: PayloadDecoder
  private imageDecoder: ImageDecoder | null = null

  /** `region`: the result of `reservePublished`. */
  constructor(heap: PayloadHeap, thread: KernelThread, region: Region) {
    this.thread = thread
    this.arena = thread.arena
    this.heap = heap
    this.published = PublishedObjects.of(thread.arena, region, thread, openObjectChannel)
    this.encoder = new PayloadEncoder(this.published)
    this.decoder = new PayloadDecoder(thread.arena.buffer, this.published)
  }

  /**
   * Returns the payload word of a value (format.ts). `root` names the value in error messages: 'result'.
   * Throws UntravelableError (a TypeError that names the path) or ArenaFullError, and then changes nothing.
   * On success the buffers in `transfer` are detached.
   */
  encode(value: unknown, root: string, transfer?: readonly ArrayBuffer[]): number {
    if (value === undefined && transfer === undefined) return 0
    if (transfer === undefined) {
      const word = immediateOf(value)
      if (word !== 0) return word
    }
    return this.write(value, root, VALUE, transfer)
  }

  /** As `encode`, for the arguments of a call: only the elements of the list are written. */
  encodeList(list: readonly unknown[], root: string, transfer?: readonly ArrayBuffer[]): number {
    if (transfer === undefined) {
      const word = immediateOfList(list)
      if (word !== 0) return word
    }
    return this.write(list, root, LIST, transfer)
  }

  /**
   * Returns the payload word of a thrown value. A part of an error that cannot travel or be read is left out,
   * or replaced by a description; so is any other value that cannot travel. Throws ArenaFullError.
   */
  encodeFailure(thrown: unknown): number {
    const word = immediateOf(thrown)
    if (thrown === undefined || word !== 0) return word
    try {
      return this.write(thrown, 'error', FAILURE, undefined)
    } catch (refusal) {
      if (refusal instanceof ArenaFullError) throw refusal
      return this.encode(failureInWords(thrown, refusal), 'error')
    }
  }

  /**
   * As `encode`, for the state of a task: the value may contain code by name, closures, class instances and
   * objects of registered kinds (imagekinds.ts). Always a block.
   */
  encodeImage(value: unknown, root: string): number {
    const encoder = new ImageEncoder(this.published, false)
    encoder.start(root)
    encoder.image(value)
    const words = encoder.finish()
    const pointer = this.heap.allocate(this.thread, words * 4)
    encoder.writer.copyTo(this.arena.i32, this.arena.u8, pointer)
    return pointer
  }

  /** The value of `encodeImage`. Throws if its code is missing or has changed. Does not free the block. */
  decodeImage(word: number): unknown {
    return this.images.decode(word)
  }

  /** The modules that an image names: they must be loaded before `decodeImage`. */
  modulesOfImage(word: number): readonly ImageModule[] {
    return this.images.modulesOf(word)
  }

  private get images(): ImageDecoder {
    return (this.imageDecoder ??= new ImageDecoder(this.arena.buffer, this.published, false))
  }

  /** Returns the value of a payload word. Does not free the block, so it may be called again. */
  decode(word: number): unknown {
    if (word === 0) return undefined
    if (word < 0) return readImmediate(word)
    return this.decoder.decode(word)
  }

  /**
   * Returns null if every published object of a payload has arrived on this thread, else a promise of the
   * missing ones. Only needed where a thread receives messages at a turn of its event loop (a browser): there
   * the caller awaits it before `decode`. Elsewhere `decode` itself receives them.
   */
  missing(word: number): Promise<unknown> | null {
    if (word <= 0 || this.published.isDirect) return null
    const { i32 } = this.arena
    const end = word + i32[word + STRUCTURE_WORDS_AT]
    for (let at = end - i32[word + PUBLISHED_COUNT_AT]; at < end; at++) {
      if (!this.published.has(i32[at])) return this.published.arrival(i32[at])
    }
    return null
  }

  /** The published objects of a payload, with their ids. */
  publishedIn(word: number): { readonly id: number; readonly object: object }[] {
    if (word <= 0) return []
    const { i32 } = this.arena
    const end = word + i32[word + STRUCTURE_WORDS_AT]
    return Array.from({ length: i32[word + PUBLISHED_COUNT_AT] }, (_, index) => {
      const id = i32[end - 1 - index]
      return { id, object: this.published.objectOf(id) }
    })
  }

  /** Frees the block of a payload, if it has one. */
  free(word: number): void {
    if (word > 0) this.heap.free(this.thread, word)
  }

  /** The record whose word is at `at` takes the payload over. */
  put(at: number, word: number): void {
    putPayload(this.heap, this.thread, at, word)
  }

  /** This thread takes the payload over from the record, and must free it. */
  take(at: number): number {
    return takePayload(this.heap, this.thread, at)
  }

  /** Takes the payload from the record and frees it. */
  drop(at: number): void {
    this.free(this.take(at))
  }

  /** Resolves a payload that a dead thread had marked: see `PayloadHeap.resolveMarked`. */
  resolveMarked(word: number, mark: number, isNamed: boolean): void {
    this.heap.resolveMarked(this.thread, word, mark, isNamed)
  }

  /**
   * Recovery, after thread `dead` has stopped: repairs the heap and frees the blocks that the thread owned.
   * `records` visits every word of every record that may hold a payload.
   */
  recover(dead: number, records: (visit: (at: number) => void) => void): number {
    this.published.ended(dead)
    return this.heap.repair(this.thread, dead, records)
  }

  private write(
    value: unknown,
    root: string,
    what: typeof VALUE | typeof LIST | typeof FAILURE,
    transfer: readonly ArrayBuffer[] | undefined,
  ): number {
    if (transfer !== undefined) checkTransfer(transfer)
    // A getter of the value may encode another value while this encoder is in use: a spare encoder serves it.
    const encoder = this.encoder
    this.encoder = this.spare ?? new PayloadEncoder(this.published)
    this.spare = null
    try {
      encoder.start(root, what === FAILURE)
      if (what === LIST) encoder.list(value as readonly unknown[])
      else encoder.value(value)
      const words = encoder.finish()
      assert(words > 0, 'a payload has at least one word')
      const pointer = this.heap.allocate(this.thread, words * 4)
      encoder.writer.copyTo(this.arena.i32, this.arena.u8, pointer)
      if (transfer !== undefined) detach(transfer)
      return pointer
    } catch (error) {
      throw isStackOverflow(error) ? tooDeep(root) : error
    } finally {
      encoder.release()
      this.spare = this.encoder
      this.encoder = encoder
    }
  }
}

function tooDeep(root: string): UntravelableError {
  return new UntravelableError(
    root,
    'a value that is nested too deeply for the stack of this thread',
    'send it flatter, for example a list instead of a linked list',
  )
}

/** Reserves the words for published objects in the arena of a kernel. */
export function reservePublished(plan: ArenaPlan): Region {
  return PublishedObjects.reserve(plan)
}

/** Called once, by the thread that created the arena. */
export function initializePublished(arena: Arena, region: Region): void {
  PublishedObjects.initialize(arena, region)
}
