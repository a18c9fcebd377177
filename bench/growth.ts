import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Arena, ArenaPlan } from '../src/arena/memory/arena.ts'
import { KernelThread } from '../src/arena/sync/thread.ts'
import { Futexes } from '../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../src/futex/core/layout.ts'
import { PI } from '../src/futex/robust/mutex.ts'
import { Kernel, Mutex } from '../src/index.ts'
import { makePriority } from '../src/sched/core/priority.ts'
import { setPriority } from '../src/sched/core/setpriority.ts'
import { UNINTERRUPTIBLE } from '../src/sched/core/taskrecord.ts'
import { LockSimulation } from '../test/futex/pi-sim.ts'
import { median, quantile, type Row } from './harness.ts'
import { Rig } from './sched/rig.ts'
import { Yielders } from './sched/yielders.ts'
import { schedulerSleep } from '../testing/sched/tasks.ts'

/**
 * How cost grows: each series measures one operation at sizes that differ by a factor. The plots are on the
 * report's page.
 */
const ROUNDS = 10

interface Series {
  readonly series: string
  readonly xName: string
  readonly unit: string
}

async function point(series: Series, x: number, measure: () => number | Promise<number>): Promise<Row> {
  await measure()
  const values: number[] = []
  for (let round = 0; round < ROUNDS; round++) values.push(await measure())
  const short = (value: number): number => Number(value.toPrecision(3))
  return {
    row: `${series.series}-${x}`,
    ...series,
    x,
    value: short(median(values)),
    rounds: ROUNDS,
    spread: [short(quantile(values, 0.25)), short(quantile(values, 0.75))],
  }
}

export async function* rows(): AsyncGenerator<Row> {
  yield* tasks()
  yield* waiters()
  yield* cpus()
  yield* locksHeld()
  yield* chainDepth()
  yield* payloadSize()
  yield* manyTasks()
}

/** A yield from one task to the next, among this many tasks. */
async function* tasks(): AsyncGenerator<Row> {
  const series = { series: 'growth/yield', xName: 'runnable tasks', unit: 'ns' }
  for (const count of [10, 100, 1000, 10_000, 100_000, 1_000_000]) {
    const yielders = new Yielders(new Rig(count), count)
    yield await point(series, count, () => yielders.measure(Math.max(100_000, count)))
  }
}

/** The cost for each waiter to wake all waiters of one futex. */
async function* waiters(): AsyncGenerator<Row> {
  const series = { series: 'growth/wake', xName: 'waiters at one futex', unit: 'ns a waiter' }
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, { waiters: 20_000 })
  const arena = Arena.create(plan)
  initializeFutexes(arena, layout)
  const futexes = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
  const view = new Int32Array(new SharedArrayBuffer(64))
  futexes.map(view.buffer)
  const word = futexes.word(view, 0)
  for (const count of [1, 10, 100, 1000, 10_000]) {
    yield await point(series, count, async () => {
      const waiting = Array.from({ length: count }, () => futexes.waitAsync(word, 0))
      const start = performance.now()
      futexes.wake(word, count)
      const spent = performance.now() - start
      await Promise.all(waiting)
      return (spent * 1e6) / count
    })
  }
}

/** A batch of trivial tasks on this many CPUs. More CPUs than cores must neither help nor hurt much. */
async function* cpus(): AsyncGenerator<Row> {
  const series = { series: 'growth/spawn-on-cpus', xName: 'CPUs', unit: 'µs a task' }
  const batch = 2000
  for (const count of [1, 2, 4, 8]) {
    await using kernel = await Kernel.boot({ cpus: count, control: false })
    const work = await kernel.import<typeof import('./kernel/work.ts')>(
      new URL('./kernel/work.ts', import.meta.url),
    )
    const spawnBatch = async (): Promise<number> => {
      const start = performance.now()
      await Promise.all(Array.from({ length: batch }, (_, n) => kernel.spawn(work.add, [n, 1])))
      return ((performance.now() - start) * 1e3) / batch
    }
    for (let warmUp = 0; warmUp < 10; warmUp++) await spawnBatch()
    yield await point(series, count, spawnBatch)
  }
}

