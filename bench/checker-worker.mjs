/** One search for bench/checker.ts, on compiled programs; tells what it did in how long, without loading and warming up. */
import { parentPort, workerData } from 'node:worker_threads'
import { instrumentChecks } from '../src/checker/loader.ts'

instrumentChecks()
const { Search } = await import('../src/checker/search.ts')
const counted = await import('../src/checker/programs/counted.ts?checked')
const { SpscRing, spscWords } = await import('../src/arena/spsc.ts?checked')
const { spscBodies } = await import('../src/checker/programs/ring.ts?checked')

/** The arena's ring with room for three values, and ten that go through it. */
function spsc() {
  const ring = new SpscRing(new Int32Array(new SharedArrayBuffer(4 * spscWords(4))), 0, 4)
  return { threads: spscBodies(ring, 10) }
}

const programs = {
  spsc: { setup: spsc, options: { executions: 60_000 } },
  fibonacci: { setup: () => counted.fibonacci(4), options: {} },
  lastzero: { setup: () => counted.lastzero(10), options: {} },
  locked: { setup: () => counted.locked(6), options: {} },
}

const { setup, options } = programs[workerData]

function once() {
  const search = new Search(workerData, options, setup)
  search.run()
  return search.result
}

once()
const started = performance.now()
let executions = 0
let steps = 0
while (performance.now() - started < 1500) {
  const result = once()
  executions += result.executions + result.redundant
  steps += result.steps
}
parentPort?.postMessage({ executions, steps, seconds: (performance.now() - started) / 1000 })
