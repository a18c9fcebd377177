import type { Arena, ArenaPlan, Region } from '../arena/memory/arena.ts'
import type { KernelThread } from '../arena/sync/thread.ts'
import { THREAD_MAX } from '../arena/sync/thread.ts'
import type { ObjectSource } from './decode.ts'
import type { ObjectIds } from './encode.ts'

/**
 * Objects that travel by reference, because no word can hold them: SharedArrayBuffers, compiled WebAssembly
 * modules. The first thread that sends one gives it an id and publishes both to all threads of the kernel. A
 * payload holds only the id. An id means the same object while the kernel runs, and each thread always gets
 * the same JavaScript object for it.
 *
 *   sender                               receiver
 *   (A) publishes id and object
 *   (B) hands the payload over
 *                                        (C) reads the id: receives published objects, without a turn of its
 *                                            event loop, until it finds the id
 *
 * A thread that joined between (A) and (C) never got the message: it asks all other threads, and they publish
 * the object again. While the sender lives, the receiver waits for an answer: the sender may be busy with a
 * task without safepoints. Each thread that joins starts a life, and its end or its recovery ends that life.
 * The arena records the sender of each id and the sender's life. When the sender is gone, other threads may
 * still have the object: they have ANSWER_MS_MAX to answer.
 */
export interface ObjectChannel {
  /** Whether `receive` returns messages without a turn of the event loop. */
  readonly isDirect: boolean
  /** Sends to all other threads. */
  publish(message: ObjectMessage): void
  /** Returns the next message of another thread without waiting; undefined if there is no message. */
  receive(): ObjectMessage | undefined
  close(): void
}

/**
 * Joins the channel of an arena. Calls `serve` when a message arrives while the thread is in its event loop.
 */
export type OpenChannel = (arena: SharedArrayBuffer, name: string, serve: () => void) => ObjectChannel

export type ObjectMessage =
  | { readonly id: number; readonly object: object; readonly wanted?: undefined }
  | { readonly id: number; readonly object?: undefined; readonly wanted: true }

/** The arena itself: every thread has it. */
const ARENA_ID = 0

const NEXT_ID = 0
/** Counts publications: a receiver waits on this word. */
const PUBLISHED = 1
/** Counts requests: a CPU polls this word. */
const WANTED = 2
const NAME = 3
const NAME_WORDS = 4
/** For each thread, its life. Even: the thread has not joined. */
const LIVES: number = NAME + NAME_WORDS
/** For the latest ids: the id, its sender, and the sender's life. */
const SENDERS: number = LIVES + THREAD_MAX
const SENDER_WORDS = 3
const SENDERS_MAX = 1024
const CONTROL_WORDS: number = SENDERS + SENDERS_MAX * SENDER_WORDS

/**
 * How long a receiver waits for other threads to answer when the sender is gone: they answer between two
 * turns of their event loop.
 */
const ANSWER_MS_MAX = 10_000
const ANSWER_STEP_MS = 20

const ofThisThread = new WeakMap<SharedArrayBuffer, PublishedObjects>()

/**
 * Whether the channels of Node carry the object to several threads: not a Blob, a key or another object of
 * Node's own.
 */
function isShared(object: object): boolean {
  const tag = Object.prototype.toString.call(object).slice(8, -1)
  if (tag === 'WebAssembly.Memory') return isSharedBuffer((object as { readonly buffer: unknown }).buffer)
  return tag === 'WebAssembly.Module' || isSharedBuffer(object)
}

function isSharedBuffer(value: unknown): boolean {
  return Object.prototype.toString.call(value) === '[object SharedArrayBuffer]'
}

export class PublishedObjects implements ObjectIds, ObjectSource {
  private readonly i32: Int32Array<SharedArrayBuffer>
  private readonly control: number
  private readonly thread: number
  private readonly mayBlock: boolean
  private readonly openChannel: OpenChannel
  private exchange: ObjectChannel | null = null
  private readonly ids = new WeakMap<object, number>()
  private readonly objects = new Map<number, object>()
  private readonly arrivals = new Map<
    number,
    { readonly promise: Promise<void>; readonly resolve: () => void }
  >()
  private wantedSeen = 0

