import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { stopThread } from '../../../testing/machine/fixtures/stopthread.ts'
import { stackOfThread, terminateThread } from './node-stack.ts'

function makeThread(): { readonly worker: Worker; readonly words: Int32Array } {
  const words = new Int32Array(new SharedArrayBuffer(12))
  const worker = new Worker(new URL('../../../testing/machine/fixtures/turningthread.ts', import.meta.url), {
    workerData: words,
  })
  return { worker, words }
}

/** Waits until the thread has made another turn. If it makes none, the test fails by its time limit. */
async function nextTurn(words: Int32Array): Promise<void> {
  const before = Atomics.load(words, 0)
  while (Atomics.load(words, 0) === before) await new Promise(resolve => setTimeout(resolve, 1))
}

test('a thread whose stack came too late is resumed', async () => {
  const { worker, words } = makeThread()
  await nextTurn(words)
  for (let n = 0; n < 3; n++) {
    // Mostly null: the thread has no time to answer.
    await stackOfThread(worker, 0)
    // The thread handles the request sooner or later: the turns before that prove nothing.
    for (let turn = 0; turn < 20; turn++) await nextTurn(words)
  }
  Atomics.store(words, 1, 1)
  expect(await once(worker, 'exit')).toEqual([0])
})

test('concurrent callers each get an answer, and the thread is resumed', async () => {
  const { worker, words } = makeThread()
  await nextTurn(words)
  const stacks = await Promise.all([
    stackOfThread(worker, 60_000),
    stackOfThread(worker, 0),
    stackOfThread(worker, 60_000),
  ])
  expect(stacks[0]?.join('\n')).toContain('turningthread.ts')
  expect(stacks[2]?.join('\n')).toContain('turningthread.ts')
  for (let turn = 0; turn < 20; turn++) await nextTurn(words)
  Atomics.store(words, 1, 1)
  await once(worker, 'exit')
})

test('a thread whose stack was taken dies when its heap is full: no debugger stops it there', async () => {
  const words = new Int32Array(new SharedArrayBuffer(8))
  const code = `
    const { workerData } = require('node:worker_threads')
    const full = []
    for (;;) {
      Atomics.add(workerData, 0, 1)
      if (Atomics.load(workerData, 1) !== 0) full.push(new Array(1e5).fill(full.length))
    }`
  const resourceLimits = { maxOldGenerationSizeMb: 32 }
  const worker = new Worker(code, { eval: true, workerData: words, resourceLimits })
  const died = once(worker, 'error')
  await nextTurn(words)
  expect(Array.isArray(await stackOfThread(worker, 60_000))).toBe(true)
  Atomics.store(words, 1, 1)
  expect(await died.then(([error]) => error as unknown)).toMatchObject({ code: 'ERR_WORKER_OUT_OF_MEMORY' })
})

test('a thread that has ended has no stack', async () => {
  const { worker, words } = makeThread()
  await nextTurn(words)
  await worker.terminate()
  expect(await stackOfThread(worker, 60_000)).toBeNull()
})

test('a thread can be terminated while its stack is requested, without crashing the process', async () => {
  for (let n = 0; n < 6; n++) {
    const { worker, words } = makeThread()
    await nextTurn(words)
    const asked = stackOfThread(worker, 60_000)
    await terminateThread(worker)
    expect(Array.isArray(await asked)).toBe(true)
  }
})

test('threads that another session keeps stopped can be terminated, many at a time', async () => {
  // Node crashes when a thread leaves its list of threads while it walks that list.
  for (let round = 0; round < 2; round++) {
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const { worker, words } = makeThread()
        await nextTurn(words)
        const session = await stopThread(worker)
        await terminateThread(worker)
        expect(worker.threadId).toBe(-1)
        session.disconnect()
      }),
    )
  }
})

test('threads that end, or are terminated, while their stacks are requested harm no session', async () => {
  for (let round = 0; round < 3; round++) {
    await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const { worker, words } = makeThread()
        const gone = once(worker, 'exit')
        await nextTurn(words)
        const asked = stackOfThread(worker, 60_000)
        for (let turn = 0; turn < n; turn++) await new Promise(resolve => setImmediate(resolve))
        // The program ends its threads itself: no session is awaited.
        if (n % 2 === 0) void worker.terminate()
        else Atomics.store(words, 1, 1)
        await asked
        await gone
      }),
    )
  }
})
