/** Movable tasks that wait for a lock, and move while they wait. */
import { afterEach, describe, expect, test } from 'vitest'
import { Kernel } from '../boot/kernel.ts'
import { Mutex } from '../../sync/index.ts'
import { SeededRandom } from '../../machine/simulated/random.ts'
import type { KernelOptions } from '../boot/options.ts'

const compiled = new URL('../../../testing/kernel/fixtures/moved.ts', import.meta.url)
const byHand = new URL('../../../testing/kernel/fixtures/handmoved.ts', import.meta.url)
const kernels: Kernel[] = []

async function booted(options: KernelOptions): Promise<{ kernel: Kernel; its: any }> {
  const kernel = await Kernel.boot({ control: false, ...options })
  kernels.push(kernel)
  return { kernel, its: await kernel.import(options.machine === 'simulated' ? byHand : compiled) }
}

afterEach(async () => {
  for (const kernel of kernels.splice(0)) {
    await kernel.close()
    const { view } = kernel.internals
    expect(view.jobs.count(view.i32)).toBe(0)
    const { layout } = view.futexes.context
    expect(layout.waiters.count(view.i32)).toBe(0)
  }
})

function words(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(256))
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 1))
}

for (const robust of [false, true]) {
  describe(`a waiter of a hand-off lock, ${robust ? 'robust' : 'plain'}`, () => {
    test('that sleeps goes to the CPU that its new mask names, and gets the lock there', async () => {
      const { kernel, its } = await booted({ cpus: 2, slice: 2 })
      const mutex = new Mutex({ protocol: 'handoff', robust })
      const shared = words()
      const holder = kernel.spawn(its.holdsUntil, [mutex, shared], { affinity: [0] })
      await until(() => Atomics.load(shared, 4) === 1)
      const waiter = kernel.spawn(its.waits, [mutex, shared, null], { affinity: [1] })
      await until(() => waiter.status.state === 'sleeping')
      waiter.setAffinity([0])
      await until(() => waiter.status.moves === 1)
      Atomics.store(shared, 0, 1)
      expect(await waiter).toEqual([1, 0])
      expect(await holder).toBe(0)
      expect(mutex.locked).toBe(false)
    })
  })
}

describe('a call that begins again on another CPU', () => {
  test('keeps its time limit, and is killed where it is', async () => {
    const { kernel, its } = await booted({ cpus: 2, slice: 2 })
    const mutex = new Mutex({ protocol: 'handoff' })
    const shared = words()
    const holder = kernel.spawn(its.holdsUntil, [mutex, shared], { affinity: [0] })
    await until(() => Atomics.load(shared, 4) === 1)
    const limited = kernel.spawn(its.waits, [mutex, shared, 2000], { affinity: [1] })
    const killed = kernel.spawn(its.waits, [mutex, shared, null], { affinity: [1] })
    await until(() =>
      [limited, killed].every(({ status }) => status.state === 'sleeping' || status.ended !== null),
    )
    limited.setAffinity([0])
    killed.setAffinity([0])
    // On a machine that is very busy its time may be over before it moves.
    await until(
      () => (limited.status.moves === 1 || limited.status.ended !== null) && killed.status.moves === 1,
    )
    killed.kill('enough')
    await expect(killed.join()).rejects.toMatchObject({ name: 'TaskKilledError' })
    expect(Atomics.load(shared, 2)).toBe(1)
    expect(await limited).toEqual([0, limited.status.moves === 1 ? 0 : 1])
    Atomics.store(shared, 0, 1)
    await holder
    expect(mutex.locked).toBe(false)
  })

  test('begins again where it is, if the task cannot be packed', async () => {
    const { kernel, its } = await booted({ cpus: 2, slice: 2 })
    const mutex = new Mutex({ protocol: 'handoff' })
    const shared = words()
    const holder = kernel.spawn(its.holdsUntil, [mutex, shared], { affinity: [0] })
    await until(() => Atomics.load(shared, 4) === 1)
    const waiter = kernel.spawn(its.waitsHolding, [mutex, shared], { affinity: [1] })
    await until(() => waiter.status.state === 'sleeping')
    waiter.setAffinity([0])
    await until(() => waiter.status.moving?.waitsFor?.includes('WeakMap') === true)
    expect(waiter.status.ended).toBe(null)
    Atomics.store(shared, 0, 1)
    expect(await waiter).toBe(1)
    await holder
  })

  test('a CPU that ends sends its waiters away', async () => {
    const { kernel, its } = await booted({ cpus: 2, slice: 2 })
    const mutex = new Mutex({ protocol: 'handoff' })
    const shared = words()
    const holder = kernel.spawn(its.holdsUntil, [mutex, shared], { affinity: [0] })
    await until(() => Atomics.load(shared, 4) === 1)
    const waiters = Array.from({ length: 4 }, () =>
      kernel.spawn(its.waits, [mutex, shared, null], { affinity: [1] }),
    )
    await until(() => waiters.every(task => task.status.state === 'sleeping'))
    for (const waiter of waiters) waiter.setAffinity([0, 1])
    await kernel.resize(1)
    Atomics.store(shared, 0, 1)
    expect(await Promise.all(waiters)).toEqual(waiters.map(() => [1, 0]))
    await holder
  })
})

