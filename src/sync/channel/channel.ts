import { checkOptions, type Kinds } from '../../coroutine/core/knownoptions.ts'
import { pause } from '../../arena/sync/pause.ts'
import type { Blocking } from '../../coroutine/core/blocking.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import { facesOpen, finishedFace, toRun } from '../../coroutine/core/faces.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { here } from '../../thread/context.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import {
  type ChannelCase,
  casesAsync,
  casesInTask,
  casesOnThread,
  type Served,
  tryCases,
} from './channelcases.ts'
import { checkCount, SyncError } from '../wait/errors.ts'
import { LocalPipe } from './localpipe.ts'
import { dropValue, writeValue } from '../wait/value.ts'
import { payloadHeap } from '../wait/payloads.ts'
import { refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import {
  handleOf,
  openHandle,
  type OwnPlace,
  wordsFor,
  ownPlaceKinds,
  type SyncHandle,
} from '../wait/objectwords.ts'
import { scratch } from './sharedcases.ts'
import { PIPE_ENDED, pipeWords, SharedPipe, PIPE_WOULD_WAIT } from './sharedpipe.ts'
import { blockingMethods, checkWait, timedOut, type WaitOptions } from '../wait/waiting.ts'

export interface ChannelOptions extends OwnPlace {
  /** How many values it can hold. With 0, the default, a send ends when its value is received. */
  readonly capacity?: number | undefined
  /** It holds the last value only: a send never waits, and replaces a value that was not received. */
  readonly latest?: boolean | undefined
  readonly name?: string | undefined
}

const channelKinds: Kinds<ChannelOptions> = {
  ...ownPlaceKinds,
  capacity: 'checked',
  latest: 'boolean',
  name: 'string',
}

/** A finished iterable whose value changes: `yield*` reads it immediately. */
class Ready<T> {
  private readonly result: { done: true; value: T | undefined } = { done: true, value: undefined };

  [Symbol.iterator](): this {
    return this
  }

  with(value: T): this {
    this.result.value = value
    return this
  }

  next(): IteratorReturnResult<T> {
    return this.result as IteratorReturnResult<T>
  }
}

Object.defineProperty(Ready.prototype, finishedFace, { value: true })

/**
 * Passes values between tasks, threads and promises. It has any number of senders and receivers; each value
 * goes to exactly one receiver.
 *
 * Do not use a value after you have sent it. While the channel has not left its thread, the receiver gets the
 * object itself; across threads it gets a copy, as of `structuredClone`.
 */
export class Channel<T = unknown> {
  readonly name: string | undefined
  /** @internal */
  pipe: LocalPipe | SharedPipe
  /** The pipe while it is a local one. */
  private local: LocalPipe | null
  private readonly ready = new Ready<T>()
  private readonly sent = new Ready<void>()

  constructor(options: ChannelOptions | number = {}) {
    if (typeof options !== 'number') checkOptions('new Channel(options)', options, channelKinds)
    const {
      capacity: wanted,
      latest = false,
      name,
      buffer,
      view,
      index,
    } = typeof options === 'number' ? { capacity: options } : options
    const capacity = wanted ?? (latest ? 1 : 0)
    checkCount('new Channel({ capacity })', capacity, 0, 1 << 24)
    if (latest && capacity !== 1)
      throw new RangeError('new Channel({ latest, capacity }): with latest the capacity is 1; leave it out')
    this.name = name
    this.local = new LocalPipe(capacity, latest)
    this.pipe = this.local
    if (buffer !== undefined || view !== undefined) {
      const place = wordsFor('Channel', pipeWords(capacity), { buffer, view, index })
      SharedPipe.initialize(place, capacity, latest)
      this.pipe = new SharedPipe(place, payloadHeap())
      this.local = null
    }
  }

  /** How many words a channel in your own memory needs. It starts at an even index. */
  static words(capacity: number): number {
    return pipeWords(capacity)
  }

  static from<T = unknown>(handle: SyncHandle): Channel<T> {
    const { place, options } = openHandle('Channel', handle)
    const channel = new Channel<T>({ name: options['name'] as string | undefined })
    channel.local = null
    channel.pipe = new SharedPipe(place, (options['heap'] as SharedArrayBuffer | null | undefined) ?? null)
    return channel
  }

  /** For `postMessage`. The channel becomes shared, and the values in it are copied. */
  get handle(): SyncHandle {
    const pipe = this.share()
    return handleOf('Channel', pipe, { name: this.name, heap: pipe.heap })
  }

  get capacity(): number {
    return this.pipe.capacity
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): {
    readonly name?: string
    readonly capacity: number
    readonly length: number
    readonly closed: boolean
  } {
    const { name, capacity, length, closed } = this
    return { ...(name !== undefined && { name }), capacity, length, closed }
  }

  /** How many values are in it now. */
  get length(): number {
    return this.pipe.count
  }

  get closed(): boolean {
    return this.pipe.closed
  }

  /** In a task: waits until the value is in the channel, or, without capacity, until it is received. */
  send(value: T, options?: WaitOptions): Blocking<void> {
    if (!facesOpen()) refuseOutsideTask('send')
    if (options !== undefined) checkWait(options)
    const { local } = this
    if (local !== null && local.putQuietly(value)) return this.sent as unknown as Blocking<void>
    if (this.trySend(value)) return this.sent as unknown as Blocking<void>
    return toRun('send', this.sendInTask(value, options)) as Blocking<void>
  }

  sendSync(value: T, options?: WaitOptions): void {
    refuseInTask('send')
    checkWait(options)
    if (!this.trySend(value) && !(this.spin(false) && this.trySend(value))) {
      this.checkSent(casesOnThread('sendSync', [this.end(true, value)], options), 'sendSync', options)
    }
  }

  async sendAsync(value: T, options?: WaitOptions): Promise<void> {
    checkWait(options)
    if (!this.trySend(value)) {
      this.checkSent(await casesAsync('sendAsync', [this.end(true, value)], options), 'sendAsync', options)
    }
  }

  /** Sends without waiting; false: it would have to wait. */
  trySend(value: T): boolean {
    const { pipe } = this
    if (!(pipe instanceof SharedPipe)) {
      if (pipe.closed) throw this.closedError('send')
      return pipe.put(value)
    }
    const served = this.putShared(pipe, value)
    if (served === PIPE_ENDED) throw this.closedError('send')
    return served !== PIPE_WOULD_WAIT
  }

  /** In a task: waits for a value. Throws when the channel is closed and empty. */
  receive(options?: WaitOptions): Blocking<T> {
    if (!facesOpen()) refuseOutsideTask('receive')
    if (options !== undefined) checkWait(options)
    const { local } = this
    if (local !== null && local.hasQuietly()) {
      return this.ready.with(local.takeQuietly() as T) as unknown as Blocking<T>
    }
    if (this.takeNow()) return this.ready.with(this.received as T) as unknown as Blocking<T>
    return toRun('receive', this.receiveInTask(options)) as Blocking<T>
  }

  receiveSync(options?: WaitOptions): T {
    refuseInTask('receive')
    checkWait(options)
    if (this.takeNow() || (this.spin(true) && this.takeNow())) return this.received as T
    return this.taken(casesOnThread('receiveSync', [this.end(false)], options), 'receiveSync', options)
  }

  async receiveAsync(options?: WaitOptions): Promise<T> {
    checkWait(options)
    if (this.takeNow()) return this.received as T
    return this.taken(await casesAsync('receiveAsync', [this.end(false)], options), 'receiveAsync', options)
  }

  /** Receives without waiting; null: it is empty. Done: the channel is closed and empty. */
  tryReceive(): IteratorResult<T, undefined> | null {
    const served = tryCases('tryReceive', [this.end(false)])
    if (served === null) return null
    return served.closed ? { done: true, value: undefined } : { done: false, value: served.value as T }
  }

  /** Ends sending; the values in it can still be received. A second call does nothing. */
  close(): void {
    const { pipe } = this
    if (!(pipe instanceof SharedPipe)) {
      pipe.close()
      return
    }
    const { context } = currentFutexes()
    pipe.lock(context)
    pipe.close(context)
    pipe.unlock(context)
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /**
   * `for (const value of channel)`: on a thread, and in a 'use task' function; until the channel is closed.
   */
  [Symbol.iterator](): ChannelIterator<T> {
    return new ChannelIterator(this)
  }

  /** `for await (const value of channel)`: anywhere, until the channel is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, unknown> {
    for (;;) {
      if (this.takeNow()) {
        yield this.received as T
        continue
      }
      const served = await casesAsync('receiveAsync', [this.end(false)], undefined)
      if (served === null || served.closed) return
      yield served.value as T
    }
  }

  /** @internal Moves the channel to shared memory, before it leaves its thread. */
  share(): SharedPipe {
    const { pipe } = this
    if (pipe instanceof SharedPipe) return pipe
    const { capacity, latest, closed } = pipe
    const place = wordsFor('Channel', pipeWords(capacity), {})
    SharedPipe.initialize(place, capacity, latest)
    const shared = new SharedPipe(place, payloadHeap())
    for (const value of pipe.contents()) this.putShared(shared, value as T)
    this.pipe = shared
    this.local = null
    if (closed) this.close()
    pipe.moveWaiters()
    return shared
  }

  /** @internal */
  end(sends: boolean, value?: unknown): ChannelCase {
    return { channel: this, sends, value }
  }

  /** @internal Null: closed and empty. */
  *nextInTask(): Generator<number, { value: T } | null, unknown> {
    if (this.takeNow()) return { value: this.received as T }
    const served = yield* casesInTask('receive', [this.end(false)], undefined)
    return served === null || served.closed ? null : { value: served.value as T }
  }

  /** @internal */
  nextOnThread(): { value: T } | null {
    const served = casesOnThread('receiveSync', [this.end(false)], undefined)
    return served === null || served.closed ? null : { value: served.value as T }
  }

  private received: T | undefined = undefined

  /** A thread spins before it blocks, because the other end often comes soon. True: a try may succeed. */
  private spin(receives: boolean): boolean {
    const { pipe } = this
    if (!(pipe instanceof SharedPipe)) return false
    const { spins } = currentFutexes().context.thread
    const { capacity } = pipe
    for (let spin = 0; spin < spins; spin++) {
      if (receives ? pipe.count > 0 : pipe.count < capacity) return true
      pause()
    }
    return false
  }

  private takeNow(): boolean {
    const { pipe } = this
    if (!(pipe instanceof SharedPipe)) {
      if (!pipe.take()) return false
      this.received = pipe.taken as T
      return true
    }
    const { context } = currentFutexes()
    const outcome = pipe.receive(context, staging.i32, 0)
    if (outcome === PIPE_WOULD_WAIT || outcome === PIPE_ENDED) return false
    this.received = pipe.read(context, staging, 0) as T
    return true
  }

  private putShared(pipe: SharedPipe, value: T): number {
    const { context } = currentFutexes()
    writeValue(staging, 0, value, pipe.codec)
    const outcome = pipe.send(context, staging, 0)
    if (outcome === PIPE_WOULD_WAIT || outcome === PIPE_ENDED) dropValue(staging, 0, pipe.codec)
    return outcome
  }

  private *sendInTask(value: T, options: WaitOptions | undefined): Generator<number, void, unknown> {
    this.checkSent(yield* casesInTask('send', [this.end(true, value)], options), 'send', options)
  }

  private *receiveInTask(options: WaitOptions | undefined): Generator<number, T, unknown> {
    return this.taken(yield* casesInTask('receive', [this.end(false)], options), 'receive', options)
  }

  private checkSent(served: Served | null, what: string, options: WaitOptions | undefined): void {
    if (served === null) throw timedOut(what, options)
    if (served.closed) throw this.closedError(what)
  }

  private taken(served: Served | null, what: string, options: WaitOptions | undefined): T {
    if (served === null) throw timedOut(what, options)
    if (served.closed) throw this.closedError(what)
    return served.value as T
  }

  private closedError(what: string): SyncError {
    const which = this.name === undefined ? 'the channel' : `the channel '${this.name}'`
    return new SyncError('ERR_HEDDLE_CLOSED', `${what}: ${which} is closed`)
  }
}

/** Where a value is encoded before the channel is locked. */
const staging = scratch(1)

export class ChannelIterator<T> implements Iterator<T, undefined, unknown>, Iterable<T, undefined, unknown> {
  private readonly channel: Channel<T>

  /** @internal */
  constructor(channel: Channel<T>) {
    this.channel = channel
  }

  [Symbol.iterator](): this {
    return this
  }

  next(): IteratorResult<T, undefined> {
    if (here.runner !== null) {
      throw new SyncError(
        'ERR_HEDDLE_WRONG_VERB',
        "for-of over a channel blocks, and a generator cannot be suspended by it: in a task use yield* channel.receive(), or for-of in a 'use task' function",
      )
    }
    return resultOf(this.channel.nextOnThread())
  }

  *nextInTask(): Generator<number, IteratorResult<T, undefined>, unknown> {
    return resultOf(yield* this.channel.nextInTask())
  }
}

function resultOf<T>(next: { value: T } | null): IteratorResult<T, undefined> {
  return next === null ? { done: true, value: undefined } : { done: false, value: next.value }
}

// By this mark a 'use task' function knows that each step of the loop may park it.
Object.defineProperty(Channel.prototype[Symbol.iterator], twin, {
  // oxlint-disable-next-line require-yield
  value: resumable(function* (this: Channel): Generator<number, ChannelIterator<unknown>, unknown> {
    return new ChannelIterator(this)
  }),
})
Object.defineProperty(ChannelIterator.prototype.next, twin, {
  value: resumable(ChannelIterator.prototype.nextInTask),
})

blockingMethods(Channel.prototype, 'send', 'receive')
