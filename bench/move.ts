/** Started tasks that move between CPUs. */
import { Kernel } from '../src/kernel/boot/kernel.ts'
import type { Task } from '../src/kernel/join/task.ts'
import type { Spawnable } from '../src/kernel/spawn/modules.ts'
import { Mutex } from '../src/sync/index.ts'
import { compare, comparedRow, measure, quantile, type Row } from './harness.ts'
import { type Contest, COUNT, LONGEST, SAMPLES, WAITS } from './move/locked.ts'

type Work = typeof import('./move/work.ts')
type Locked = typeof import('./move/locked.ts')
const url = new URL('./move/work.ts', import.meta.url)

const HOPS = 400
const MEGABYTE = 1 << 20
/** Some seconds of computing, and its state. */
const LONG_ROUNDS = 100_000
const LONG_BYTES = 100_000

export async function* rows(): AsyncIterable<Row> {
  yield* hopRows()
  yield* makespanRows()
  yield* checkpointRows()
  yield* handoffRows()
}

/** A long computation with a checkpoint every second, against the same without: CPU time of its thread. */
async function* checkpointRows(): AsyncIterable<Row> {
  const kernel = await Kernel.boot({ cpus: 1, control: false, watchdog: false })
  const work = await kernel.import<Work>(url)
  let taken = 0
  const run = async (checkpoint: number): Promise<number> => {
    const options = { movable: true, ...(checkpoint > 0 && { checkpoint }) }
    const task = kernel.spawn(work.long, [LONG_ROUNDS, LONG_BYTES], options)
    const time = (await task) as number
    if (task.status.checkpoint !== null) taken++
    return time
  }
  yield await compare({
    row: 'move/checkpoint',
    against: 'the same computation without checkpoints',
    ours: () => run(1000),
    base: () => run(0),
    rounds: 6,
    target: { most: 1.02 },
  })
  await kernel.close()
  if (taken === 0) throw new Error('move/checkpoint: no checkpoint was written; the computation is too short')
}

/** One task that hops between two CPUs, each time with its whole state. */
async function* hopRows(): AsyncIterable<Row> {
  const kernel = await Kernel.boot({ cpus: 2, control: false, watchdog: false })
  const work = await kernel.import<Work>(url)
  const hop = async (times: number, bytes: number, isShared: boolean): Promise<number> =>
    ((await kernel.spawn(work.hops, [times, bytes, isShared])) as number) * 1e6
  yield await compare({
    row: 'move/small',
    against: 'a spawn and its result',
    ours: () => hop(HOPS, 0, false),
    base: () => spawns(kernel, work.nothing),
    target: { most: 3 },
  })
  yield await compare({
    row: 'move/large',
    against: 'two copies of its megabyte, the second to new memory',
    ours: () => hop(HOPS / 4, MEGABYTE, false),
    base: () => twoCopies(true),
    target: { most: 1.5 },
  })
  yield await compare({
    row: 'move/large-warm',
    against: 'two copies of its megabyte in the cache',
    ours: () => hop(HOPS / 4, MEGABYTE, false),
    base: () => twoCopies(false),
  })
  yield await compare({
    row: 'move/large-shared',
    against: 'a task without it',
    ours: () => hop(HOPS, MEGABYTE, true),
    base: () => hop(HOPS, 0, false),
  })
  await kernel.close()
}

async function spawns(kernel: Kernel, nothing: any): Promise<number> {
  const begun = performance.now()
  for (let i = 0; i < HOPS; i++) await kernel.spawn(nothing)
  return ((performance.now() - begun) / HOPS) * 1e6
}

/** From one buffer to shared memory and on to a third: a new one, as a move needs it, or one in the cache. */
const buffers = Array.from({ length: 2 }, () => new Uint8Array(MEGABYTE).fill(1))
const shared = new Uint8Array(new SharedArrayBuffer(MEGABYTE)).fill(1)
function twoCopies(toNewMemory: boolean): number {
  const times = 100
  const begun = performance.now()
  for (let i = 0; i < times; i++) {
    shared.set(buffers[0])
    const target = toNewMemory ? new Uint8Array(MEGABYTE) : buffers[1]
    target.set(shared)
  }
  return ((performance.now() - begun) / times) * 1e6
}

/**
 * Equal tasks on fewer CPUs: from the start of the first to the end of the last, against the sum of their
 * times on CPUs, divided by the CPUs. On simulated CPUs, because a machine may have fewer cores; and on
 * threads.
 */
async function* makespanRows(): AsyncIterable<Row> {
  for (const [tasks, cpus] of [
    [3, 2],
    [5, 4],
    [9, 4],
  ]) {
    for (const movable of [true, false]) {
      const name = `move/makespan-${tasks}-on-${cpus}${movable ? '' : '-pinned'}`
      const span = (): Promise<number> =>
        makespan({ machine: 'simulated', seed: tasks }, tasks, cpus, 60_000, 0, movable)
      yield await measure(name, 'of a perfect division', span, {
        rounds: 1,
        ...(movable && { target: { valueMost: 1.1 } }),
      })
    }
  }
  for (const movable of [true, false]) {
    const span = (): Promise<number> => makespan({ machine: 'threads' }, 3, 2, 200_000, 4000, movable)
    const name = `move/makespan-3-on-2-threads${movable ? '' : '-pinned'}`
    yield await measure(name, 'of a perfect division', span, {
      rounds: 5,
      ...(movable && { target: { valueMost: 1.1 } }),
    })
  }
}

