import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../../src/arena/memory/arena.ts'
import { KernelThread } from '../../../src/arena/sync/thread.ts'
import { Futexes } from '../../../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../../../src/futex/core/layout.ts'
import { recoverFutexes } from '../../../src/futex/recovery/recover.ts'
import {
  ARRIVED,
  COUNTER,
  LOCK,
  lock,
  SEQUENCE,
  type StressBoot,
  stressSizes,
  unlock,
  WAKEUPS,
} from './stress-worker.ts'

interface Stress {
  readonly fx: Futexes
  readonly view: Int32Array
  readonly workers: Worker[]
  readonly done: Promise<unknown>
  /** Waiters that are still allocated. */
  left(): number
}

function start(scenario: StressBoot['scenario'], threads: number, turns: number): Stress {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, stressSizes)
  const arena = Arena.create(plan)
  initializeFutexes(arena, layout)
  const fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
  const buffer = new SharedArrayBuffer(64)
  const { handles } = fx.map(buffer)
  const workers = Array.from({ length: threads }, (_, id) => {
    const workerData: StressBoot = {
      scenario,
      arena: arena.buffer,
      id,
      turns,
      space: fx.space.handle,
      buffer,
      handles,
    }
    return new Worker(new URL('./stress-worker.ts', import.meta.url), { workerData })
  })
  const done = Promise.all(
    workers.map(
      worker =>
        new Promise<void>((resolve, reject) => {
          worker.once('message', () => resolve())
          worker.once('error', reject)
        }),
    ),
  )
  return { fx, view: new Int32Array(buffer), workers, done, left: () => layout.waiters.count(arena.i32) }
}

test('three threads and a promise count under one futex mutex, and no increment is lost', async () => {
  const { fx, view, done, left } = start('mutex', 3, 15_000)
  const word = fx.word(view, LOCK)
  // This thread takes part through promises.
  for (let turn = 0; turn < 300; turn++) {
    let seen = Atomics.compareExchange(view, LOCK, 0, 1)
    while (seen !== 0) {
      if (seen === 2 || Atomics.compareExchange(view, LOCK, 1, 2) !== 0) await fx.waitAsync(word, 2)
      seen = Atomics.compareExchange(view, LOCK, 0, 2)
    }
    view[COUNTER]++
    unlock(fx, word)
  }
  await done
  expect(view[COUNTER]).toBe(45_300)
  expect(view[LOCK]).toBe(0)
  expect(left()).toBe(0)
})

test('four threads at one mutex, whose futex is freed and recreated all the time', async () => {
  const { view, done, left } = start('mutex', 4, 200_000)
  await done
  expect(view[COUNTER]).toBe(800_000)
  expect(left()).toBe(0)
})

test('a broadcast by requeue wakes every thread once, round after round', async () => {
  const rounds = 300
  const threads = 3
  const { fx, view, done, left } = start('broadcast', threads, rounds)
  const word = fx.word(view, LOCK)
  const sequence = fx.word(view, SEQUENCE)
  for (let round = 1; round <= rounds; round++) {
    while (Atomics.load(view, ARRIVED) < threads * round) {
      const arrived = Atomics.load(view, ARRIVED)
      const waiting = Atomics.waitAsync(view, ARRIVED, arrived, 50)
      if (waiting.async) await waiting.value
    }
    lock(fx, word)
    Atomics.add(view, SEQUENCE, 1)
    // One waiter is woken, the others move to the lock, where each unlock wakes the next.
    fx.requeue(sequence, word, { wake: 1 })
    Atomics.store(view, LOCK, 2)
    unlock(fx, word)
  }
  await done
  expect(view[WAKEUPS]).toBe(threads * rounds)
  expect(left()).toBe(0)
})

test('threads that are terminated while they wait or wake leave working futexes', async () => {
  for (let attempt = 0; attempt < 5; attempt++) {
    const { fx, view, workers, done, left } = start('mutex', 2, 1_000_000)
    done.catch(() => undefined)
    while (Atomics.load(view, COUNTER) < 50) await new Promise(resolve => setTimeout(resolve, 1))
    await Promise.all(workers.map(worker => worker.terminate()))
    for (const id of [0, 1]) recoverFutexes(fx.context, id)
    expect(left()).toBe(0)
    Atomics.store(view, LOCK, 0)
    const word = fx.word(view, LOCK)
    const waiting = fx.waitAsync(word, 0)
    expect(fx.wake(word, 1)).toBe(1)
    expect(await waiting).toBe('ok')
  }
})
