/**
 * Calls of test code that are stopped when their time is over, even if they never return to the event loop.
 *
 *   test thread                                         watchdog thread
 *   guarded call: DUE := the first time that is due     sleeps until DUE
 *   test code loops: no timer of vitest's can fire      BEAT stands still: THROW := 1
 *   compiled code: throws at its next safepoint         none comes: stops the thread by the inspector, takes the stack,
 *                                                       ends the JavaScript on it
 *   event loop: rejects the guarded call                says which call it was, and where
 *
 * Each guarded call begins in a turn of its own. So nothing of vitest's stands on the stack that is ended,
 * and the caller, which waits for a promise, goes on.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Worker } from 'node:worker_threads'
import { setPlainDeadline } from '../coroutine/core/safepoint.ts'
import { dropOrphans } from './droppedrejections.ts'
import {
  BEAT,
  CHANGES,
  clock,
  DUE,
  STOPPING,
  type Stopped,
  THROW,
  type WatchdogData,
  WORDS,
} from './sharedwords.ts'

interface Guarded {
  readonly id: number
  readonly due_ms: number
  readonly error: (stack: readonly string[] | null) => Error
  readonly stop: (stack: readonly string[]) => void
}

/**
 * Before Node 24 an AsyncLocalStorage keeps count of promises on a stack of Node's own, which does not
 * survive that JavaScript is ended: there the call that is due first is taken for the one that runs.
 */
const hasContexts = Number(process.versions.node.split('.', 1)[0]) >= 24

/** How often the event loop shows that it turns. */
const beat_ms = 20

// Taken now: a test may fake them.
const { setImmediate, setInterval } = globalThis

/** Under this name the watchdog finds, in a thread that it has stopped, which of several calls runs there. */
export const runningKey: unique symbol = Symbol.for('heddle.vitest.running') as never

export class Guard {
  readonly #running = new Map<number, Guarded>()
  readonly #words = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT))
  readonly #base_ms = Number(process.hrtime.bigint()) / 1e6
  readonly #concurrent = new AsyncLocalStorage<Guarded>()
  readonly #late: (() => void)[] = []
  #ids = 0
  #stops = 0

  constructor() {
    const workerData: WatchdogData = { words: this.#words, base_ms: this.#base_ms }
    const watchdog = new Worker(new URL('./watchdog.ts', import.meta.url), {
      workerData,
      name: 'heddle vitest watchdog',
      execArgv: [],
    })
    watchdog.unref()
    watchdog.on('message', ({ id, stack }: Stopped) => this.#stopped(id, stack))
    setInterval(() => Atomics.add(this.#words, BEAT, 1), beat_ms).unref()
    const running = (): [number, number] | null => {
      const guarded = this.#concurrent.getStore()
      return guarded === undefined ? null : [guarded.id, guarded.due_ms]
    }
    setPlainDeadline(this.#words, THROW, safepoint => this.#interrupt(safepoint))
    dropOrphans(() => this.#stops > 0 || Atomics.load(this.#words, STOPPING) !== 0)
    Object.defineProperty(globalThis, runningKey, { value: running, configurable: true })
  }

  /**
   * Calls `run`, for at most `limit_ms`. A call that keeps the thread for longer is ended where it stands,
   * without its `finally`, and the promise is rejected with what `error` makes of its stack; in compiled code
   * the error is thrown at a safepoint (`error(null)`). A call that only waits is left alone. `concurrent`:
   * others run beside it.
   */
  call<T>(
    limit_ms: number,
    concurrent: boolean,
    run: () => T | PromiseLike<T>,
    error: (stack: readonly string[] | null) => Error,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      setImmediate(() => {
        const id = ++this.#ids
        const due_ms = clock(this.#base_ms) + limit_ms
        const guarded: Guarded = {
          id,
          due_ms,
          error,
          stop: stack => {
            if (this.#end(id)) reject(error(stack))
          },
        }
        this.#running.set(id, guarded)
        this.#changed()
        const settle =
          <A>(settled: (value: A) => void) =>
          (value: A): void => {
            // Vitest's own timer may come before what the watchdog says, which is more.
            if (Atomics.load(this.#words, STOPPING) !== 0) this.#late.push(() => settle(settled)(value))
            else if (this.#end(id)) settled(value)
          }
        try {
          const result = concurrent && hasContexts ? this.#concurrent.run(guarded, run) : run()
          Promise.resolve(result).then(settle(resolve), settle(reject))
        } catch (thrown) {
          settle(reject)(thrown)
        }
      })
    })
  }

  /** At a safepoint of compiled code, while THROW is up. */
  #interrupt(safepoint: Function): void {
    const running = this.#concurrent.getStore() ?? this.#first()
    if (running === undefined || running.due_ms > clock(this.#base_ms)) return
    Atomics.store(this.#words, THROW, 0)
    const error = running.error(null)
    Error.captureStackTrace(error, safepoint)
    throw error
  }

  #stopped(id: number | null, stack: readonly string[]): void {
    this.#stops++
    const stopped = id === null ? this.#first() : this.#running.get(id)
    stopped?.stop(stack)
    Atomics.store(this.#words, STOPPING, 0)
    for (const settle of this.#late.splice(0)) settle()
  }

  /** False: the call has ended before. */
  #end(id: number): boolean {
    if (!this.#running.delete(id)) return false
    this.#changed()
    return true
  }

  #first(): Guarded | undefined {
    let first: Guarded | undefined
    for (const guarded of this.#running.values()) {
      if (first === undefined || guarded.due_ms < first.due_ms) first = guarded
    }
    return first
  }

  #changed(): void {
    Atomics.store(this.#words, DUE, this.#first()?.due_ms ?? 0)
    Atomics.add(this.#words, CHANGES, 1)
    Atomics.notify(this.#words, CHANGES)
  }
}
