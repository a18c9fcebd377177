import { disposedError, SyncError } from './errors.ts'
import {
  DISPOSED,
  DOMAIN,
  handleOf,
  openHandle,
  type OwnPlace,
  type ObjectWords,
  wordsFor,
  ownPlaceKinds,
  type SyncHandle,
  HAS_WAITERS,
} from './objectwords.ts'
import { ParkingQueue } from './queue.ts'
import { timedOut, waitAsync, type Wait, type WaitOptions, waitSync, waitTask } from './waiting.ts'
import { checkOptions, type Kinds, type OptionKind } from '../../coroutine/core/knownoptions.ts'
import { resumable } from '../../coroutine/core/generators.ts'

export interface ObjectOptions extends OwnPlace {
  /** For messages and for `locks()`. */
  readonly name?: string | undefined
}

/** The options of every class that takes ObjectOptions only. */
export const objectKinds: Kinds<ObjectOptions> = { ...ownPlaceKinds, name: 'string' }

/** What objects with one state word and one queue have in common. */
export abstract class SyncObject implements ObjectWords {
  readonly i32: Int32Array<SharedArrayBuffer>
  readonly at: number
  readonly name: string | undefined
  /** @internal */
  readonly queue: ParkingQueue
  private readonly kind: string

  protected constructor(
    kind: string,
    words: number,
    options: ObjectOptions,
    kinds: Readonly<Record<string, OptionKind>> = objectKinds,
  ) {
    checkOptions(`new ${kind}(options)`, options, kinds)
    const { i32, at } = wordsFor(kind, words, options)
    this.kind = kind
    this.i32 = i32
    this.at = at
    this.name = options.name
    this.queue = new ParkingQueue(this)
  }

  /** For `postMessage`: the receiver calls `from` of the same class. */
  get handle(): SyncHandle {
    return handleOf(this.kind, this, this.travels())
  }

  /** What `console.log` and JSON show of it. */
  toJSON(): { readonly name?: string } {
    return this.name === undefined ? {} : { name: this.name }
  }

  /** The options for the receiver's object, beside its memory. */
  protected travels(): Record<string, unknown> {
    return { name: this.name }
  }

  /** No thread may use it from here on. It must have no waiters. */
  [Symbol.dispose](): void {
    if (Atomics.load(this.i32, this.at + DOMAIN) === DISPOSED) return
    if (Atomics.load(this.i32, this.at) < 0) {
      throw new SyncError(
        'ERR_HEDDLE_BUSY',
        `dispose: ${this.describe()} has waiters; dispose of it when no wait is left`,
      )
    }
    if (this.isHeld())
      throw new SyncError(
        'ERR_HEDDLE_BUSY',
        `dispose: ${this.describe()} is in use; dispose of it after that`,
      )
    Atomics.store(this.i32, this.at + DOMAIN, DISPOSED)
    // Every fast path fails at this bit, and the slow path checks DISPOSED.
    Atomics.or(this.i32, this.at, HAS_WAITERS)
  }

  /** Whether a caller holds it, or runs its function. */
  protected isHeld(): boolean {
    return false
  }

  /** @internal */
  refuseDisposed(what: string): void {
    if (Atomics.load(this.i32, this.at + DOMAIN) === DISPOSED) throw disposedError(what)
  }

  /** @internal */
  describe(): string {
    const kind = this.kind.toLowerCase()
    return this.name === undefined ? `the ${kind}` : `the ${kind} '${this.name}'`
  }
}

/** The memory that a handle names, as options for a constructor. */
export function optionsOf(kind: string, handle: SyncHandle): Record<string, unknown> & OwnPlace {
  const { place, options } = openHandle(kind, handle)
  return { ...options, buffer: place.i32.buffer, index: place.at }
}

/** The slow path of a blocking verb in a task. Throws when the time is over; so do the next two. */
export function* inTask(wait: Wait, options: WaitOptions | undefined): Generator<number, void, unknown> {
  if (!(yield* waitTask(wait, options))) throw timedOut(wait.what, options)
}

resumable(inTask)

export function onThread(wait: Wait, options: WaitOptions | undefined): void {
  if (!waitSync(wait, options)) throw timedOut(`${wait.what}Sync`, options)
}

export async function asPromise(wait: Wait, options: WaitOptions | undefined): Promise<void> {
  if (!(await waitAsync(wait, options))) throw timedOut(`${wait.what}Async`, options)
}
