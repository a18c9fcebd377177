/**
 * In JavaScript only the call itself can report an unknown option or a value of the wrong kind. For each
 * public call with options: an unknown option, a misspelt one, and each option with a wrong value are errors
 * that name it.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { check } from '../src/checker/check.ts'
import { heddleChecker } from '../src/checker/run/vite.ts'
import heddleVite from '../src/compiler/bundlers/vite.ts'
import { Schedule } from '../src/coroutine/index.ts'
import { Kernel, TaskLocal } from '../src/index.ts'
import { setRunDefaults } from '../src/kernel/boot/rundefaults.ts'
import { Piscina } from '../src/piscina/index.ts'
import * as sync from '../src/sync/index.ts'
import * as trace from '../src/trace/index.ts'
import { mountView } from '../src/view/index.ts'
import { heddlePool } from '../src/vitest/index.ts'
import workerpool from '../src/workerpool/index.ts'

let kernel: Kernel
let work: Record<string, any>
beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 1, machine: 'simulated', control: false })
  work = await kernel.import(new URL('../testing/kernel/fixtures/work.ts', import.meta.url))
})
afterAll(() => kernel.close({ abort: true }))

const sink = { track() {}, slice() {}, close() {} } as never
const place = { view: {}, index: -1 }
const named = { name: 1 }
const wait = { timeout: 'soon', signal: 1 }
const object = { ...named, ...place, buffer: 1 }
const plain = (): number => 1
let pool: Piscina | undefined
let workers: ReturnType<typeof workerpool.pool> | undefined
afterAll(async () => {
  await pool?.destroy()
  await workers?.terminate(true)
})

type Call = (options: any) => unknown

/** The call; options with values of the wrong kind; a misspelt option, and the intended one. */
const calls: [string, Call, object, [string, string]][] = [
  [
    'Kernel.boot',
    o => Kernel.boot({ machine: 'simulated', ...o }),
    {
      cpus: 'all',
      slice: 0,
      tasks: 'x',
      queue: -1,
      heap: 'big',
      futexes: 'x',
      grace: 'x',
      watchdog: 1,
      resourceLimits: 1,
      execArgv: 'x',
      argv: 'x',
      env: 1,
      trackUnmanagedFds: 1,
      eventLoop: 'x',
      compile: 1,
      machine: 'x',
      seed: 'x',
      skew: 'x',
      events: 'x',
      control: 'x',
      handoff: 'x',
      debug: 'x',
    },
    ['cpu', 'cpus'],
  ],
  [
    'kernel.spawn',
    o => kernel.spawn(work['add'], [1, 2], o),
    {
      name: 1,
      priority: 'x',
      nice: 99,
      slice: 'x',
      roundRobin: 1,
      affinity: 1,
      signal: 1,
      timeout: 'x',
      detached: 'x',
      restartable: 'x',
      transfer: 1,
    },
    ['prority', 'priority'],
  ],
  [
    'kernel.map',
    o => kernel.map(work['add'], [], o),
    { concurrency: 'x', ordered: 'x', onProgress: 1, priority: 'x', nice: 99 },
    ['concurency', 'concurrency'],
  ],
  ['kernel.resize', o => kernel.resize(1, o), { grace: 'x' }, ['grce', 'grace']],
  ['new TaskLocal', o => new TaskLocal(() => 1, o), { name: 1 }, ['nme', 'name']],
  ['kernel.close', o => kernel.close(o), { drain: 'x', deadline: 'x' }, ['dran', 'drain']],
  ['new Schedule', o => new Schedule(o), { slice: 'x', ticks: 'x', onError: 1 }, ['slices', 'slice']],
  [
    'schedule.go',
    o => new Schedule().go(o, plain),
    { name: 1, priority: 'x', suspended: 1 },
    ['nme', 'name'],
  ],
  [
    'schedule.run',
    o => new Schedule().run(o, plain),
    { name: 1, priority: 'x', signal: 1, timeout: 'x', onProgress: 1 },
    ['timeuot', 'timeout'],
  ],
  [
    'new Mutex',
    o => new sync.Mutex(o),
    { ...object, protocol: 'x', robust: 'x', type: 'x' },
    ['robus', 'robust'],
  ],
  ['new RwLock', o => new sync.RwLock(o), object, ['nmae', 'name']],
  ['new Semaphore', o => new sync.Semaphore(1, o), object, ['nmae', 'name']],
  ['new Condition', o => new sync.Condition(o), object, ['nmae', 'name']],
  ['new Barrier', o => new sync.Barrier(1, o), object, ['nmae', 'name']],
  ['new Event', o => new sync.Event(o), { ...object, auto: 'x', set: 1 }, ['autos', 'auto']],
  ['new Once', o => new sync.Once(o), object, ['nmae', 'name']],
  ['new WaitGroup', o => new sync.WaitGroup(1, o), object, ['nmae', 'name']],
  ['new Latch', o => new sync.Latch(1, o), object, ['nmae', 'name']],
  [
    'new Channel',
    o => new sync.Channel(o),
    { ...named, capacity: 'x', latest: 'x', view: {} },
    ['capcity', 'capacity'],
  ],
  [
    'new SeqLock',
    o => new sync.SeqLock(o === null || typeof o !== 'object' ? o : { fields: 1, ...o }),
    { ...place, fields: 'x' },
    ['field', 'fields'],
  ],
  [
    'new SharedQueue',
    o => new sync.SharedQueue(o === null || typeof o !== 'object' ? o : { capacity: 1, ...o }),
    { ...object, capacity: 'x', fields: 'x' },
    ['capacty', 'capacity'],
  ],
  ['new AtomicInt32', o => new sync.AtomicInt32(0, o), object, ['nmae', 'name']],
  ['new AtomicFloat64', o => new sync.AtomicFloat64(o), place, ['indx', 'index']],
  ['new AtomicBigInt64', o => new sync.AtomicBigInt64(o), place, ['indx', 'index']],
  ['debugLocks', o => sync.debugLocks(o), { onProblem: 1, throws: 'x' }, ['throw', 'throws']],
  ['mutex.lockAsync', o => new sync.Mutex().lockAsync(o), wait, ['timeot', 'timeout']],
  ['channel.receiveAsync', o => new sync.Channel().receiveAsync(o), wait, ['timeot', 'timeout']],
  [
    'check',
    o => check('x', o, () => ({ threads: [] })),
    {
      explorer: 'x',
      preemptions: 'x',
      runs: 0,
      steps: 'x',
      executions: 0,
      time: 'x',
      shrink: 'x',
      parallel: 0,
      allowIncomplete: 'x',
      keepGoing: 1,
    },
    ['preemption', 'preemptions'],
  ],
  [
    'check.async',
    o => check.async('x', o, () => ({ tasks: [] }) as never),
    { explorer: 'x', runs: 0, time: 'x', random: [2], starts: 'x', patience: 'x' },
    ['pateince', 'patience'],
  ],
  ['mountView', o => mountView(kernel, {} as never, o), { title: 1 }, ['titel', 'title']],
  ['record', o => trace.record(kernel, sink, o), { whenFull: 'x', interval: 'x' }, ['intervall', 'interval']],
  [
    'openTelemetry',
    o => trace.openTelemetry(kernel, o),
    { tracerProvider: 1, meterProvider: 1 },
    ['tracerProvidr', 'tracerProvider'],
  ],
  ['new PerfettoWriter', o => new trace.PerfettoWriter(() => undefined, o), { pid: 'x' }, ['pdi', 'pid']],
  ['new ChromeWriter', o => new trace.ChromeWriter(() => undefined, o), { pid: 'x' }, ['pdi', 'pid']],
  [
    'new Piscina',
    o => new Piscina(o),
    {
      filename: 1,
      name: 1,
      minThreads: -1,
      maxThreads: 0,
      idleTimeout: 'x',
      maxQueue: -1,
      concurrentTasksPerWorker: 0,
      atomics: 'x',
      resourceLimits: 1,
      taskQueue: 1,
      niceIncrement: -1,
      trackUnmanagedFds: 1,
      closeTimeout: 'x',
      recordTiming: 1,
      stricterFIFO: 1,
      loadBalancer: 1,
      workerHistogram: 1,
      compile: 1,
    },
    ['maxThread', 'maxThreads'],
  ],
  [
    'pool.run',
    o => (pool ??= new Piscina({ minThreads: 0 })).run(1, o),
    { transferList: 1, filename: 1, name: 1, signal: 1 },
    ['nmae', 'name'],
  ],
  [
    'workerpool.pool',
    o => workerpool.pool(o),
    {
      minWorkers: -1,
      maxWorkers: 0,
      maxQueueSize: 'x',
      workerType: 'x',
      workerTerminateTimeout: 'x',
      emitStdStreams: 'x',
      onCreateWorker: 1,
      onTerminateWorker: 1,
      compile: 1,
    },
    ['maxWorker', 'maxWorkers'],
  ],
  [
    'pool.exec',
    o => (workers ??= workerpool.pool()).exec(plain, [], o),
    { on: 1, transfer: 1 },
    ['transfr', 'transfer'],
  ],
  ['heddlePool', o => heddlePool(o), { importTimeout: 'x' }, ['importTimout', 'importTimeout']],
  [
    'heddle() of a bundler',
    o => heddleVite(o),
    { include: 1, exclude: 1, warnings: 'x', runtime: 1, isolate: 'x' },
    ['includes', 'include'],
  ],
  ['heddleChecker', o => heddleChecker(o), { coverage: 'x' }, ['coverge', 'coverage']],
]

