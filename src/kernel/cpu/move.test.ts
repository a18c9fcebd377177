/** Started tasks that move between worker threads. */
import { afterEach, describe, expect, test } from 'vitest'
import { Kernel } from '../boot/kernel.ts'
import { Mutex } from '../../sync/index.ts'
import { SeededRandom } from '../../machine/simulated/random.ts'
import type { KernelOptions } from '../boot/options.ts'
import type * as Work from '../../../testing/kernel/fixtures/handmoved.ts'
import { plainSpin } from '../../../testing/kernel/fixtures/handmoved.ts'

const url = new URL('../../../testing/kernel/fixtures/handmoved.ts', import.meta.url)
const kernels: Kernel[] = []

async function booted(options: KernelOptions): Promise<{ kernel: Kernel; work: any }> {
  const kernel = await Kernel.boot({ control: false, ...options })
  kernels.push(kernel)
  return { kernel, work: await kernel.import<typeof Work>(url) }
}

/** The arena as it is when no task is there: payload blocks and jobs. */
function usage({ internals: { view } }: Kernel): number[] {
  return [view.heap.usedBlocks(), view.jobs.count(view.i32)]
}

afterEach(async () => {
  for (const kernel of kernels.splice(0)) {
    await kernel.close()
    const { view } = kernel.internals
    expect(view.jobs.count(view.i32)).toBe(0)
  }
})

function words(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(256))
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 1))
}

describe.each([{ machine: 'threads' }, { machine: 'simulated', seed: 7 }] as const)('$machine', machine => {
  test('a running task goes to the CPU that its new mask names, and ends with the right result', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 2 })
    const shared = words()
    const task = kernel.spawn(work.nested, [60000, shared, 'mine'], { affinity: [0] })
    await until(() => Atomics.load(shared, 0) > 20)
    expect(task.status.cpu).toBe(0)
    expect(task.setAffinity([1])).toBe(true)
    expect(task.status.affinity).toEqual([1])
    const result: any = await task
    expect(result).toEqual({
      sum: plainSpin(60000),
      log: ['middle', 'inner done', 'outer done'],
      local: 'mine',
      cpu: 1,
    })
    expect(task.status).toMatchObject({ cpu: 1, moves: 1, movedFrom: 0, starts: 1 })
    expect(task.status.stateBytes).toBeGreaterThan(0)
  })

  test('an idle CPU takes one of two tasks that have computed for a while', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 2, slice: 2 })
    const shared = [words(), words()]
    const tasks = shared.map(own => kernel.spawn(work.spin, [20000, own], { affinity: [0] }))
    await until(() => shared.every(own => Atomics.load(own, 0) > 10))
    for (const task of tasks) task.setAffinity([0, 1])
    const sum = plainSpin(20000)
    expect(await Promise.all(tasks)).toEqual([sum, sum])
    expect(tasks[0].status.moves + tasks[1].status.moves).toBeGreaterThan(0)
  })

  test('a killed task is killed where it has moved to', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 2 })
    const shared = words()
    const task = kernel.spawn(work.forever, [shared], { affinity: [0] })
    await until(() => Atomics.load(shared, 1) > 20)
    task.setAffinity([1])
    await until(() => Atomics.load(shared, 2) > 0)
    task.kill('enough')
    await expect(task.join()).rejects.toMatchObject({ name: 'TaskKilledError' })
    expect(Atomics.load(shared, 63)).toBe(1)
    expect(task.status.moves).toBe(1)
  })

  test('a task that holds something that cannot travel moves when it holds it no longer', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 2, slice: 1 })
    const shared = words()
    const task = kernel.spawn(work.holds, [20000, shared], { affinity: [0] })
    await until(() => Atomics.load(shared, 0) > 20)
    task.setAffinity([1])
    await until(() => task.status.moving !== null)
    await until(() => task.status.moving?.waitsFor !== null || task.status.ended !== null)
    if (task.status.moving !== null) expect(task.status.moving.waitsFor).toMatch('WeakMap')
    expect(await task).toBe(true)
    expect(task.status.moves).toBe(1)
  })

  test('a CPU that ends sends its movable tasks away, and comes back', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 2, slice: 2 })
    const shared = [words(), words(), words()]
    const tasks = shared.map(own => kernel.spawn(work.spin, [30000, own]))
    const sleeper = kernel.spawn(work.naps, [1, 300], { affinity: [1] })
    await until(() => shared.every(own => Atomics.load(own, 0) > 10))
    await kernel.resize(1)
    expect(kernel.online).toBe(1)
    const ended = tasks.filter(task => task.status.ended !== null).length
    await kernel.resize(2)
    expect(kernel.online).toBe(2)
    const sum = plainSpin(30000)
    expect(await Promise.all(tasks)).toEqual([sum, sum, sum])
    expect(await sleeper).toEqual([1, expect.any(Number)])
    expect(ended).toBeLessThan(3)
    expect(tasks.reduce((moves, task) => moves + task.status.moves, 0)).toBeGreaterThan(0)
  })

  test('resize refuses a number that the arena has no room for', async () => {
    const { kernel } = await booted({ ...machine, cpus: 1 })
    for (const cpus of [0, 2, 1.5, '1'])
      await expect(kernel.resize(cpus as number)).rejects.toThrow('room for 1 to 1 CPUs')
  })

  test('spawn refuses `movable: true` for a function that cannot move, and says why', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 1 })
    expect(() => kernel.spawn(work.plain, [], { movable: true })).toThrow(
      "begin it, or its module, with 'use task movable'",
    )
    expect(await kernel.spawn(work.spin, [10], { movable: true })).toBe(plainSpin(10))
  })

  test('a task that was spawned with `movable: false` stays', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 2 })
    const shared = words()
    const task = kernel.spawn(work.nested, [2000, shared, 'x'], { affinity: [0], movable: false })
    await until(() => Atomics.load(shared, 0) > 20)
    expect(task.setAffinity([1])).toBe(false)
    expect(((await task) as any).cpu).toBe(0)
  })
})

