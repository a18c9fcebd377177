import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { Schedule } from '../../coroutine/schedule/schedule.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { Waiter } from '../../futex/core/records.ts'
import { Semaphore } from '../small/semaphore.ts'

const timeout = { name: 'TimeoutError' }
const asleep = (): number => currentFutexes().context.sleepsHere.size
const turn = (): Promise<void> => new Promise(resolve => void setImmediate(resolve))

/** Whether the event loop has turned since. */
function turning(): () => boolean {
  let turned = false
  setImmediate(() => (turned = true))
  return () => turned
}

describe('promises and coroutines that wait on the thread of their waker', () => {
  test('continue before the event loop turns', async () => {
    const semaphore = new Semaphore(0)
    const waits = Array.from({ length: 10 }, () => semaphore.acquireAsync())
    const turned = turning()
    semaphore.release(10)
    await Promise.all(waits)
    expect(turned()).toBe(false)
    expect(asleep()).toBe(0)
  })

  test('continue before it turns also when they have slept for many turns', async () => {
    const semaphore = new Semaphore(0)
    const wait = semaphore.acquireAsync()
    for (let count = 0; count < 3; count++) await turn()
    const { i32, sleepsHere } = currentFutexes().context
    const [sleeper] = sleepsHere.keys()
    const turned = turning()
    semaphore.release()
    await wait
    expect(turned()).toBe(false)
    expect(asleep()).toBe(0)
    // Nothing is left in the engine's list of sleepers either.
    expect(Atomics.notify(i32, sleeper! + Waiter.signal)).toBe(0)
  })

  test('sleep and continue thousands of times within one turn', async () => {
    const [there, back] = [new Semaphore(0), new Semaphore(0)]
    const turns = 5000
    const turned = turning()
    const late = expect(new Semaphore(0).acquireAsync(1, { timeout: 5 })).rejects.toMatchObject(timeout)
    const answers = (async () => {
      for (let count = 0; count < turns; count++) {
        await there.acquireAsync()
        back.release()
      }
    })()
    for (let count = 0; count < turns; count++) {
      there.release()
      await back.acquireAsync()
    }
    await answers
    expect(turned()).toBe(false)
    await late
    expect(asleep()).toBe(0)
  })

  test('end with the reason of their signal, and leave nothing asleep', async () => {
    const schedule = new Schedule()
    const semaphore = new Semaphore(0)
    for (const turns of [0, 2]) {
      const abort = new AbortController()
      const promise = semaphore.acquireAsync(1, { signal: abort.signal })
      const coroutine = schedule.run(function* () {
        yield* semaphore.acquire(1, { signal: abort.signal })
      })
      for (let count = 0; count < turns; count++) await turn()
      const ends = Promise.allSettled([promise, coroutine])
      abort.abort(new Error('enough'))
      expect(await ends).toMatchObject([{ reason: { message: 'enough' } }, { reason: { message: 'enough' } }])
      expect(asleep()).toBe(0)
    }
    expect(semaphore.tryAcquire()).toBe(null)
  })

  test('time out', async () => {
    const semaphore = new Semaphore(0)
    await expect(semaphore.acquireAsync(1, { timeout: 5 })).rejects.toMatchObject(timeout)
    expect(asleep()).toBe(0)
  })
})

test('a wakeup by another thread that comes before the sleeper calls waitAsync is seen there', async () => {
  const semaphore = new Semaphore(0)
  const word = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(new URL('../../../testing/sync/fixtures/releaser.ts', import.meta.url), {
    workerData: { handle: semaphore.handle, word },
  })
  try {
    const rounds = 20
    for (let round = 1; round <= rounds; round++) {
      const wait = semaphore.acquireAsync()
      Atomics.store(word, 0, round)
      Atomics.notify(word, 0)
      // Odd rounds block this thread until the other one has released: the event loop has not turned yet.
      if (round % 2 === 1) Atomics.wait(word, 0, round, 10_000)
      await wait
    }
    expect(asleep()).toBe(0)
  } finally {
    await worker.terminate()
  }
})
