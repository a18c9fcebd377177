/** Tasks whose state is written down: checkpoints, and tasks that leave the kernel as bytes. */
import { afterEach, describe, expect, test } from 'vitest'
import { Mutex, RwLock, Semaphore } from '../../sync/index.ts'
import { Kernel } from '../boot/kernel.ts'
import type { KernelOptions } from '../boot/options.ts'
import { checksum } from '../../../testing/durable/images.ts'
import { JobImages } from '../spawn/job.ts'
import { readSuspended } from './suspendedtask.ts'
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

  test('a task with an interval goes on, as often as its CPU dies', async () => {
    const { kernel, work } = await booted({ cpus: 2 })
    const shared = words()
    const task = kernel.spawn(work.untilTold, [shared], { checkpoint: 5 })
    for (let death = 0; death < 3; death++) {
      const seen = Atomics.load(shared, 0)
      const last = task.status.checkpoint ?? 0
      await until(() => Atomics.load(shared, 0) > seen && (task.status.checkpoint ?? 0) > last)
      await until(() => task.status.cpu !== null)
      await kernel.internals.machine.terminate(task.status.cpu!)
    }
    Atomics.store(shared, 63, 1)
    const [rounds, sum] = (await task) as [number, number]
    expect(sum).toBe(plainSpin(rounds))
    expect(task.status.state).toBe('returned')
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

describe('a task that was asked for its state while it sleeps', () => {
  test('is suspended when it wakes, and leaves no timer', async () => {
    const { kernel, work } = await booted({ cpus: 1 })
    const task = kernel.spawn(work.naps, [2, 60])
    await until(() => task.status.state === 'sleeping')
    const image = await task.suspendToBytes()
    const { view } = kernel.internals
    await until(() => view.s.tasks.count(view.i32) === 1)
    expect(view.s.timers[0].count).toBe(0)
    expect(await kernel.resume(image)).toEqual([2, 0])
  })

  test('and is killed then: it ends as killed', async () => {
    const { kernel, work } = await booted({ cpus: 1 })
    const task = kernel.spawn(work.naps, [2, 60_000])
    await until(() => task.status.state === 'sleeping')
    const asked = task.suspendToBytes()
    asked.catch(() => undefined)
    await until(() => task.status.checkpointing !== null)
    task.kill('enough')
    await expect(task.join()).rejects.toMatchObject({ name: 'TaskKilledError' })
    await expect(asked).rejects.toMatchObject({ code: 'ERR_HEDDLE_TASK_ENDED' })
    const { view } = kernel.internals
    await until(() => view.s.tasks.count(view.i32) === 1)
    expect(view.s.timers[0].count).toBe(0)
  })
})

describe('a task that holds a lock without contention has no checkpoint before it unlocks', () => {
  const guarded = new URL('../../../testing/kernel/fixtures/guarded.ts', import.meta.url)
  test.each<[string, string, () => unknown, RegExp]>([
    ['a mutex that no frame has', 'ofModule', () => null, /holds a lock/],
    ['a mutex', 'locking', () => new Mutex(), /holds a lock/],
    ['a mutex that was locked', 'trying', () => new Mutex(), /holds a lock/],
    ['a recursive mutex', 'twice', () => new Mutex({ type: 'recursive' }), /holds a lock/],
    ['a robust mutex', 'locking', () => new Mutex({ robust: true }), /holds a lock/],
    ['a mutex that lends priorities', 'locking', () => new Mutex({ protocol: 'inherit' }), /holds a lock/],
    ['a mutex that is handed over', 'locking', () => new Mutex({ protocol: 'handoff' }), /holds a lock/],
    ['a read lock', 'reading', () => new RwLock(), /holds a read lock/],
    ['a write lock', 'writing', () => new RwLock(), /holds a lock/],
    ['an upgraded lock', 'upgrading', () => new RwLock(), /holds a lock/],
    ['a downgraded lock', 'downgrading', () => new RwLock(), /holds a read lock/],
    ['permits', 'acquiring', () => new Semaphore(2), /permit of a semaphore/],
  ])('%s, %s', async (_, name, make, why) => {
    const { kernel, work } = await booted({ cpus: 2 }, guarded)
    const shared = words()
    const lock: any = make()
    const task = kernel.spawn(work[name], [lock, shared], { checkpoint: 2, affinity: [0] })
    await until(() => Atomics.load(shared, 1) === 1)
    await until(() => why.test(task.status.checkpointing?.waitsFor ?? ''))
    // It may have one from before the section.
    const before = task.status.checkpoint
    const asked = task.checkpoint()
    // The count moves with the task. The lock of a module does not.
    const to = lock === null ? 0 : 1
    task.setAffinity([to])
    await until(() => task.status.moves === to)
    const seen = Atomics.load(shared, 0)
    await until(() => Atomics.load(shared, 0) > seen + 1000)
    expect(task.status.checkpoint).toBe(before)
    Atomics.store(shared, 62, 1)
    await asked
    expect(task.status.checkpoint).toBeGreaterThan(before ?? 0)
    await kernel.internals.machine.terminate(to)
    Atomics.store(shared, 63, 1)
    expect(await task).toBe(1)
    if (lock instanceof Mutex) expect(lock.locked).toBe(false)
    if (lock instanceof RwLock) expect([lock.readers, lock.isWriting]).toEqual([0, false])
    if (lock instanceof Semaphore) expect(lock.available).toBe(2)
  })

  test('a permit that was a signal is not held', async () => {
    const { kernel, work } = await booted({ cpus: 1 }, guarded)
    const semaphore = new Semaphore(0)
    semaphore.release()
    const shared = words()
    const task = kernel.spawn(work.signalled, [semaphore, shared])
    await until(() => Atomics.load(shared, 0) > 0)
    await task.checkpoint()
    Atomics.store(shared, 63, 1)
    await task
  })
})

test('a task that is alone on its CPU, with no switch and no event, has checkpoints', async () => {
  const { kernel, work } = await booted({ cpus: 1 })
  const shared = words()
  const task = kernel.spawn(work.untilTold, [shared], { checkpoint: 5 })
  for (let times = 0; times < 3; times++) {
    const last = task.status.checkpoint ?? 0
    await until(() => (task.status.checkpoint ?? 0) > last)
  }
  Atomics.store(shared, 63, 1)
  await task
}, 60_000)

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

test('a state that holds functions of the platform moves, and leaves as bytes', async () => {
  const large = new URL('../../../testing/kernel/fixtures/largestate.ts', import.meta.url)
  const shared = words()
  const { kernel, work } = await booted({ cpus: 2 }, large)
  for (const cpu of [0, 1]) await kernel.spawn(work.tellBy, [shared], { affinity: [cpu] })
  const task = kernel.spawn(work.holdsPlatform, [], { affinity: [0] })
  await until(() => Atomics.load(shared, 0) > 0)
  task.setAffinity([1])
  await until(() => task.status.moves === 1 && task.status.cpu === 1)
  const image = await task.suspendToBytes()
  Atomics.store(shared, 63, 1)
  // A durable run goes on so: without an import.
  expect(await kernel.resume(image, { imports: false })).toEqual([true, true, true])
})

test('a state for which the arena has no room refuses each request, and the task goes on', async () => {
  const large = new URL('../../../testing/kernel/fixtures/largestate.ts', import.meta.url)
  const { kernel, work } = await booted({ cpus: 1, heap: 2 << 20 }, large)
  const shared = words()
  await kernel.spawn(work.tellBy, [shared])
  const task = kernel.spawn(work.holds, [5 << 20])
  await until(() => Atomics.load(shared, 0) > 0)
  for (const call of ['suspendToBytes', 'copyToBytes', 'checkpoint'] as const) {
    await expect(task[call]()).rejects.toThrow(
      new RegExp(`${call}: task holds goes on where it is: .*payload heap is full`),
    )
  }
  const seen = Atomics.load(shared, 0)
  await until(() => Atomics.load(shared, 0) > seen)
  Atomics.store(shared, 63, 1)
  expect(await task).toBe(7)
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

/** Changes bytes of the state in an image, and its checksums. Null: there is no such text. */
function forged(image: Uint8Array, change: (state: Buffer) => boolean): Uint8Array {
  const bytes = image.slice()
  const at = bytes.length - readSuspended(bytes).image.length
  expect(change(Buffer.from(bytes.buffer, at))).toBe(true)
  checksum(bytes, at)
  return bytes
}

test('an image with a task-local that the code here has not is changed code, and the CPU lives', async () => {
  const { kernel, work } = await booted({ cpus: 1 })
  const deaths: unknown[] = []
  kernel.on('death', death => deaths.push(death))
  const task = kernel.spawn(work.nested, [ROUNDS, null, 'mine'])
  await until(() => task.status.started !== null)
  const image = await task.suspendToBytes()
  const other = forged(image, state => state.write('Mandmoved', state.lastIndexOf('handmoved.ts:')) > 0)
  await expect(kernel.resume(other).join()).rejects.toMatchObject({
    code: 'ERR_HEDDLE_CODE_CHANGED',
    message: expect.stringMatching(/TaskLocal '.*Mandmoved\.ts:\d+:\d+'.*give it a name/),
  })
  const migrated = kernel.resume(other, { onCodeChanged: (_bytes, error) => error.function })
  expect(await migrated).toMatch(/Mandmoved/)
  expect(await kernel.resume(image)).toMatchObject({ local: 'mine' })
  expect(deaths).toEqual([])
})

test.each(['frames', 'flags', 'isKilled', 'locals', 'locks', 'shares'])(
  'an image that has lost its %s, with right checksums, is the error of its task, and the CPU lives',
  async field => {
    const { kernel, work } = await booted({ cpus: 1 })
    const deaths: unknown[] = []
    kernel.on('death', death => deaths.push(death))
    const task = kernel.spawn(work.nested, [ROUNDS, null, 'mine'])
    await until(() => task.status.started !== null)
    const image = await task.suspendToBytes()
    const other = forged(image, state => state.write('X', state.indexOf(field)) > 0)
    await expect(kernel.resume(other).join()).rejects.toMatchObject({ code: 'ERR_HEDDLE_IMAGE' })
    expect(await kernel.spawn(work.plainSpin, [1])).toBe(plainSpin(1))
    expect(deaths).toEqual([])
  },
)

test('a task whose slot had one with checkpoints has none of its words', async () => {
  const { kernel, work } = await booted({ cpus: 1 })
  const { view } = kernel.internals
  const shared = words()
  const first = kernel.spawn(work.untilTold, [shared], { checkpoint: 2 })
  const slot = first.job
  await until(() => first.status.checkpoint !== null)
  Atomics.store(shared, 63, 1)
  await first
  const next = Array.from({ length: 64 }, () => kernel.spawn(work.plainSpin, [1]))
  expect(next.map(task => task.job)).toContain(slot)
  for (const { job } of next) {
    const at = view.imagesOf(job)
    expect([...view.i32.subarray(at, at + JobImages.words)].every(word => word === 0)).toBe(true)
    expect(view.hasImages(job)).toBe(false)
  }
  await Promise.all(next)
})

test('checkpoint: takes milliseconds, and a function that can move', async () => {
  const { kernel, work } = await booted({ cpus: 1 })
  expect(() => kernel.spawn(work.spin, [1], { checkpoint: 0 })).toThrow(/checkpoint: 0 is not an interval/)
  expect(() => kernel.spawn(work.spin, [1], { checkpoint: 5, movable: false })).toThrow(/movable: false/)
  expect(() => kernel.spawn(work.plainSpin, [1], { checkpoint: 5 })).toThrow(/movable/)
})
