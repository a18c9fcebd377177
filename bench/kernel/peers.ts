import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { FixedThreadPool } from 'poolifier'
import { Tinypool } from 'tinypool'
import workerpool from 'workerpool'

/** A pool of worker threads from npm, with as many threads as heddle has CPUs. */
export interface Peer {
  readonly name: string
  run(fn: 'add' | 'touch' | 'hog' | 'when', argument?: unknown): PromiseLike<unknown>
  close(): PromiseLike<unknown>
}

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** All peers, their threads started. */
export async function startPeers(threads: number): Promise<Peer[]> {
  const piscina = new Piscina({ filename: file('./work.mjs'), minThreads: threads, maxThreads: threads })
  const tinypool = new Tinypool({ filename: file('./work.mjs'), minThreads: threads, maxThreads: threads })
  const pool = workerpool.pool(file('./workerpool.mjs'), {
    minWorkers: threads,
    maxWorkers: threads,
    workerType: 'thread',
  })
  const poolifier = new FixedThreadPool(threads, file('./poolifier.mjs'))
  const peers: Peer[] = [
    {
      name: 'piscina',
      run: (fn, argument) => piscina.run(argument, { name: fn }),
      close: () => piscina.destroy(),
    },
    {
      name: 'tinypool',
      run: (fn, argument) => tinypool.run(argument, { name: fn }),
      close: () => tinypool.destroy(),
    },
    {
      name: 'workerpool',
      run: (fn, argument) => pool.exec(fn, [argument]),
      close: async () => void (await pool.terminate()),
    },
    {
      name: 'poolifier',
      run: (fn, argument) => poolifier.execute(argument as never, fn),
      close: () => poolifier.destroy(),
    },
  ]
  for (const peer of peers) {
    await Promise.all(Array.from({ length: threads * 4 }, () => peer.run('add', { a: 1, b: 2 })))
  }
  return peers
}

/** Measures every peer in turn, and gives the best: what ours is compared with. */
export async function bestOf(
  peers: readonly Peer[],
  measure: (peer: Peer) => Promise<number>,
): Promise<number> {
  let best = Infinity
  for (const peer of peers) best = Math.min(best, await measure(peer))
  return best
}