/** Lock and unlock one robust lock while this many others are held. */
async function* locksHeld(): AsyncGenerator<Row> {
  const series = { series: 'growth/locks-held', xName: 'robust locks held', unit: 'ns' }
  const turns = 20_000
  for (const count of [1, 10, 100, 1000]) {
    const held = Array.from({ length: count }, () => new Mutex({ robust: true }))
    const tokens = held.map(mutex => mutex.lockSync())
    const another = new Mutex({ robust: true })
    yield await point(series, count, () => {
      const start = performance.now()
      for (let turn = 0; turn < turns; turn++) another.lockSync().unlock()
      return ((performance.now() - start) * 1e6) / turns
    })
    for (const token of tokens) token.unlock()
  }
}

/** Boost all tasks along a chain, in which each waits for the next one's lock, and undo it. */
async function* chainDepth(): AsyncGenerator<Row> {
  const series = { series: 'growth/boost-chain', xName: 'tasks in the chain', unit: 'ns' }
  const low = makePriority(40, 0)
  const high = makePriority(8, 0)
  for (const depth of [1, 2, 5, 10, 20, 50]) {
    const world = new LockSimulation(PI, depth + 1, { cpus: 1, seed: depth, tasks: 128, debug: false })
    const links: number[] = []
    for (let at = 0; at <= depth; at++) {
      links.push(
        world.fork(
          function* (task) {
            yield* task.lock(at)
            if (at > 0) yield* task.lock(at - 1)
            for (;;) yield* schedulerSleep(task.context, 0, UNINTERRUPTIBLE, 1e6)
          },
          { priority: low },
        ),
      )
      world.sim.run({ until: world.sim.machine.now() + 1 })
    }
    const last = links[depth]
    const turns = 500
    yield await point(series, depth, () => {
      const start = performance.now()
      for (let turn = 0; turn < turns; turn++) {
        setPriority(world.sim.s, last, high)
        setPriority(world.sim.s, last, low)
      }
      return ((performance.now() - start) * 1e6) / turns
    })
    if (world.priorityOf(links[0]) !== low) throw new Error('growth: the boost was not undone')
  }
}

/** A task with an argument of this many bytes, to the task and back. */
async function* payloadSize(): AsyncGenerator<Row> {
  const series = { series: 'growth/payload', xName: 'bytes', unit: 'µs' }
  await using kernel = await Kernel.boot({ cpus: 1, control: false })
  const work = await kernel.import<typeof import('./kernel/work.ts')>(
    new URL('./kernel/work.ts', import.meta.url),
  )
  for (let warmUp = 0; warmUp < 2000; warmUp++) await kernel.spawn(work.touch, [new Uint8Array(16)])
  for (const bytes of [16, 256, 4096, 65_536, 1_048_576, 16_777_216]) {
    const payload = new Uint8Array(bytes)
    const turns = Math.max(4, Math.min(200, 2 ** 24 / bytes))
    yield await point(series, bytes, async () => {
      const start = performance.now()
      for (let turn = 0; turn < turns; turn++) await kernel.spawn(work.touch, [payload])
      return ((performance.now() - start) * 1e3) / turns
    })
  }
}

const FEW = 10_000

/**
 * One operation while this many tasks sleep, in its own process; `close` is the end of the whole kernel. The
 * ratio is that to the least number of tasks.
 */
async function* manyTasks(): AsyncGenerator<Row> {
  const script = fileURLToPath(new URL('./kernel/many.ts', import.meta.url))
  type Cost = Record<'spawn' | 'kill' | 'wake' | 'watchdog' | 'close', number>
  const costs = new Map<number, Cost>()
  for (const count of [FEW, 100_000, 1_000_000]) {
    const output = execFileSync(process.execPath, [script, String(count)], { encoding: 'utf8' })
    costs.set(count, JSON.parse(output) as Cost)
  }
  const few = costs.get(FEW) as Cost
  for (const what of Object.keys(few) as (keyof Cost)[]) {
    for (const [x, cost] of costs) {
      const value = Number(cost[what].toPrecision(3))
      const ratio = Number((cost[what] / few[what]).toPrecision(3))
      yield {
        row: `growth/many-${what}-${x}`,
        series: `growth/many-${what}`,
        xName: 'sleeping tasks',
        x,
        value,
        unit: 'µs',
        against: `${FEW.toLocaleString('en')} tasks`,
        base: Number(few[what].toPrecision(3)),
        ratio,
        rounds: 1,
        spread: [ratio, ratio],
      }
    }
  }
}
