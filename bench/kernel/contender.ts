/**
 * One contender in its own process: heddle, or one of the pools from npm. Messages tell it what to measure.
 * So all of them take turns in one run, and none shares code, heap or threads with another.
 */
import { fileURLToPath } from 'node:url'
import { Kernel } from '../../src/kernel/boot/kernel.ts'

const CPUS = 2
const MEBIBYTE = 1 << 20
const WARM_ROUNDS = 20
const SHORTS = 40
const SHORT_EVERY_MS = 8

type Fn = 'add' | 'touch' | 'hog' | 'when'
interface Contender {
  run(fn: Fn, argument?: unknown): PromiseLike<unknown>
  /** At a higher priority, if the pool has priorities. */
  runFirst(fn: Fn, argument?: unknown): PromiseLike<unknown>
  /** This many tasks, spawned by a task. */
  inside(count: number): PromiseLike<unknown>
}

/** The measurements, each with its value or values. */
export type Question =
  | { readonly what: 'batch' | 'single' | 'inside' | 'shared' | 'copied'; readonly count: number }
  | { readonly what: 'hogs' | 'hogs-first'; readonly ms: number }

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

async function start(name: string): Promise<Contender> {
  if (name === 'heddle') return await startHeddle()
  const run = await startPool(name)
  return { run, runFirst: run, inside: () => Promise.reject(new Error(`${name} has no tasks that spawn`)) }
}

async function startHeddle(): Promise<Contender> {
  const kernel = await Kernel.boot({ cpus: CPUS })
  const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
  const first = { priority: 'high' } as const
  return {
    run(fn, argument) {
      switch (fn) {
        case 'add': {
          const { a, b } = argument as { a: number; b: number }
          return kernel.spawn(work.add, [a, b])
        }
        case 'touch':
          return kernel.spawn(work.touch, [argument as Uint8Array])
        case 'hog':
          return kernel.spawn(work.hog, [argument as number])
        default:
          return kernel.spawn(work.when)
      }
    },
    runFirst: () => kernel.spawn(work.when, [], first),
    inside: count => kernel.spawn(work.spawner, [count]),
  }
}

/** A pool of as many threads as heddle has CPUs. */
async function startPool(name: string): Promise<Contender['run']> {
  switch (name) {
    case 'piscina': {
      const { Piscina } = await import('piscina')
      const pool = new Piscina({ filename: file('./work.mjs'), minThreads: CPUS, maxThreads: CPUS })
      return (fn, argument) => pool.run(argument, { name: fn })
    }
    case 'tinypool': {
      const { Tinypool } = await import('tinypool')
      const pool = new Tinypool({ filename: file('./work.mjs'), minThreads: CPUS, maxThreads: CPUS })
      return (fn, argument) => pool.run(argument, { name: fn })
    }
    case 'workerpool': {
      const { default: workerpool } = await import('workerpool')
      const options = { minWorkers: CPUS, maxWorkers: CPUS, workerType: 'thread' } as const
      const pool = workerpool.pool(file('./workerpool.mjs'), options)
      return (fn, argument) => pool.exec(fn, [argument])
    }
    case 'poolifier': {
      const { FixedThreadPool } = await import('poolifier')
      const pool = new FixedThreadPool(CPUS, file('./poolifier.mjs'))
      return (fn, argument) => pool.execute(argument as never, fn)
    }
    default:
      throw new RangeError(`no contender is called ${name}`)
  }
}

/** Nanoseconds for each of `count` runs. */
async function timed(count: number, work: () => PromiseLike<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return ((performance.now() - start) * 1e6) / count
}

const shared = new Uint8Array(new SharedArrayBuffer(MEBIBYTE))
const own = new Uint8Array(MEBIBYTE)
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))
const now = (): number => performance.timeOrigin + performance.now()

async function inTurn(count: number, run: (turn: number) => PromiseLike<unknown>): Promise<void> {
  for (let turn = 0; turn < count; turn++) await run(turn)
}

/**
 * Short tasks arrive every few milliseconds, behind twice as many hogs as CPUs; each hog uses this much CPU
 * time. Returns the milliseconds from each spawn to the start of the task.
 */
async function behindHogs(contender: Contender, ms: number, first: boolean): Promise<number[]> {
  const hogs = Array.from({ length: CPUS * 2 }, () => contender.run('hog', ms))
  await pause(50)
  const waits: Promise<number>[] = []
  for (let index = 0; index < SHORTS; index++) {
    const spawned = now()
    const ran = first ? contender.runFirst('when') : contender.run('when')
    waits.push(Promise.resolve(ran).then(at => (at as number) - spawned))
    await pause(SHORT_EVERY_MS)
  }
  const latencies = await Promise.all(waits)
  await Promise.all(hogs)
  return latencies
}

function answer(contender: Contender, question: Question): PromiseLike<number | number[]> {
  switch (question.what) {
    case 'hogs':
      return behindHogs(contender, question.ms, false)
    case 'hogs-first':
      return behindHogs(contender, question.ms, true)
    case 'batch': {
      const { count } = question
      return timed(count, () =>
        Promise.all(Array.from({ length: count }, (_, a) => contender.run('add', { a, b: 1 }))),
      )
    }
    case 'single':
      return timed(question.count, () => inTurn(question.count, a => contender.run('add', { a, b: 1 })))
    case 'inside':
      return timed(question.count, () => contender.inside(question.count))
    default: {
      const array = question.what === 'shared' ? shared : own
      return timed(question.count, () => inTurn(question.count, () => contender.run('touch', array)))
    }
  }
}

if (process.send !== undefined) {
  const contender = await start(process.argv[2])
  // Warm-up: code is slow on its first run.
  for (let round = 0; round < WARM_ROUNDS; round++) await answer(contender, { what: 'batch', count: 5_000 })
  await answer(contender, { what: 'single', count: 5_000 })
  process.on('message', async (question: Question) => {
    process.send?.(await answer(contender, question))
  })
  process.on('disconnect', () => process.exit())
  process.send('ready')
}