async function makespan(
  machine: { readonly machine: 'threads' | 'simulated'; readonly seed?: number },
  count: number,
  cpus: number,
  rounds: number,
  inner: number,
  movable: boolean,
): Promise<number> {
  const kernel = await Kernel.boot({ ...machine, cpus, slice: 1, control: false, watchdog: false })
  const work = await kernel.import<Work>(url)
  const tasks: Task[] = Array.from({ length: count }, () =>
    kernel.spawn(work.spin, [rounds, inner], { movable }),
  )
  await Promise.all(tasks)
  const statuses = tasks.map(({ status }) => status)
  await kernel.close()
  const start = Math.min(...statuses.map(({ started }) => started!))
  const end = Math.max(...statuses.map(({ ended }) => ended!))
  const ran = statuses.reduce((sum, { runTime }) => sum + runTime, 0)
  return (end - start) / (ran / cpus)
}

/** How tasks wait for one lock: three ways, measured in turns. */
const ways = {
  follows: { protocol: 'handoff', movable: true },
  stays: { protocol: 'handoff', movable: false },
  plain: { protocol: 'none', movable: true },
} as const
type Way = keyof typeof ways

interface Contended {
  /** Locks a second, over all tasks. */
  readonly rate: number
  /** Microseconds. */
  readonly p99: number
  readonly longest: number
  readonly jain: number
  readonly moves: number
}

const CONTEST_MS = 200
const CONTEST_ROUNDS = Number(process.env.HEDDLE_ROUNDS ?? 8)

/**
 * Eight tasks on two workers contend for one lock with sections of some tens of microseconds: hand-off with
 * waiters that follow the holder, against the plain mutex and against hand-off with waiters that stay. In
 * `long` nearly all work is inside the lock; in `apart` half of it is outside.
 */
async function* handoffRows(): AsyncIterable<Row> {
  for (const [shape, inside, apart] of [
    ['long', 40_000, 4000],
    ['apart', 40_000, 40_000],
  ] as const) {
    const kernel = await Kernel.boot({ cpus: 2, control: false, watchdog: false })
    const locked = await kernel.import<Locked>(new URL('./move/locked.ts', import.meta.url))
    const measured: Record<Way, Contended[]> = { follows: [], stays: [], plain: [] }
    const names = Object.keys(ways) as Way[]
    for (let round = -1; round < CONTEST_ROUNDS; round++) {
      for (let turn = 0; turn < names.length; turn++) {
        const way = names[(turn + round + 1) % names.length]
        const one = await contest(kernel, locked.contend, way, inside, apart)
        if (round >= 0) measured[way].push(one)
      }
    }
    await kernel.close()
    yield* contendedRows(`move/handoff-${shape}`, measured)
  }
}

async function contest(
  kernel: Kernel,
  contend: Spawnable<[contest: Contest], number>,
  way: Way,
  inside: number,
  apart: number,
): Promise<Contended> {
  const { protocol, movable } = ways[way]
  const policy = protocol === 'handoff' ? await kernel.loadPolicy('handoff') : null
  const mutex = new Mutex({ protocol })
  const words = new Int32Array(new SharedArrayBuffer(128))
  const all = Array.from({ length: 8 }, () => new Float64Array(new SharedArrayBuffer(8 * (WAITS + SAMPLES))))
  const begun = performance.now()
  const tasks = all.map(measured =>
    kernel.spawn(contend, [{ mutex, words, ms: CONTEST_MS, inside, apart, measured }], {
      movable,
      timeout: 20_000,
    }),
  )
  await Promise.all(tasks)
  const seconds = (performance.now() - begun) / 1000
  await policy?.unload()
  const counts = all.map(measured => measured[COUNT])
  const sum = counts.reduce((total, count) => total + count, 0)
  const squares = counts.reduce((total, count) => total + count * count, 0)
  const waits = all.flatMap(measured => [
    ...measured.subarray(WAITS, WAITS + Math.min(SAMPLES, measured[COUNT])),
  ])
  return {
    rate: sum / seconds,
    p99: quantile(waits, 0.99),
    longest: Math.max(...all.map(measured => measured[LONGEST])),
    jain: (sum * sum) / (counts.length * squares),
    moves: tasks.reduce((moves, { status }) => moves + status.moves, 0) / seconds,
  }
}

function* contendedRows(name: string, { follows, stays, plain }: Record<Way, Contended[]>): Iterable<Row> {
  const units = { rate: 'locks/s', p99: 'µs', longest: 'µs', jain: 'of 1' } as const
  for (const [suffix, base, against] of [
    ['', plain, 'the plain mutex'],
    ['-stay', stays, 'hand-off whose waiters stay'],
  ] as const) {
    for (const [figure, unit] of Object.entries(units) as [keyof typeof units, string][]) {
      const values = follows.map(one => one[figure])
      const bases = base.map(one => one[figure])
      const ratios = values.map((value, round) => value / bases[round])
      const row = `${name}${suffix}${figure === 'rate' ? '' : `-${figure}`}`
      yield comparedRow({ row, unit, against, target: undefined, values, bases, ratios })
    }
  }
  const moves = follows.map(one => one.moves)
  const bases = plain.map(one => one.moves)
  const ratios = moves.map((value, round) => value / Math.max(1, bases[round]))
  yield comparedRow({
    row: `${name}-moves`,
    unit: 'moves/s',
    against: 'the plain mutex',
    target: undefined,
    values: moves,
    bases,
    ratios,
  })
}