// In virtual time no test sees a task asleep.
test('a sleeping task is packed, sleeps on, and continues on its new CPU', async () => {
  const { kernel, work } = await booted({ cpus: 2 })
  const task = kernel.spawn(work.naps, [2, 200], { affinity: [0] })
  await until(() => task.status.state === 'sleeping')
  task.setAffinity([1])
  await until(() => task.status.moves === 1)
  expect(await task).toEqual([2, 1])
})

describe('CPUs that die', () => {
  test('worker threads that are terminated while tasks move leave one outcome for each task', async () => {
    const { kernel, work } = await booted({ cpus: 3, slice: 1, watchdog: false })
    const { machine, view } = kernel.internals
    const before = usage(kernel)
    const sum = plainSpin(4000)
    const tasks = Array.from({ length: 12 }, () => kernel.spawn(work.spin, [4000, words()]))
    const outcomes = tasks.map(task =>
      task.join().then(
        value => (value === sum ? 'returned' : 'wrong'),
        (error: Error) => error.name,
      ),
    )
    const random = new SeededRandom(11)
    for (let turn = 0; turn < 60 && kernel.active > 0; turn++) {
      for (let i = 0; i < 4; i++) tasks[random.below(12)].setAffinity([random.below(3)])
      const cpu = random.below(3)
      if (turn % 20 === 10 && view.s.isActive(cpu)) await machine.terminate(cpu)
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    for (const task of tasks) task.setAffinity([0, 1, 2])
    for (const name of await Promise.all(outcomes)) expect(['returned', 'CpuLostError']).toContain(name)
    await until(() => [0, 1, 2].every(cpu => view.s.isActive(cpu)))
    expect(usage(kernel)).toEqual(before)
  })

  test('a task that is packed when its CPU dies goes on; one that runs there is lost', async () => {
    const { kernel, work } = await booted({ machine: 'simulated', seed: 3, cpus: 2 })
    const { machine, view } = kernel.internals
    const before = usage(kernel)
    for (let round = 0; round < 20; round++) {
      const shared = words()
      const task = kernel.spawn(work.nested, [4000, shared, 'l'], { affinity: [0] })
      await until(() => Atomics.load(shared, 0) > 10 + 5 * round)
      task.setAffinity([1])
      await until(() => task.status.moves === 1 || task.status.ended !== null)
      // The old CPU dies: at once, or some steps after the task has left it.
      await machine.terminate(0)
      expect(((await task) as any).sum).toBe(plainSpin(4000))
      await until(() => view.s.isActive(0))
    }
    expect(usage(kernel)).toEqual(before)
  })

  test.each([1, 2, 3, 4, 5, 6])(
    'tasks that move at random while CPUs die have one outcome each, seed %i',
    async seed => {
      const { kernel, work } = await booted({ machine: 'simulated', seed, cpus: 4, slice: 1 })
      const { machine, view } = kernel.internals
      const before = usage(kernel)
      const sum = plainSpin(3000)
      const tasks = Array.from({ length: 24 }, (_, i) =>
        i % 4 === 3 ? kernel.spawn(work.naps, [6, 2]) : kernel.spawn(work.spin, [3000, words()]),
      )
      const outcomes = tasks.map(async (task, i) => {
        try {
          const value = await task
          if (i % 4 === 3) expect((value as any)[0]).toBe(6)
          else expect(value).toBe(sum)
          return 'returned'
        } catch (error) {
          return (error as Error).name
        }
      })
      const random = new SeededRandom(seed)
      for (let turn = 0; turn < 200 && kernel.active > 0; turn++) {
        const task = tasks[random.below(tasks.length)]
        const what = random.below(8)
        if (what < 4) task.setAffinity([random.below(4)])
        else if (what === 4) task.stop()
        else if (what === 5) task.setAffinity([0, 1, 2, 3])
        else if (what === 6) task.setNice(random.below(10))
        else if (random.below(6) === 0) {
          const cpu = random.below(4)
          if (view.s.isActive(cpu)) await machine.terminate(cpu)
        }
        if (random.below(2) === 0) for (const each of tasks) each.resume()
        await new Promise(resolve => setImmediate(resolve))
      }
      for (const task of tasks) task.setAffinity([0, 1, 2, 3])
      for (const task of tasks) task.resume()
      const names = await Promise.all(outcomes)
      for (const name of names) expect(['returned', 'CpuLostError']).toContain(name)
      expect(names).toContain('returned')
      await until(() => [0, 1, 2, 3].every(cpu => view.s.isActive(cpu)))
      expect(usage(kernel)).toEqual(before)
    },
  )
})

describe('compiled functions', () => {
  const compiled = new URL('../../../testing/kernel/fixtures/moved.ts', import.meta.url)
  async function two(options: KernelOptions = {}): Promise<{ kernel: Kernel; its: any }> {
    const { kernel } = await booted({ cpus: 2, slice: 2, ...options })
    return { kernel, its: await kernel.import(compiled) }
  }

  test('objects that two frames share, a cycle and a closure are the same after moves', async () => {
    const { kernel, its } = await two()
    const shared = words()
    const task = kernel.spawn(its.shares, [20000, shared], { affinity: [0], movable: true })
    for (let turn = 1; turn <= 6; turn++) {
      const seen = Atomics.load(shared, 0)
      await until(() => Atomics.load(shared, 0) > seen + 500 || task.status.ended !== null)
      task.setAffinity([turn % 2])
      await until(() => task.status.moves >= turn || task.status.ended !== null)
    }
    const result: any = await task
    expect(result.counts).toEqual([60000, 0, 3])
    expect(task.status.moves).toBeGreaterThan(0)
    const plain: any = await kernel.spawn(its.shares, [20000, shared], { movable: false })
    expect(result.sum).toBe(plain.sum)
  })

  test('an object that the module made when it was loaded is the one of the other CPU after a move', async () => {
    const { kernel, its } = await two({ debug: true })
    const warnings: string[] = []
    const listen = ({ message }: Error): void => void warnings.push(message)
    process.on('warning', listen)
    const shared = words()
    const task = kernel.spawn(its.compares, [shared], { affinity: [0], movable: true })
    await until(() => Atomics.load(shared, 0) > 10)
    for (let turn = 1; turn <= 4; turn++) {
      task.setAffinity([turn % 2])
      await until(() => task.status.cpu === turn % 2)
    }
    Atomics.store(shared, 1, 1)
    const result: any = await task
    expect(result.wrong).toBe(0)
    expect(task.status.moves).toBeGreaterThan(0)
    await until(() => warnings.length > 0)
    process.off('warning', listen)
    expect(warnings.join()).toMatch(
      /moves, and turns of \S*moved\.ts has changed since the module was loaded/,
    )
  })

  test('a task stays while it holds what its module got later', async () => {
    const { kernel, its } = await two()
    const shared = words()
    const task = kernel.spawn(its.queues, [shared], { affinity: [0], movable: true })
    await until(() => Atomics.load(shared, 0) > 10)
    task.setAffinity([1])
    await until(() => task.status.moving?.waitsFor !== undefined && task.status.moving.waitsFor !== null)
    expect(task.status.moving!.waitsFor).toMatch(
      /values\.entry: this object that queue\[0\] of \S*moved\.ts holds/,
    )
    Atomics.store(shared, 1, 1)
    await until(() => task.status.moves > 0 || task.status.ended !== null)
    Atomics.store(shared, 2, 1)
    expect(await task).toEqual({ isThere: true, cpus: [expect.any(Number), 1] })
  })

  test('a lock that is held stays held by the task', async () => {
    const { kernel, its } = await two()
    const shared = words()
    const mutex = new Mutex()
    const holder = kernel.spawn(its.locked, [mutex, 30000, shared], { affinity: [0] })
    await until(() => Atomics.load(shared, 0) > 100)
    const waiter = kernel.spawn(its.after, [mutex, shared], { affinity: [0] })
    holder.setAffinity([1])
    expect(await waiter).toBe(1)
    expect(await holder).toBe(30000)
    expect(holder.status).toMatchObject({ moves: 1, cpu: 1 })
    expect(mutex.locked).toBe(false)
  })

  test('a killed task that moves while it cleans up ends as killed', async () => {
    const { kernel, its } = await two()
    const shared = words()
    const task = kernel.spawn(its.cleans, [shared], { affinity: [0] })
    await until(() => Atomics.load(shared, 0) > 100)
    task.kill('enough')
    await until(() => Atomics.load(shared, 1) > 2)
    task.setAffinity([1])
    await expect(task.join()).rejects.toMatchObject({ name: 'TaskKilledError' })
    expect(Atomics.load(shared, 2)).toBe(2)
    expect(task.status.state).toBe('killed')
  })
})

test('five equal tasks on four CPUs take turns in sharing a CPU, and end together', async () => {
  const { kernel, work } = await booted({ machine: 'simulated', seed: 5, cpus: 4, slice: 1 })
  const tasks = Array.from({ length: 5 }, () => kernel.spawn(work.spin, [20000, null]))
  await Promise.all(tasks)
  const ends = tasks.map(({ status }) => status.ended!)
  const ran = tasks.reduce((sum, { status }) => sum + status.runTime, 0)
  expect(Math.max(...ends)).toBeLessThan(1.12 * (ran / 4))
  expect(Math.min(...ends)).toBeGreaterThan(0.9 * Math.max(...ends))
})