  /** Returns the object of this thread for this arena: a simulated machine has many CPUs on one thread. */
  static of(
    arena: Arena,
    region: Region,
    thread: Pick<KernelThread, 'id' | 'mayBlock'>,
    openChannel: OpenChannel,
  ): PublishedObjects {
    let published = ofThisThread.get(arena.buffer)
    if (published === undefined) {
      published = new PublishedObjects(arena, region, thread, openChannel)
      ofThisThread.set(arena.buffer, published)
    }
    return published
  }

  private constructor(
    arena: Arena,
    region: Region,
    thread: Pick<KernelThread, 'id' | 'mayBlock'>,
    openChannel: OpenChannel,
  ) {
    this.i32 = arena.i32
    this.control = region.start
    this.thread = thread.id
    this.mayBlock = thread.mayBlock
    this.openChannel = openChannel
    this.ids.set(arena.buffer, ARENA_ID)
    this.objects.set(ARENA_ID, arena.buffer)
  }

  static reserve(plan: ArenaPlan): Region {
    return plan.reserve('published objects', CONTROL_WORDS)
  }

  /** Called once, by the thread that created the arena. */
  static initialize(arena: Arena, region: Region): void {
    arena.i32[region.start + NEXT_ID] = ARENA_ID + 1
    crypto.getRandomValues(new Uint32Array(NAME_WORDS)).forEach((part, index) => {
      arena.i32[region.start + NAME + index] = part | 0
    })
  }

  /** Joins the channel, before the thread takes its first payload: objects published from now on reach it. */
  open(): void {
    if (this.exchange !== null) return
    let name = 'heddle'
    for (let part = 0; part < NAME_WORDS; part++) {
      name += `:${(this.i32[this.control + NAME + part] >>> 0).toString(36)}`
    }
    this.exchange = this.openChannel(this.i32.buffer, name, () => this.serve())
    // An earlier thread of this id may have ended without recording it.
    const at = this.lifeAt(this.thread)
    Atomics.add(this.i32, at, (Atomics.load(this.i32, at) & 1) === 0 ? 1 : 2)
  }

  /**
   * The thread is gone and answers no more. Called by the thread itself or by the recovering thread, any
   * number of times.
   */
  ended(thread: number): void {
    const at = this.lifeAt(thread)
    const life = Atomics.load(this.i32, at)
    if ((life & 1) !== 0) Atomics.compareExchange(this.i32, at, life, life + 1)
  }

  /** Whether `objectOf` can receive published objects without a turn of the event loop. */
  get isDirect(): boolean {
    return this.exchange?.isDirect !== false
  }

  close(): void {
    if (this.exchange !== null) this.ended(this.thread)
    this.exchange?.close()
    this.exchange = null
    this.objects.clear()
  }

  carries(object: object): boolean {
    this.open()
    return !this.isDirect || isShared(object)
  }

  idOf(object: object): number {
    const known = this.ids.get(object)
    if (known !== undefined) return known
    this.open()
    const id = Atomics.add(this.i32, this.control + NEXT_ID, 1)
    this.noteSender(id)
    this.publish(id, object)
    this.remember(id, object)
    return id
  }

  /** Takes an object that was sent to this thread alone, before or while it joined. */
  accept(id: number, object: object): void {
    if (!this.objects.has(id)) this.remember(id, object)
  }

  /** Receives messages that were sent to this thread alone, if that needs no turn of the event loop. */
  poll: () => void = () => undefined

  objectOf(id: number): object {
    let object = this.objects.get(id)
    if (object !== undefined) return object
    this.poll()
    this.open()
    this.serve()
    object = this.objects.get(id)
    return object ?? this.askFor(id)
  }

