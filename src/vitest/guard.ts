/**
 * Calls of test code that are stopped after their time limit, even if they never return to the event loop.
 *
 *   test thread                                         watchdog thread
 *   guarded call: DUE := the earliest deadline          sleeps until DUE
 *   test code loops: no timer of vitest can fire        BEAT does not change: THROW := 1
 *   compiled code: throws at its next safepoint         no safepoint: pauses the thread by the inspector, takes
 *                                                       the stack, terminates the JavaScript on it
 *   event loop: rejects the guarded call                reports which call it was, and where
 *
 * Each guarded call begins in a separate job of the event loop. So the terminated stack contains no code of
 * vitest, and the caller, which waits for a promise, continues.
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
 * Before Node 24, an AsyncLocalStorage counts promises on a stack that does not survive the termination of
 * JavaScript. There, the call with the earliest deadline counts as the running one.
 */
const hasContexts = Number(process.versions.node.split('.', 1)[0]) >= 24

/** How often the event loop shows that it runs. */
const beat_ms = 20

// Saved now, because a test may fake them.
const { setImmediate, setInterval } = globalThis

/** The watchdog reads this global, in a paused thread, to find which of several calls runs. */
const runningKey: unique symbol = Symbol.for('heddle.vitest.running') as never

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
   * Calls `run`, for at most `limit_ms`. A call that blocks the thread for longer is terminated, without its
   * `finally`, and the promise is rejected with `error(stack)`. In compiled code, the error is thrown at a
   * safepoint (`error(null)`). A call that only waits is left alone. `concurrent`: other calls run beside it.
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
            // Vitest's own timer may fire before the watchdog's report, which says more.
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

  /** Called at a safepoint of compiled code, while THROW is set. */
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

  /** Returns false if the call has already ended. */
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
