import { createHook } from 'node:async_hooks'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { Lifeline } from './node-lifeline.ts'

/** Starts a thread that holds the far end and computes for ever. */
async function busyThread(): Promise<{ worker: Worker; lifeline: Lifeline }> {
  const { lifeline, far } = Lifeline.make()
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads')
     parentPort.once('message', far => { globalThis.far = far; parentPort.postMessage(0); setImmediate(() => { for (;;); }) })`,
    { eval: true },
  )
  const has = new Promise(resolve => worker.once('message', resolve))
  worker.postMessage(far, [far])
  await has
  return { worker, lifeline }
}

test('testing a thread creates no port, and works without a turn of the event loop, alive or gone', async () => {
  const { worker, lifeline } = await busyThread()
  let ports = 0
  const hook = createHook({ init: (_, type) => void (ports += type === 'MESSAGEPORT' ? 1 : 0) }).enable()
  // The first test creates the channel that all tests use.
  expect(lifeline.cut).toBe(false)
  const before = ports
  for (let look = 0; look < 1000; look++) expect(lifeline.cut).toBe(false)
  expect(ports).toBe(before)
  let exited = false
  worker.once('exit', () => (exited = true))
  const ended = worker.terminate()
  while (!lifeline.cut);
  expect(lifeline.cut).toBe(true)
  expect(exited).toBe(false)
  expect(ports).toBe(before)
  hook.disable()
  await ended
})