  /** Whether the object has arrived on this thread. */
  has(id: number): boolean {
    if (this.objects.has(id)) return true
    this.open()
    this.serve()
    return this.objects.has(id)
  }

  /**
   * Resolves when the object has arrived. Asks the other threads for it: this thread may have joined after it
   * was published.
   */
  arrival(id: number): Promise<void> {
    let arrival = this.arrivals.get(id)
    if (arrival === undefined) {
      let resolve!: () => void
      arrival = { promise: new Promise(settle => (resolve = settle)), resolve: () => resolve() }
      this.arrivals.set(id, arrival)
      this.ask(id)
    }
    return arrival.promise
  }

  /**
   * Receives published objects, and answers requests. A CPU calls it when `isAsked`, other threads from the
   * event loop.
   */
  serve(): void {
    this.wantedSeen = Atomics.load(this.i32, this.control + WANTED)
    for (let message = this.exchange?.receive(); message !== undefined; message = this.exchange?.receive()) {
      this.take(message)
    }
  }

  /** Whether another thread has sent a request since the last `serve`: one load. */
  get isAsked(): boolean {
    return Atomics.load(this.i32, this.control + WANTED) !== this.wantedSeen
  }

  private take(message: ObjectMessage): void {
    if (message.object !== undefined) {
      if (!this.objects.has(message.id)) this.remember(message.id, message.object)
      return
    }
    const object = this.objects.get(message.id)
    if (object !== undefined) this.publish(message.id, object)
  }

  private remember(id: number, object: object): void {
    this.objects.set(id, object)
    this.ids.set(object, id)
    const arrived = this.arrivals.get(id)
    this.arrivals.delete(id)
    arrived?.resolve()
  }

  private publish(id: number, object: object): void {
    this.exchange?.publish({ id, object })
    Atomics.add(this.i32, this.control + PUBLISHED, 1)
    Atomics.notify(this.i32, this.control + PUBLISHED)
  }

  private ask(id: number): void {
    this.exchange?.publish({ id, wanted: true })
    Atomics.add(this.i32, this.control + WANTED, 1)
  }

  private askFor(id: number): object {
    const { i32, control } = this
    if (!this.isDirect) {
      throw new Error(
        'an object that travels by reference is not here yet: in a browser pass it to a task as an argument, or return it, instead of sending it through a channel',
      )
    }
    let published = Atomics.load(i32, control + PUBLISHED)
    this.ask(id)
    let aliveAt = performance.now()
    while (this.mayBlock) {
      if (this.senderLives(id)) aliveAt = performance.now()
      else if (performance.now() - aliveAt >= ANSWER_MS_MAX) break
      Atomics.wait(i32, control + PUBLISHED, published, ANSWER_STEP_MS)
      published = Atomics.load(i32, control + PUBLISHED)
      this.serve()
      const object = this.objects.get(id)
      if (object !== undefined) return object
    }
    throw new Error(
      'a shared buffer of a payload is gone: the thread that sent it ended before this thread received it; keep a reference to the buffer on a thread that lives on',
    )
  }

  private lifeAt(thread: number): number {
    return this.control + LIVES + thread
  }

  private senderAt(id: number): number {
    return this.control + SENDERS + (id % SENDERS_MAX) * SENDER_WORDS
  }

  private noteSender(id: number): void {
    const at = this.senderAt(id)
    Atomics.store(this.i32, at, 0)
    Atomics.store(this.i32, at + 1, this.thread)
    Atomics.store(this.i32, at + 2, Atomics.load(this.i32, this.lifeAt(this.thread)))
    Atomics.store(this.i32, at, id)
  }

  /** False: the sender has ended, or so many ids followed that its entry was overwritten. */
  private senderLives(id: number): boolean {
    const at = this.senderAt(id)
    if (Atomics.load(this.i32, at) !== id) return false
    const thread = Atomics.load(this.i32, at + 1)
    return Atomics.load(this.i32, this.lifeAt(thread)) === Atomics.load(this.i32, at + 2)
  }
}
