/**
 * Hand-off against the plain futex mutex, the priority-inheriting one, and a spin lock. Measured are an
 * uncontended lock, and tasks that contend for one lock on more workers than cores: throughput, the 99th
 * percentile of the wait, and Jain's index of fairness (1 when all tasks got the lock equally often, 1/n when
 * one task got it always).
 */
import { Arena, ArenaPlan } from '../src/arena/memory/arena.ts'
import { KernelThread } from '../src/arena/sync/thread.ts'
import { Futexes } from '../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../src/futex/core/layout.ts'
import { PLAIN, WordMutex } from '../src/futex/robust/mutex.ts'
import { lockTag } from '../src/futex/core/locktag.ts'
import { Handoff } from '../src/handoff/handoff.ts'
import { reserveHandoff } from '../src/handoff/layout.ts'
import { HandoffMutex } from '../src/handoff/mutex.ts'
import { Kernel } from '../src/index.ts'
import { Mutex } from '../src/sync/mutex/mutex.ts'
import { compare, comparedRow, quantile, type Row, timed } from './harness.ts'
import type { Contest, Outcome } from './handoff/work.ts'

type Work = typeof import('./handoff/work.ts')

const PAIRS = 2_000_000

/**
 * Pairs of lock and unlock on one thread, in nanoseconds each. Written twice, so that each is compiled for
 * its own lock.
 */
function plainPairs(mutex: WordMutex, owner: Futexes['self']): number {
  return timed(PAIRS, turns => {
    for (let turn = 0; turn < turns; turn++) {
      if (mutex.tryLock(owner) !== 0 || mutex.unlock(owner) !== 0) throw new Error('the lock is free')
    }
  })
}

function handoffPairs(mutex: HandoffMutex, owner: Futexes['self']): number {
  return timed(PAIRS, turns => {
    for (let turn = 0; turn < turns; turn++) {
      if (mutex.tryLock(owner) !== 0 || mutex.unlock(owner) !== 0) throw new Error('the lock is free')
    }
  })
}

async function* uncontended(): AsyncIterable<Row> {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, { waiters: 64, mappings: 4, spaces: 1, buckets: 16 })
  const tables = reserveHandoff(plan)
  const arena = Arena.create(plan)
  initializeFutexes(arena, layout)
  const fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
  const mapped = fx.map(new SharedArrayBuffer(1024))
  const plain = new WordMutex(fx, mapped.word(fx.context, 0), PLAIN)
  const handoff = new HandoffMutex(
    new WordMutex(fx, mapped.word(fx.context, 64), PLAIN),
    new Handoff(arena, tables),
    lockTag(1, 64),
  )
  yield await compare({
    row: 'handoff/lock-uncontended',
    against: 'the plain mutex',
    ours: () => handoffPairs(handoff, fx.self),
    base: () => plainPairs(plain, fx.self),
    target: { most: 1.3 },
  })
}

/**
 * The same in a program: `yield* mutex.lock()` and `token.unlock()` in a task, which must first find the
 * calling task.
 */
async function* uncontendedInTask(): AsyncIterable<Row> {
  const kernel = await Kernel.boot({ cpus: 1, control: false, watchdog: false })
  const work = await kernel.import<Work>(new URL('./handoff/work.ts', import.meta.url))
  const plain = new Mutex().handle
  const handoff = new Mutex({ protocol: 'handoff' }).handle
  yield await compare({
    row: 'handoff/mutex-uncontended',
    against: 'the plain Mutex',
    ours: async () => (await kernel.spawn(work.handoffPairs, [handoff, PAIRS / 4])) as number,
    base: async () => (await kernel.spawn(work.plainPairs, [plain, PAIRS / 4])) as number,
    target: { most: 1.5 },
  })
  await kernel.close()
}

const kinds = ['handoff', 'plain', 'pi', 'spin'] as const
type Kind = (typeof kinds)[number]

interface Measured {
  /** Locks a second, over all tasks. */
  readonly rate: number
  readonly p99: number
  readonly jain: number
  /** The worst task: its 99th percentile, and its longest wait. */
  readonly taskP99: number
  readonly taskMax: number
}

/** A kernel; the policy is loaded only while hand-off is measured. */
class Ring {
  private readonly kernel: Kernel
  private policy: Awaited<ReturnType<Kernel['loadPolicy']>> | null = null

  private constructor(kernel: Kernel) {
    this.kernel = kernel
  }

  static async boot(workers: number): Promise<Ring> {
    return new Ring(await Kernel.boot({ cpus: workers, control: false, watchdog: false }))
  }

  private async choose(kind: Kind): Promise<void> {
    if (kind === 'handoff') this.policy ??= await this.kernel.loadPolicy('handoff')
    else {
      await this.policy?.unload()
      this.policy = null
    }
  }

