import { Worker } from 'node:worker_threads'
import type * as work from './work.ts'

type Name = keyof typeof work
interface Job {
  readonly fn: Name
  readonly args: readonly unknown[]
  readonly resolve: (value: unknown) => void
}

/** A plain worker pool: each thread takes one job after the other, first come, first served. */
export class Pool {
  private readonly workers: Worker[] = []
  private readonly idle: Worker[] = []
  private readonly queue: Job[] = []
  private readonly running = new Map<Worker, Job>()

  static async start(threads: number): Promise<Pool> {
    const pool = new Pool()
    const starting = Array.from({ length: threads }, async () => {
      const worker = new Worker(new URL('./poolworker.ts', import.meta.url))
      pool.workers.push(worker)
      await new Promise(resolve => worker.once('message', resolve))
      worker.on('message', value => pool.done(worker, value))
      pool.idle.push(worker)
    })
    await Promise.all(starting)
    return pool
  }

  run<F extends Name>(fn: F, args: Parameters<(typeof work)[F]>): Promise<ReturnType<(typeof work)[F]>> {
    return new Promise(resolve => {
      this.queue.push({ fn, args, resolve: resolve as (value: unknown) => void })
      this.next()
    })
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }

  private next(): void {
    const worker = this.idle.pop()
    if (worker === undefined) return
    const job = this.queue.shift()
    if (job === undefined) {
      this.idle.push(worker)
      return
    }
    this.running.set(worker, job)
    worker.postMessage([job.fn, job.args])
  }

  private done(worker: Worker, value: unknown): void {
    this.running.get(worker)?.resolve(value)
    this.running.delete(worker)
    this.idle.push(worker)
    this.next()
  }
}