async function refusal(call: Call, options: unknown): Promise<Error | undefined> {
  try {
    const given = await call(options)
    await (given as { close?: (o: object) => unknown } | undefined)?.close?.({ abort: true })
  } catch (error) {
    return error as Error
  }
  return undefined
}

test.each(calls)(
  '%s refuses unknown options, and lists the known ones',
  async (_, call, wrong, [misspelt, meant]) => {
    const unknown = await refusal(call, { colour: 1 })
    expect(unknown?.message).toContain('colour')
    expect(unknown?.message).toContain(Object.keys(wrong)[0])
    const near = await refusal(call, { [misspelt]: 1 })
    expect(near?.message).toContain(`${misspelt}`)
    expect(near?.message).toContain(meant)
  },
)

test.each(
  calls.flatMap(([name, call, wrong]) =>
    Object.entries(wrong).map(([option, value]) => [name, option, value, call] as const),
  ),
)('%s refuses %s: %s, and names it', async (_, option, value, call) => {
  const error = await refusal(call, { [option]: value })
  expect(error?.message).toContain(option)
  expect(error?.message).not.toMatch(/undefined|Cannot read|is not a function or its return value/)
})

// A call of the table adds an option, the capacity of a channel is a number, a script of workers a text.
const takesOthers = new Set([
  'Kernel.boot',
  'new SeqLock',
  'new SharedQueue',
  'new Channel',
  'workerpool.pool',
])