  async measure(kind: Kind, tasks: number, inside: number, apart: number, ms: number): Promise<Measured> {
    await this.choose(kind)
    const { kernel } = this
    const work = await kernel.import<Work>(new URL('./handoff/work.ts', import.meta.url))
    const protocol = kind === 'handoff' ? 'handoff' : kind === 'pi' ? 'inherit' : 'none'
    const words = new Int32Array(new SharedArrayBuffer(128))
    const mutex = kind === 'spin' ? null : new Mutex({ protocol }).handle
    const contest: Contest = { mutex, words, ms, inside, apart }
    const cpus = kernel.cpus
    const begun = performance.now()
    const running = Array.from({ length: tasks }, (_, task) =>
      kernel.spawn(work.contend, [contest], { affinity: [task % cpus], timeout: PATIENCE_MS }),
    )
    const outcomes = (await Promise.all(running)) as Outcome[]
    const seconds = (performance.now() - begun) / 1000
    const counts = outcomes.map(({ count }) => count)
    const sum = counts.reduce((total, count) => total + count, 0)
    const squares = counts.reduce((total, count) => total + count * count, 0)
    return {
      rate: sum / seconds,
      p99: quantile(
        outcomes.flatMap(({ waits }) => waits),
        0.99,
      ),
      jain: (sum * sum) / (tasks * squares),
      taskP99: Math.max(...outcomes.map(({ waits }) => quantile([...waits], 0.99))),
      taskMax: Math.max(...outcomes.map(({ longest }) => longest)),
    }
  }

  async close(): Promise<void> {
    await this.kernel.close()
  }
}

interface Shape {
  readonly name: string
  readonly workers: number
  readonly tasks: number
  readonly inside: number
  readonly apart: number
}

const SHORT = { inside: 100, apart: 100 }
const LONG = { inside: 40_000, apart: 4000 }
/** One lock, a short gap, one cache line touched. */
const FLEXGUARD = { inside: 16, apart: 30 }

const shapes: readonly Shape[] = [
  { name: 'short', workers: 2, tasks: 2, ...SHORT },
  { name: 'short', workers: 2, tasks: 16, ...SHORT },
  { name: 'short', workers: 4, tasks: 16, ...SHORT },
  { name: 'short', workers: 8, tasks: 64, ...SHORT },
  { name: 'long', workers: 2, tasks: 8, ...LONG },
  { name: 'long', workers: 8, tasks: 64, ...LONG },
  { name: 'flexguard', workers: 2, tasks: 8, ...FLEXGUARD },
  { name: 'flexguard', workers: 8, tasks: 64, ...FLEXGUARD },
]

const ROUNDS = Number(process.env.HEDDLE_ROUNDS ?? 10)
const MS = 60
/** A lock whose tasks wait longer than this has failed. */
const PATIENCE_MS = 10_000

/** Every lock in turn, in rotating order, round after round. A lock that fails is left out and reported. */
async function contest(ring: Ring, shape: Shape): Promise<Record<Kind, Measured[]>> {
  const measured: Record<Kind, Measured[]> = { handoff: [], plain: [], pi: [], spin: [] }
  const failed = new Set<Kind>()
  for (let round = -1; round < ROUNDS; round++) {
    for (let turn = 0; turn < kinds.length; turn++) {
      const kind = kinds[(turn + round + 1) % kinds.length]
      if (failed.has(kind)) continue
      try {
        const one = await ring.measure(kind, shape.tasks, shape.inside, shape.apart, MS)
        if (round >= 0) measured[kind].push(one)
      } catch (error) {
        failed.add(kind)
        measured[kind].length = 0
        console.error(`handoff: ${names[kind]} is left out: ${String(error)}`)
      }
    }
  }
  return measured
}

/** One figure of hand-off against that of another lock. */
function beside(
  row: string,
  unit: string,
  ours: readonly number[],
  base: readonly number[],
  against: string,
  target?: Row['target'],
): Row {
  const ratios = ours.map((value, round) => value / base[round])
  return comparedRow({ row, unit, against, target, values: ours, bases: base, ratios })
}

const names: Readonly<Record<Kind, string>> = {
  handoff: 'hand-off',
  plain: 'the plain futex mutex',
  pi: 'the PI mutex',
  spin: 'a spin lock',
}

function* rowsOf(name: string, measured: Record<Kind, Measured[]>, headline: boolean): Iterable<Row> {
  const { handoff } = measured
  for (const kind of ['plain', 'pi', 'spin'] as const) {
    const base = measured[kind]
    if (base.length === 0) continue
    const rate = (of: readonly Measured[]): number[] => of.map(one => one.rate)
    const target = headline && kind === 'plain' ? { least: 1.5 } : undefined
    const row = headline && kind === 'plain' ? 'handoff/contended-short' : `handoff/${name}-${kind}`
    yield beside(row, 'locks/s', rate(handoff), rate(base), names[kind], target)
    const p99 = (of: readonly Measured[]): number[] => of.map(one => one.p99)
    yield beside(`${row}-p99`, 'µs', p99(handoff), p99(base), names[kind])
    const jain = (of: readonly Measured[]): number[] => of.map(one => one.jain)
    yield beside(`${row}-jain`, 'of 1', jain(handoff), jain(base), names[kind])
    const taskP99 = (of: readonly Measured[]): number[] => of.map(one => one.taskP99)
    yield beside(`${row}-task-p99`, 'µs', taskP99(handoff), taskP99(base), names[kind])
    const taskMax = (of: readonly Measured[]): number[] => of.map(one => one.taskMax)
    yield beside(`${row}-task-max`, 'µs', taskMax(handoff), taskMax(base), names[kind])
  }
}

export async function* rows(): AsyncIterable<Row> {
  yield* uncontended()
  yield* uncontendedInTask()
  for (const workers of [2, 4, 8]) {
    const ring = await Ring.boot(workers)
    for (const shape of shapes) {
      if (shape.workers !== workers) continue
      const measured = await contest(ring, shape)
      const headline = shape.name === 'short' && shape.workers === 4
      yield* rowsOf(`${shape.name}-${workers}w${shape.tasks}t`, measured, headline)
    }
    await ring.close()
  }
}
