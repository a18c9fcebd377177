import { parentPort } from 'node:worker_threads'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import { Piscina } from '../../../src/piscina/index.ts'

/**
 * A pool whose workers are terminated: each run has one outcome, its value or the death of its worker.
 * Reports unexpected results, until it is stopped.
 */
const port = parentPort!
const state = { goesOn: true }
port.once('message', () => (state.goesOn = false))

const random = new SeededRandom(7)
const filename = new URL('./poolwork.ts', import.meta.url).href
const pool = new Piscina({ filename, minThreads: 1, maxThreads: 2, idleTimeout: 20 })
pool.on('error', () => undefined)
const ends = new Set<Promise<void>>()

async function run(n: number): Promise<void> {
  try {
    const value: unknown = await pool.run(n)
    if (value !== 2 * n) port.postMessage(`the pool gave ${String(value)} for ${n}`)
  } catch (error) {
    if (!/terminat|exit/i.test((error as Error).message)) port.postMessage(String((error as Error).stack))
  }
}

for (let n = 0; state.goesOn; n++) {
  const end = run(n)
  ends.add(end)
  void end.then(() => ends.delete(end))
  if (n % 8 !== 7) continue
  const { threads } = pool
  if (n % 64 === 63 && threads.length > 0) void threads[random.below(threads.length)].terminate()
  await new Promise(resolve => setTimeout(resolve, 20))
}
await Promise.all(ends)
await pool.destroy()
port.close()
