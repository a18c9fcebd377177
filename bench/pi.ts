import { Worker } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../src/arena/memory/arena.ts'
import { KernelThread } from '../src/arena/sync/thread.ts'
import { FUTEX_LOCK_PI, FUTEX_UNLOCK_PI } from '../src/futex/operations/call.ts'
import { Futexes } from '../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../src/futex/core/layout.ts'
import { PI, PLAIN } from '../src/futex/robust/mutex.ts'
import { Kernel } from '../src/index.ts'
import { Mutex } from '../src/sync/mutex/mutex.ts'
import { compare, quantile, type Row, timed } from './harness.ts'
import { ACQUIRED, type ContendBoot, contendSizes, GO, READY } from './pi/contend.ts'
import { fx, owner, piPairs, plainPairs, robustPairs, robustPiPairs, view } from './pi/pairs.ts'

const TURNS = 300_000

/**
 * Many short calls, as locks are used. A single call with hundreds of thousands of turns is compiled while it
 * runs, and less well (docs/performance.md).
 */
function pairsOf(loop: (turns: number) => void): number {
  return timed(TURNS, turns => {
    for (let left = turns; left > 0; left -= 2000) loop(2000)
  })
}

/** Words beside those of the mutexes. */
const BARE_WORD = 32
const CALL_WORD = 40

function barePairs(turns: number): void {
  const { tid } = owner
  for (let i = 0; i < turns; i++) {
    Atomics.compareExchange(view, BARE_WORD, 0, tid)
    Atomics.compareExchange(view, BARE_WORD, tid, 0)
  }
}

/** Lock and unlock through the call table, without the fast path. */
function callPairs(turns: number): void {
  const at = { view, index: CALL_WORD }
  for (let i = 0; i < turns; i++) {
    fx.futexSync(at, FUTEX_LOCK_PI, 0)
    fx.futexSync(at, FUTEX_UNLOCK_PI, 0)
  }
}

/** `perf bench futex lock-pi`: threads that only lock and unlock one lock. */
class Contenders {
  private readonly view = new Int32Array(new SharedArrayBuffer(256))
  private readonly workers: Worker[]

  constructor(threads: number, kind: number) {
    const contendPlan = new ArenaPlan()
    const contendLayout = reserveFutexes(contendPlan, contendSizes)
    const contendArena = Arena.create(contendPlan)
    initializeFutexes(contendArena, contendLayout)
    const main = new Futexes(new KernelThread(contendArena, 64), contendLayout, {
      now: () => performance.now(),
    })
    const { handles } = main.map(this.view.buffer)
    this.workers = Array.from({ length: threads }, (_, id) => {
      const workerData: ContendBoot = {
        arena: contendArena.buffer,
        id,
        kind,
        space: main.space.handle,
        buffer: this.view.buffer,
        handles,
      }
      return new Worker(new URL('./pi/contend.ts', import.meta.url), { workerData })
    })
  }

  /** Nanoseconds of the machine's time for each lock. */
  run(ms: number): number {
    const { view: shared, workers } = this
    for (let seen = Atomics.load(shared, READY); seen < workers.length; seen = Atomics.load(shared, READY)) {
      Atomics.wait(shared, READY, seen, 50)
    }
    const before = Atomics.load(shared, ACQUIRED)
    const start = performance.now()
    Atomics.store(shared, GO, 1)
    Atomics.notify(shared, GO)
    Atomics.wait(shared, 63, 0, ms)
    Atomics.store(shared, GO, 0)
    const took = performance.now() - start
    return (took * 1e6) / Math.max(1, (Atomics.load(shared, ACQUIRED) - before) >>> 0)
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }
}

const WANTS = 30
const HOG_MS = 20

/**
 * The waits of a high-priority task for a lock of a low-priority one, while two tasks of ordinary priority
 * keep the CPU busy. Not sorted.
 */
async function waitsOfHighest(kernel: Kernel, protocol: 'inherit' | 'none'): Promise<number[]> {
  const work = await kernel.import<typeof import('./pi/highest.ts')>(
    new URL('./pi/highest.ts', import.meta.url),
  )
  const { handle } = new Mutex({ protocol })
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const others = [
    kernel.spawn(work.holds, [handle, stop], { priority: 'low' }),
    kernel.spawn(work.hogs, [stop, HOG_MS]),
    kernel.spawn(work.hogs, [stop, HOG_MS]),
  ]
  const waits = await kernel.spawn(work.wants, [handle, stop, WANTS], { priority: 'high' })
  await Promise.all(others)
  return waits
}

/** The purpose of inheritance: no inversion. */
async function* highest(): AsyncIterable<Row> {
  await using kernel = await Kernel.boot({ cpus: 1, control: false, watchdog: false })
  const ours: number[][] = []
  const base: number[][] = []
  for (let round = -1; round < 5; round++) {
    const one = await waitsOfHighest(kernel, 'inherit')
    const other = await waitsOfHighest(kernel, 'none')
    if (round < 0) continue
    ours.push(one)
    base.push(other)
  }
  for (const [name, q] of [
    ['p50', 0.5],
    ['p99', 0.99],
    ['max', 1],
  ] as const) {
    const at = (of: readonly number[][]): number[] => of.map(waits => quantile([...waits], q))
    const [mine, theirs] = [at(ours), at(base)]
    const ratios = mine.map((value, round) => theirs[round] / value)
    const short = (value: number): number => Number(value.toPrecision(3))
    yield {
      row: `pi/highest-waits-${name}`,
      value: short(quantile([...mine], 0.5)),
      unit: 'ms',
      against: 'the same without inheritance',
      base: short(quantile([...theirs], 0.5)),
      ratio: short(quantile([...ratios], 0.5)),
      rounds: ours.length,
      spread: [short(quantile([...ratios], 0.25)), short(quantile([...ratios], 0.75))],
    }
  }
}

export async function* rows(): AsyncIterable<Row> {
  yield* highest()
  // All kinds share their code. It is compiled for all of them before one is timed.
  for (let round = 0; round < 3; round++) {
    for (const loop of [plainPairs, piPairs, robustPairs, robustPiPairs]) pairsOf(loop)
  }
  yield await compare({
    row: 'pi/lock-uncontended',
    against: 'plain-mutex',
    ours: () => pairsOf(piPairs),
    base: () => pairsOf(plainPairs),
    target: { most: 1.2 },
  })
  yield await compare({
    row: 'pi/robust-uncontended',
    against: 'plain-mutex',
    ours: () => pairsOf(robustPairs),
    base: () => pairsOf(plainPairs),
    target: { most: 1.3 },
  })
  yield await compare({
    row: 'pi/robust-pi-uncontended',
    against: 'plain-mutex',
    ours: () => pairsOf(robustPiPairs),
    base: () => pairsOf(plainPairs),
  })
  yield await compare({
    row: 'pi/plain-uncontended',
    against: 'bare-compare-exchange-pair',
    ours: () => pairsOf(plainPairs),
    base: () => pairsOf(barePairs),
  })
  yield await compare({
    row: 'pi/lock-unlock-calls',
    against: 'the fast path',
    ours: () => timed(TURNS / 10, callPairs),
    base: () => pairsOf(piPairs),
  })
  const inherits = new Contenders(4, PI)
  const sleeps = new Contenders(4, PLAIN)
  yield await compare({
    row: 'pi/contended-4-threads',
    against: 'plain-mutex',
    ours: () => inherits.run(100),
    base: () => sleeps.run(100),
    target: { most: 5 },
  })
  await inherits.close()
  await sleeps.close()
}
