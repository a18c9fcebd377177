/** Tasks whose state is written down: checkpoints, and tasks that leave the kernel as bytes. */
import { afterEach, describe, expect, test } from 'vitest'
import { Kernel } from '../boot/kernel.ts'
import type { KernelOptions } from '../boot/options.ts'
import type * as Work from '../../../testing/kernel/fixtures/handmoved.ts'
import { plainSpin } from '../../../testing/kernel/fixtures/handmoved.ts'

const url = new URL('../../../testing/kernel/fixtures/handmoved.ts', import.meta.url)
const changed = new URL('../../../testing/kernel/fixtures/handchanged.ts', import.meta.url)
const kernels: Kernel[] = []

async function booted(options: KernelOptions, module: URL = url): Promise<{ kernel: Kernel; work: any }> {
  const kernel = await Kernel.boot({ control: false, ...options })
  kernels.push(kernel)
  return { kernel, work: await kernel.import<typeof Work>(module) }
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

const ROUNDS = 60_000

describe('when its CPU dies', () => {
  test('a task goes on from the checkpoint that was asked for', async () => {
    const { kernel, work } = await booted({ cpus: 1 })
    const shared = words()
    const task = kernel.spawn(work.nested, [ROUNDS, shared, 'mine'])
    await until(() => Atomics.load(shared, 0) > 1000)
    await task.checkpoint()
    const before = Atomics.load(shared, 0)
    await kernel.internals.machine.terminate(0)
    expect(await task).toMatchObject({ sum: plainSpin(ROUNDS), local: 'mine' })
    // What it did after the checkpoint, it did again; what it did before, it did once.
    expect(Atomics.load(shared, 0)).toBeGreaterThanOrEqual(ROUNDS)
    expect(Atomics.load(shared, 0)).toBeLessThan(2 * ROUNDS - before + 1000)
    expect(task.status.starts).toBe(1)
  })

  test('its neighbour without a checkpoint is lost', async () => {
    const { kernel, work } = await booted({ cpus: 1, slice: 1 })
    const shared = [words(), words()]
    const kept = kernel.spawn(work.spin, [20_000, shared[0]], { checkpoint: 2 })
    const lost = kernel.spawn(work.spin, [20_000, shared[1]])
    await until(() => shared.every(own => Atomics.load(own, 0) > 100) && kept.status.checkpoint !== null)
    await kernel.internals.machine.terminate(0)
    await expect(lost.join()).rejects.toMatchObject({ code: 'ERR_HEDDLE_CPU_LOST' })
    expect(await kept).toBe(plainSpin(20_000))
  })
})

describe.each([{ machine: 'threads' }, { machine: 'simulated', seed: 7 }] as const)('$machine', machine => {
  test('a task leaves the kernel as bytes, and goes on in another', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 1 })
    const task = kernel.spawn(work.spin, [ROUNDS], { priority: 'low', nice: 3, name: 'mine' })
    await until(() => task.status.state === 'running' || task.status.started !== null)
    const image = await task.suspendToBytes()
    await expect(task.join()).rejects.toMatchObject({ code: 'ERR_HEDDLE_TASK_SUSPENDED' })
    expect(task.status.state).toBe('suspended')
    const other = await booted({ ...machine, cpus: 2 })
    const resumed = other.kernel.resume(image)
    expect(resumed.status).toMatchObject({ name: 'mine', priority: 'low', nice: 3 })
    expect(await resumed).toBe(plainSpin(ROUNDS))
    // The image is data: it can be resumed again.
    expect(await kernel.resume(image)).toBe(plainSpin(ROUNDS))
  })

  test('the state of a task that goes on is copied as bytes', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 1 })
    const task = kernel.spawn(work.spin, [20_000])
    await until(() => task.status.started !== null)
    const images = [await task.copyToBytes(), await task.copyToBytes()]
    expect(await task).toBe(plainSpin(20_000))
    for (const image of images) expect(await kernel.resume(image)).toBe(plainSpin(20_000))
  })

  test('a value that cannot travel refuses, with its path, and the task goes on', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 1, slice: 1 })
    const shared = words()
    const task = kernel.spawn(work.spin, [20_000, shared])
    await until(() => Atomics.load(shared, 0) > 10)
    await expect(task.suspendToBytes()).rejects.toThrow(
      /suspendToBytes: task spin goes on where it is: .*frames/,
    )
    expect(await task).toBe(plainSpin(20_000))
    await expect(task.checkpoint()).rejects.toMatchObject({ code: 'ERR_HEDDLE_TASK_ENDED' })
  })

  test('a task that is suspended and ends first is told so', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 1 })
    const task = kernel.spawn(work.plainSpin, [1])
    await expect(task.suspendToBytes()).rejects.toMatchObject({ code: 'ERR_HEDDLE_TASK_ENDED' })
    expect(await task).toBe(plainSpin(1))
  })

  test('a task whose code has changed fails, restarts, or is migrated', async () => {
    const { kernel, work } = await booted({ ...machine, cpus: 1 })
    const task = kernel.spawn(work.spin, [ROUNDS], { restartable: true })
    await until(() => task.status.started !== null)
    const image = await task.suspendToBytes()
    // On a simulated machine one thread has both versions of the module.
    if (machine.machine === 'simulated') return
    const other = await booted({ ...machine, cpus: 1 }, changed)
    await expect(other.kernel.resume(image).join()).rejects.toMatchObject({
      code: 'ERR_HEDDLE_CODE_CHANGED',
      message: expect.stringMatching(/spin/),
    })
    const migrated = other.kernel.resume(image, {
      onCodeChanged: (bytes, error) => [bytes.length, error.function],
    })
    expect(await migrated).toEqual([image.length, 'spin'])
  })
})

test('bytes that are no whole image are refused', async () => {
  const { kernel, work } = await booted({ cpus: 1 })
  const task = kernel.spawn(work.spin, [ROUNDS])
  await until(() => task.status.started !== null)
  const image = await task.suspendToBytes()
  expect(() => kernel.resume('x' as never)).toThrow(/resume\(image\): string is no image/)
  expect(() => kernel.resume(new Uint8Array(3))).toThrow(/no suspended task/)
  expect(() => kernel.resume(image.subarray(0, 20))).toThrow(/part of the image|damaged/)
  expect(() => kernel.resume(image, { prio: 1 } as never)).toThrow(/prio/)
  expect(() => kernel.resume(image, { onCodeChanged: 'restart' })).toThrow(/restartable/)
  for (let at = 60; at < image.length; at += 41) {
    const tampered = image.slice()
    tampered[at] ^= 0x5a
    let end: unknown
    try {
      end = await kernel.resume(tampered, { timeout: 20_000 }).catch((error: unknown) => error)
    } catch (error) {
      end = error
    }
    expect(end).toSatisfy((value: any) => value instanceof Error || value === plainSpin(ROUNDS), `byte ${at}`)
  }
  expect(await kernel.resume(image)).toBe(plainSpin(ROUNDS))
})

test('checkpoint: takes milliseconds, and a function that can move', async () => {
  const { kernel, work } = await booted({ cpus: 1 })
  expect(() => kernel.spawn(work.spin, [1], { checkpoint: 0 })).toThrow(/checkpoint: 0 is not an interval/)
  expect(() => kernel.spawn(work.spin, [1], { checkpoint: 5, movable: false })).toThrow(/movable: false/)
  expect(() => kernel.spawn(work.plainSpin, [1], { checkpoint: 5 })).toThrow(/movable/)
})