test.each(calls.filter(([name]) => !takesOthers.has(name)))(
  '%s refuses options that are not an object',
  async (_, call) => {
    for (const wrong of [5, 'x', ['x'], true]) {
      const error = await refusal(call, wrong)
      expect(error?.message, JSON.stringify(wrong)).toMatch(
        /not an object|must be an object|not a function; give a function and/,
      )
    }
  },
)

test.each([5, 'x', [2], null])('Kernel.boot refuses %j, also under heddle run', async wrong => {
  const says = /^Kernel\.boot\(options\): .* is not an object with options; give \{ cpus, /
  await expect(Kernel.boot(wrong as never)).rejects.toThrow(says)
  setRunDefaults({ options: { machine: 'simulated' } })
  await expect(Kernel.boot(wrong as never)).rejects.toThrow(says)
  Reflect.deleteProperty(globalThis, Symbol.for('heddle.run'))
})

test.each<[string, object, RegExp]>([
  ['a heap limit', { resourceLimits: { maxOldGenerationSizeMb: '64' } }, /: '64' is not a number/],
  ['a misspelt limit', { resourceLimits: { maxOldSpace: 64 } }, /no option 'maxOldSpace'; it takes maxOld/],
  ['CPUs', { cpus: '2' }, /^cpus: '2' is not a number of CPUs/],
])('Kernel.boot names a wrong value of %s', async (_, options, says) => {
  await expect(Kernel.boot(options)).rejects.toThrow(says)
})

test('a wrong argument of spawn is shown as it was written', () => {
  const spawn = (fn: unknown, args: unknown, options?: object): unknown =>
    kernel.spawn(fn as never, args as never, options)
  expect(() => spawn(work['add'], { priority: 'high' })).toThrow(/got \{ priority: 'high' \}$/)
  expect(() => spawn(undefined, [])).toThrow(
    /^spawn\(undefined\): .* from the result of await kernel\.import/,
  )
  expect(() => spawn(work['add'], [Promise.resolve()])).toThrow(/^args\[0\]: a Promise .*; await it, and/)
  expect(() => spawn(work['add'], [], { transfer: [1] })).toThrow(/^transfer\[0\]: 1 is not an object that/)
  expect(() => spawn(work['add'], [], { transfer: [new Uint8Array(1)] })).toThrow(/list its buffer/)
})

test('an import of a wrong path names the file that it may mean', async () => {
  const said = (url: URL | string): Promise<string> =>
    kernel.import(url).then(
      () => 'it was loaded',
      (error: Error) => error.message,
    )
  const at = (path: string): URL => new URL(`../testing/kernel/fixtures/${path}`, import.meta.url)
  expect(await said(at('work.mjs?a=1'))).toMatch(/no such file; did you mean work\.ts\?$/)
  expect(await said(at('nowhere.ts'))).toMatch(/nowhere\.ts: there is no such file; check the path$/)
  expect(await said('jpeg-js')).toMatch(/give import\.meta\.resolve\('jpeg-js'\)$/)
})