describe.each([{ machine: 'threads' }, { machine: 'simulated', seed: 5 }] as const)(
  'with the policy, $machine',
  machine => {
    test('waiters of a lock with long sections go to the CPU of its holder, and all get it', async () => {
      const { kernel, its } = await booted({ ...machine, cpus: 2, slice: 2 })
      const policy = await kernel.loadPolicy('handoff')
      const mutex = new Mutex({ protocol: 'handoff' })
      const shared = words()
      const inside = machine.machine === 'threads' ? 200_000 : 500
      const tasks = Array.from({ length: 6 }, () => kernel.spawn(its.contends, [mutex, shared, 40, inside]))
      await Promise.all(tasks)
      expect(shared[5]).toBe(240)
      expect(tasks.reduce((moves, { status }) => moves + status.moves, 0)).toBeGreaterThan(0)
      await policy.unload()
      expect(kernel.internals.view.handoff.counts().followed).toBeGreaterThan(0)
    })

    test('waiters that were spawned with `movable: false` stay', async () => {
      const { kernel, its } = await booted({ ...machine, cpus: 2, slice: 2 })
      await kernel.loadPolicy('handoff')
      const mutex = new Mutex({ protocol: 'handoff' })
      const shared = words()
      const tasks = Array.from({ length: 6 }, () =>
        kernel.spawn(its.contends, [mutex, shared, 40, 300], { movable: false }),
      )
      await Promise.all(tasks)
      expect(shared[5]).toBe(240)
      for (const { status } of tasks) expect(status.moves).toBe(0)
    })
  },
)

// On simulated CPUs, where all sections together are shorter than the least wait that is worth a move.
test('a wait that is shorter than a move is not worth one', async () => {
  const { kernel, its } = await booted({ machine: 'simulated', seed: 5, cpus: 2, slice: 50 })
  const policy = await kernel.loadPolicy('handoff')
  const mutex = new Mutex({ protocol: 'handoff' })
  const shared = words()
  const tasks = Array.from({ length: 4 }, () => kernel.spawn(its.contends, [mutex, shared, 12, 4]))
  await Promise.all(tasks)
  expect(shared[5]).toBe(48)
  await policy.unload()
  const counts = kernel.internals.view.handoff.counts()
  expect(counts.contended).toBeGreaterThan(0)
  expect(counts.followed).toBe(0)
})

test.each([
  ['throw new Error("no CPU is good enough")', 'threw', 'moveTo threw'],
  ['return "1"', 'misused', 'moveTo returned 1'],
  ['return 5', 'misused', 'moveTo returned 5'],
  ['return 1.5', 'misused', 'moveTo returned 1.5'],
])('a policy whose moveTo is `%s` is ejected, and the lock is the same', async (body, reason, message) => {
  const { kernel, its } = await booted({ machine: 'simulated', seed: 5, cpus: 2, slice: 2 })
  const enqueue = '(c, task) => c.dispatch(task, c.isPinned(task) ? c.local : c.global)'
  const text = `export default { name: 'bad', enqueue: ${enqueue}, moveTo() { ${body} } }`
  const policy = await kernel.loadPolicy(`data:text/javascript,${encodeURIComponent(text)}`)
  const mutex = new Mutex({ protocol: 'handoff' })
  const shared = words()
  const tasks = Array.from({ length: 6 }, () => kernel.spawn(its.contends, [mutex, shared, 40, 500]))
  const report = await policy.ended
  expect(report.reason).toBe(reason)
  expect(report.message).toContain(message)
  await Promise.all(tasks)
  expect(shared[5]).toBe(240)
})

describe('CPUs that die', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    'while waiters move, seed %i: one outcome each, and the lock is free',
    async seed => {
      const { kernel, its } = await booted({ machine: 'simulated', seed, cpus: 4, slice: 1 })
      const { machine, view } = kernel.internals
      if (seed % 2 === 0) await kernel.loadPolicy('handoff')
      const mutex = new Mutex({ protocol: 'handoff', robust: true })
      const shared = words()
      const tasks = Array.from({ length: 12 }, () => kernel.spawn(its.contends, [mutex, shared, 20, 300]))
      const outcomes = tasks.map(task =>
        task.join().then(
          () => 'returned',
          (error: Error) => error.name,
        ),
      )
      const random = new SeededRandom(seed)
      for (let turn = 0; turn < 200 && kernel.active > 0; turn++) {
        const task = tasks[random.below(tasks.length)]
        const what = random.below(8)
        if (what < 4) task.setAffinity([random.below(4)])
        else if (what < 6) task.setAffinity([0, 1, 2, 3])
        else if (what === 6 && random.below(4) === 0) task.kill('enough')
        else if (random.below(8) === 0) {
          const cpu = random.below(4)
          if (view.s.isActive(cpu)) await machine.terminate(cpu)
        }
        await new Promise(resolve => setImmediate(resolve))
      }
      for (const task of tasks) task.setAffinity([0, 1, 2, 3])
      const names = await Promise.all(outcomes)
      for (const name of names) expect(['returned', 'CpuLostError', 'TaskKilledError']).toContain(name)
      expect(names).toContain('returned')
      const returned = names.filter(name => name === 'returned').length
      expect(shared[5]).toBeGreaterThanOrEqual(20 * returned)
      expect(shared[5]).toBeLessThanOrEqual(240)
      await until(() => [0, 1, 2, 3].every(cpu => view.s.isActive(cpu)))
      expect(mutex.locked).toBe(false)
      expect(tasks.reduce((moves, { status }) => moves + status.moves, 0)).toBeGreaterThan(0)
    },
  )
})
