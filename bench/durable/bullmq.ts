/** BullMQ on a Redis server of its own: a baseline where there is a `redis-server`. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The part of BullMQ that is used: it is installed in test/matrix, with that folder's own types. */
interface Bullmq {
  Queue: new (
    name: string,
    options: object,
  ) => {
    addBulk(jobs: readonly { readonly name: string; readonly data: object }[]): Promise<unknown>
    close(): Promise<void>
  }
  Worker: new (
    name: string,
    run: () => Promise<null>,
    options: object,
  ) => { on(event: 'completed', listener: () => void): unknown; close(): Promise<void> }
}

const installed = join(import.meta.dirname, '../../test/matrix/node_modules/bullmq')

export function hasBullmq(): boolean {
  return existsSync(installed) && spawnSync('redis-server', ['--version']).error === undefined
}

export interface BullmqServer {
  /** Milliseconds for each of so many empty jobs, from the first one added to the last one done. */
  jobs(count: number): Promise<number>
  close(): Promise<void>
}

export async function startBullmq(concurrency: number): Promise<BullmqServer> {
  const { Queue, Worker } = createRequire(import.meta.url)(installed) as Bullmq
  const folder = mkdtempSync(join(tmpdir(), 'heddle-redis-'))
  const port = await freePort()
  const server = spawn('redis-server', [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--dir',
    folder,
  ])
  const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }
  const queue = new Queue('jobs', { connection, defaultJobOptions: { removeOnComplete: true } })
  let done = 0
  let wanted = Infinity
  let finish: () => void = () => undefined
  const worker = new Worker('jobs', () => Promise.resolve(null), { connection, concurrency })
  worker.on('completed', () => {
    if (++done === wanted) finish()
  })
  return {
    async jobs(count) {
      done = 0
      wanted = count
      const over = new Promise<void>(resolve => (finish = resolve))
      const from = performance.now()
      await queue.addBulk(Array.from({ length: count }, () => ({ name: 'job', data: {} })))
      await over
      return (performance.now() - from) / count
    },
    async close() {
      await worker.close()
      await queue.close()
      server.kill()
      await once(server, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
