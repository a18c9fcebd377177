import { randomUUID } from 'node:crypto'
import { refuseUnknown } from '../coroutine/core/knownoptions.ts'
import type { Durable } from './durable.ts'
import { RunCancelledError } from './errors.ts'
import { checkRetryFrom } from './options.ts'
import { decodeError, decodeValue, textOf } from './outcome.ts'
import { hasEnded, type RunError, type RunEvent, type RunState, type RunStatus } from './states.ts'
import { eventOf, statusOf } from './status.ts'

export interface RetryOptions {
  readonly from?: 'checkpoint' | 'start'
}

/**
 * A run, in any process. It can be awaited: it resolves with the result of its function, or rejects with its
 * error, or with a RunCancelledError.
 */
export class Run<T = unknown> implements PromiseLike<T> {
  readonly id: string
  /** Hidden from `console.log`: it leads to the URL of the database, with its password. */
  readonly #durable: Durable
  private outcome: Promise<T> | null = null

  /** @internal */
  constructor(durable: Durable, id: string) {
    this.#durable = durable
    this.id = id
  }

  // oxlint-disable-next-line unicorn/no-thenable
  then<A = T, B = never>(
    onResolved?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((error: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.result().then(onResolved, onRejected)
  }

  catch<B = never>(onRejected?: ((error: any) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.result().catch(onRejected)
  }

  finally(onSettled?: (() => void) | null): Promise<T> {
    return this.result().finally(onSettled)
  }

  /** The result of its function: what awaiting the run gives. */
  result(): Promise<T> {
    this.outcome ??= this.waitForEnd()
    return this.outcome
  }

  private async waitForEnd(): Promise<T> {
    const { id } = this
    const durable = this.#durable
    for (;;) {
      const heard = durable.nextNews(news => news.ended === true || (news.ended?.includes(id) ?? false))
      const row = await durable.outcomeOf(id)
      if (hasEnded(row.state as RunState)) {
        heard.forget()
        if (row.state === 'completed')
          return decodeValue(row.outcome as Uint8Array, `the result of run ${id}`) as T
        if (row.state === 'cancelled')
          throw new RunCancelledError(id, (row.cancel_reason as string | null) ?? 'no reason was given')
        throw decodeError(row.outcome as Uint8Array | null, row.error as RunError | null)
      }
      await heard.promise
    }
  }

  /** Its present state, from the database. */
  async status(): Promise<RunStatus> {
    return statusOf(await this.#durable.rowOf(this.id))
  }

  /**
   * Ends the run. A run that no worker has is cancelled when this resolves. The task of a running one is
   * killed within a heartbeat, so that its `finally` blocks run; it may complete before.
   */
  async cancel(reason: unknown = 'cancelled'): Promise<RunState> {
    const because = reason instanceof Error ? reason.message : textOf(reason)
    const durable = this.#durable
    return await durable.patiently(() => durable.store.calls.cancel(this.id, because))
  }

  /**
   * Queues a run that failed or was cancelled again. False: it is neither. `from`: its last checkpoint, if it
   * has one (the default), or its start.
   */
  async retry(options: RetryOptions = {}): Promise<boolean> {
    refuseUnknown('retry(options)', options, { from: true })
    const { from = 'checkpoint' } = options
    checkRetryFrom('from', from)
    this.outcome = null
    const durable = this.#durable
    return await durable.whileOpen(() => durable.store.calls.retry(this.id, from === 'start'))
  }

  /** Sends a message, which the run takes by `receive(name)`. */
  async send(name: string, value: unknown): Promise<void> {
    await this.#durable.send(this.id, name, value)
  }

  /** What has happened to the run, and what happens from now on, until it has ended. */
  async *events(): AsyncGenerator<RunEvent, void, void> {
    const { id } = this
    const durable = this.#durable
    let last = 0
    for (;;) {
      const heard = durable.nextNews(() => true)
      try {
        const row = await durable.rowOf(id)
        for (const event of await durable.patiently(() => durable.store.reads.eventsOf(id, last))) {
          const read = eventOf(event)
          last = read.id
          yield read
        }
        if (hasEnded(row.state as RunState)) return
        await heard.promise
      } finally {
        heard.forget()
      }
    }
  }
}

/**
 * A run that `start` resolves with: a `Run`, whose type cannot say that awaiting it gives the result. `await
 * run` does; in TypeScript `await run.result()` has the right type.
 */
export type StartedRun<T = unknown> = Omit<Run<T>, 'then' | 'catch' | 'finally'>

/**
 * Resolves a promise with the run itself. A promise that is resolved with a thenable takes that one's result
 * instead; it reads `then` when it is resolved, and only then the run has none.
 */
export function resolveWithRun<T>(resolve: (run: StartedRun<T>) => void, run: Run<T>): void {
  // oxlint-disable-next-line unicorn/no-thenable
  Object.defineProperty(run, 'then', { value: undefined, configurable: true })
  resolve(run)
  delete (run as { then?: unknown }).then
}

export function newRunId(): string {
  return randomUUID()
}
