/** Started tasks that move between CPUs. */
import { Kernel } from '../src/kernel/boot/kernel.ts'
import type { Task } from '../src/kernel/join/task.ts'
import { compare, measure, type Row } from './harness.ts'

type Work = typeof import('./move/work.ts')
const url = new URL('./move/work.ts', import.meta.url)

const HOPS = 400
const MEGABYTE = 1 << 20

export async function* rows(): AsyncIterable<Row> {
  yield* hopRows()
  yield* makespanRows()
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
