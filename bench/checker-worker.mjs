/**
 * Runs the searches of bench/checker.ts on compiled programs. On a request, it replies with the steps and the
 * time, without loading and warm-up.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { instrumentChecks } from '../src/checker/run/loader.ts'

instrumentChecks()
const { Search } = await import('../src/checker/search/search.ts')
const counted = await import('../testing/checker/programs/counted.ts?checked')
const { SpscRing, spscWords } = await import('../src/arena/rings/spsc.ts?checked')
const { spscBodies } = await import('../testing/checker/programs/ring.ts?checked')

/** The arena's ring with three free slots, and ten values that go through it. */
function spsc() {
  const ring = new SpscRing(new Int32Array(new SharedArrayBuffer(4 * spscWords(4))), 0, 4)
  return { threads: spscBodies(ring, 10) }
}

const programs = {
  spsc: { setup: spsc, options: { executions: 15_000 } },
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

/** The lower bound for a step: one resume of a generator. */
function* resumed() {
  for (let step = 0; ; step = (step + 1) | 0) yield step
}

const MS = 400

function search() {
  const started = performance.now()
  let executions = 0
  let steps = 0
  while (performance.now() - started < MS) {
    const result = once()
    executions += result.executions + result.redundant
    steps += result.steps
  }
  return { executions, steps, seconds: (performance.now() - started) / 1000 }
}

function resumes() {
  const generator = resumed()
  const started = performance.now()
  let steps = 0
  while (performance.now() - started < MS / 8) {
    for (let turn = 0; turn < 10_000; turn++) generator.next()
    steps += 10_000
  }
  return { executions: 0, steps, seconds: (performance.now() - started) / 1000 }
}

once()
parentPort?.on('message', what => parentPort?.postMessage(what === 'search' ? search() : resumes()))
