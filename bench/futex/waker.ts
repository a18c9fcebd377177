import { parentPort, workerData } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { reserveFutexes } from '../../src/futex/core/layout.ts'
import { type HerdBoot, herdSizes } from './herd.ts'

/** A thread that wakes a given number of waiters, one at a time, and reports the time. */
export const wakerSizes: typeof herdSizes = { ...herdSizes, waiters: 4096 }

if (workerData !== null) {
  const boot = workerData as HerdBoot
  const fx = new Futexes(
    new KernelThread(Arena.attach(boot.arena), boot.id),
    reserveFutexes(new ArenaPlan(), wakerSizes),
    { now: () => performance.now(), space: boot.space },
  )
  fx.space.adopt(boot.buffer, boot.handles)
  const word = fx.word(new Int32Array(boot.buffer), 0)
  parentPort?.on('message', (count: number) => {
    const start = performance.now()
    for (let woken = 0; woken < count; ) woken += fx.wake(word, 1)
    parentPort?.postMessage(performance.now() - start)
  })
}
