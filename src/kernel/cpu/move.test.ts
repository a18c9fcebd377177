/** Started tasks that move between worker threads. */
import { afterEach, describe, expect, test } from 'vitest'
import { Kernel } from '../boot/kernel.ts'
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
