import { Worker } from 'node:worker_threads'
import type { Database } from '../database/database.ts'
import type { Claimed, Engine } from '../engine.ts'

/**
 * Renews the leases of the jobs that this worker has. With a PostgreSQL server a thread of its own does that:
 * code that keeps this thread busy loses no lease while its process lives.
 *
 * An embedded database belongs to this process alone, and its jobs have no leases: a thread that was busy
 * would take its own runs away. The runs of a process that died are lapsed when the next one opens the
 * database (`Claims.lapseAll`).
 */
export interface Leases {
  set(jobs: ReadonlyMap<string, readonly Claimed[]>): void
  close(): Promise<void>
}

/** What the thread gets: the jobs by queue. */
export type LeaseMessage = readonly (readonly [queue: string, jobs: readonly Claimed[]])[]

export interface LeaseSettings {
  readonly url: string
  readonly lease: number
  readonly every: number
  /** The name of the worker (sessions.ts). */
  readonly session: string
}

export interface LeaseOptions {
  readonly lease: number
  /** Milliseconds between two heartbeats. */
  readonly every: number
  /** The name of the worker. */
  readonly session: string
  readonly onError: (error: Error) => void
  /** After each heartbeat. */
  readonly onBeat: () => void
}

export function keepLeases(database: Database, options: LeaseOptions): Leases {
  return database.url === null ? new NoLeases(options) : new ThreadLeases(database.url, options)
}

/** For an embedded database: it calls `onBeat`, and nothing else. */
class NoLeases implements Leases {
  private readonly timer: NodeJS.Timeout

  constructor({ every, onBeat }: LeaseOptions) {
    this.timer = setInterval(onBeat, every)
  }

  set(): void {}

  close(): Promise<void> {
    clearInterval(this.timer)
    return Promise.resolve()
  }
}

/** A thread that has ended is replaced after this: sooner than a lease. */
const REPLACE_MS = 500

class ThreadLeases implements Leases {
  private readonly settings: LeaseSettings
  private readonly options: LeaseOptions
  private worker: Worker
  private jobs: LeaseMessage = []
  private replacing: NodeJS.Timeout | undefined
  private isClosing = false

  constructor(url: string, options: LeaseOptions) {
    const { lease, every, session } = options
    this.settings = { url, lease, every, session }
    this.options = options
    this.worker = this.begin()
  }

  private begin(): Worker {
    const { onError, onBeat } = this.options
    const worker = new Worker(new URL('./node-leasethread.ts', import.meta.url), {
      workerData: this.settings,
      name: 'heddle leases',
    })
    worker.on('error', onError)
    worker.on('exit', () => {
      if (this.isClosing) return
      onError(new Error('the thread that renews the leases has ended; another one begins'))
      this.replacing = setTimeout(() => (this.worker = this.begin()), REPLACE_MS)
    })
    worker.on('message', (message: { readonly error?: string }) => {
      if (message.error === undefined) onBeat()
      else onError(new Error(message.error))
    })
    worker.postMessage(this.jobs)
    worker.unref()
    return worker
  }

  set(jobs: ReadonlyMap<string, readonly Claimed[]>): void {
    this.jobs = [...jobs]
    this.worker.postMessage(this.jobs)
  }

  async close(): Promise<void> {
    this.isClosing = true
    clearTimeout(this.replacing)
    const { worker } = this
    if (worker.threadId === -1) return
    const ended = new Promise(resolve => worker.once('exit', resolve))
    worker.postMessage(null)
    await ended
  }
}

/** One heartbeat. */
export async function beat(engine: Engine, jobs: ReadonlyMap<string, readonly Claimed[]>): Promise<void> {
  for (const [queue, some] of jobs) if (some.length > 0) await engine.touch(queue, some)
}
