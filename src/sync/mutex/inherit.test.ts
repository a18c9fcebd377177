import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Condition, Kernel, type KernelOptions, Mutex, type MutexOptions } from '../../index.ts'
import { HIGH_AT, HOG_AT, NOTIFIED, READY, WORDS } from '../../../testing/sync/fixtures/inherittasks.ts'
import type * as Tasks from '../../../testing/sync/fixtures/inherittasks.ts'

const tasksUrl = new URL('../../../testing/sync/fixtures/inherittasks.ts', import.meta.url)
const machines: readonly KernelOptions[] = [{ machine: 'threads' }, { machine: 'simulated', seed: 5 }]

function shared(words: number): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(words * 4))
}

/**
 * Two tasks wait at a condition, and a task that keeps the mutex notifies them. The second holds a lock that
 * a task of high priority wants. A task of a priority between the two hogs the CPU. All are on one CPU.
 * Returns which was first: the task of high priority, or the hog.
 */
async function chain(kernel: Kernel, outer: MutexOptions): Promise<'high' | 'hog'> {
  const tasks = await kernel.import<typeof Tasks>(tasksUrl)
  const [mutex, inner, condition] = [new Mutex(outer), new Mutex({ protocol: 'inherit' }), new Condition()]
  const words = shared(WORDS)
  const until = async (what: () => boolean): Promise<void> => {
    while (!what()) await new Promise(resolve => setTimeout(resolve, 1))
  }
  const affinity = [0]
  const low = { priority: 'low', affinity } as const
  const first = kernel.spawn(tasks.waitsWith, [mutex, condition, words, null], low)
  await until(() => Atomics.load(words, READY) === 1 && first.status.state === 'sleeping')
  const second = kernel.spawn(tasks.waitsWith, [mutex, condition, words, inner], low)
  await until(() => Atomics.load(words, READY) === 2 && second.status.state === 'sleeping')
  const notifier = kernel.spawn(tasks.notifiesAndHolds, [mutex, condition, words], low)
  await until(() => Atomics.load(words, NOTIFIED) === 1)
  const hog = kernel.spawn(tasks.hogs, [words], { affinity })
  const high = kernel.spawn(tasks.wants, [inner, words], { priority: 'high', affinity })
  await Promise.all([hog, high])
  expect(await Promise.all([first, second])).toEqual([true, true])
  // No waiter was awake while the mutex was held.
  expect(await notifier).toBe(0)
  return words[HIGH_AT] < words[HOG_AT] ? 'high' : 'hog'
}

describe.each(machines)('on a machine of $machine', options => {
  let kernel: Kernel

  beforeAll(async () => {
    kernel = await Kernel.boot({ ...options, cpus: 2 })
  })

  afterAll(async () => {
    await kernel.close({ abort: true })
  })

  test.each([{ protocol: 'inherit' }, { protocol: 'inherit', robust: true }] as const)(
    'all notified waiters lend their priorities to the holder of a mutex with %o',
    async outer => {
      expect(await chain(kernel, outer)).toBe('high')
    },
  )

  test.each([{ robust: true }, { protocol: 'handoff' }, {}] as const)(
    'a mutex with %o inherits no priority: the hog is first, and no waiter is lost',
    async outer => {
      expect(await chain(kernel, outer)).toBe('hog')
    },
  )

  test.each([
    { protocol: 'inherit' },
    { protocol: 'inherit', robust: true },
    { robust: true },
    { protocol: 'handoff' },
    { protocol: 'handoff', robust: true },
    {},
  ] as const)('tasks that notify all take their turns with %o', async mutexOptions => {
    const tasks = await kernel.import<typeof Tasks>(tasksUrl)
    const [mutex, condition, words] = [new Mutex(mutexOptions), new Condition(), shared(1)]
    const of = 5
    const rounds = 20
    const running = Array.from({ length: of }, (_, id) =>
      kernel.spawn(tasks.takesTurns, [mutex, condition, words, id, of, rounds], {
        priority: id === 3 ? 'high' : 'normal',
      }),
    )
    await Promise.all(running)
    expect(words[0]).toBe(of * rounds)
    expect(mutex.locked).toBe(false)
  })
})
