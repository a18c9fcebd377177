import type { Arena, ArenaPlan, Region } from '../arena/memory/arena.ts'
import type { KernelThread } from '../arena/sync/thread.ts'
import { THREAD_MAX } from '../arena/sync/thread.ts'
import type { ObjectSource } from './decode.ts'
import type { ObjectIds } from './encode.ts'

/**
 * Objects that travel by reference and that no word can name: SharedArrayBuffers, compiled WebAssembly
 * modules. The first thread that sends one gives it an id and publishes both to all threads of the kernel; a
 * payload holds the id alone. An id means the same object for as long as the kernel runs, and on each thread
 * it is always the same JavaScript object.
 *
 *   sender                                    receiver
 *   (A) publishes id and object
 *   (B) hands the payload over
 *                                             (C) meets the id: takes what was published out of its inbox, without a turn of its
 *                                                 event loop, until it finds the id
 *
 * A thread that joined between (A) and (C) never got the message: it asks all others, who publish the object
 * again. For as long as the sender lives, an answer will come: the sender may be busy with a task that has no
 * safepoints. Each thread that joins starts a life, which its end, or recovery, ends; beside an id stand its
 * sender and that one's life. When the sender is gone, others may have the object still: they have
 * ANSWER_MS_MAX, by the clock, to say so.
 */
export interface ObjectChannel {
  /** Whether `receive` gives what others have published without a turn of the event loop. */
  readonly isDirect: boolean
  /** To all other threads. */
  publish(message: ObjectMessage): void
  /** The next message of another thread, without waiting; undefined if there is none. */
  receive(): ObjectMessage | undefined
  close(): void
}

/**
 * Joins the channel of a name, or of an arena; calls `serve` when a message came while the thread was in its
 * event loop.
 */
export type OpenChannel = (arena: SharedArrayBuffer, name: string, serve: () => void) => ObjectChannel

export type ObjectMessage =
  | { readonly id: number; readonly object: object; readonly wanted?: undefined }
  | { readonly id: number; readonly object?: undefined; readonly wanted: true }

/** The arena itself: every thread has it. */
const ARENA_ID = 0

const NEXT_ID = 0
/** Counts publications: who waits for one waits here. */
const PUBLISHED = 1
/** Counts requests: who has a loop of its own looks here. */
const WANTED = 2
const NAME = 3
const NAME_WORDS = 4
/** Of each thread: which life it is in. Even: it is not there. */
const LIVES: number = NAME + NAME_WORDS
/** Of the latest ids: the id, who sent it, and in which life. */
const SENDERS: number = LIVES + THREAD_MAX
const SENDER_WORDS = 3
const SENDERS_MAX = 1024
const CONTROL_WORDS: number = SENDERS + SENDERS_MAX * SENDER_WORDS

/**
 * How long a receiver waits for the others to answer when the sender is gone: they answer between two turns
 * of their loop.
 */
const ANSWER_MS_MAX = 10_000
const ANSWER_STEP_MS = 20

const ofThisThread = new WeakMap<SharedArrayBuffer, PublishedObjects>()

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

  /**
   * The one of this thread for this arena: a simulated machine has many CPUs on one thread. `openChannel`
   * joins the channel of a name, and calls `serve` when a message came while the thread was in its event
   * loop.
   */
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

  /** Once, by the thread that made the arena. */
  static initialize(arena: Arena, region: Region): void {
    arena.i32[region.start + NEXT_ID] = ARENA_ID + 1
    crypto.getRandomValues(new Uint32Array(NAME_WORDS)).forEach((part, index) => {
      arena.i32[region.start + NAME + index] = part | 0
    })
  }

  /**
   * Joins the channel. Before the thread takes its first payload: what is published from here on reaches it.
   */
  open(): void {
    if (this.exchange !== null) return
    let name = 'heddle'
    for (let part = 0; part < NAME_WORDS; part++) {
      name += `:${(this.i32[this.control + NAME + part] >>> 0).toString(36)}`
    }
    this.exchange = this.openChannel(this.i32.buffer, name, () => this.serve())
    // The thread of this id that was here before may have gone without a word.
    const at = this.lifeAt(this.thread)
    Atomics.add(this.i32, at, (Atomics.load(this.i32, at) & 1) === 0 ? 1 : 2)
  }

  /**
   * The thread is gone: it answers no more. By itself, or by whoever recovers it. More than once does no
   * harm.
   */
  ended(thread: number): void {
    const at = this.lifeAt(thread)
    const life = Atomics.load(this.i32, at)
    if ((life & 1) !== 0) Atomics.compareExchange(this.i32, at, life, life + 1)
  }

  /** Whether what has been published is here when it is asked for. */
  get isDirect(): boolean {
    return this.exchange?.isDirect !== false
  }

  close(): void {
    if (this.exchange !== null) this.ended(this.thread)
    this.exchange?.close()
    this.exchange = null
    this.objects.clear()
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

  /** Takes in an object that was sent to this thread alone, before or while it joined. */
  accept(id: number, object: object): void {
    if (!this.objects.has(id)) this.remember(id, object)
  }

  /** Takes in what was sent to this thread alone, where that needs no turn of the event loop. */
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

  /** Whether the object has arrived here. */
  has(id: number): boolean {
    if (this.objects.has(id)) return true
    this.open()
    this.serve()
    return this.objects.has(id)
  }

  /**
   * Resolves when the object, which is not here, has arrived. Whoever has it is asked: this thread may have
   * joined after it was published.
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
   * Takes in what others published, and answers what they ask for. On a CPU, when `isAsked`; elsewhere, from
   * the event loop.
   */
  serve(): void {
    this.wantedSeen = Atomics.load(this.i32, this.control + WANTED)
    for (let message = this.exchange?.receive(); message !== undefined; message = this.exchange?.receive()) {
      this.take(message)
    }
  }

  /** Whether another thread asked for something since this one last served: one load. */
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
        'an object that travels by reference is not here yet: in a browser give it to a task as an argument, or return it, instead of sending it through a channel',
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
      'a shared buffer of a payload is gone: the thread that sent it ended before this one could take it over',
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

  /** False: it has ended, or so many were sent since that it is not known. */
  private senderLives(id: number): boolean {
    const at = this.senderAt(id)
    if (Atomics.load(this.i32, at) !== id) return false
    const thread = Atomics.load(this.i32, at + 1)
    return Atomics.load(this.i32, this.lifeAt(thread)) === Atomics.load(this.i32, at + 2)
  }
}
