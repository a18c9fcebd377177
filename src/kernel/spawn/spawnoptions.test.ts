import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BootedKernel } from '../boot/boot.ts'
import { Entity, POLICY_ROUND_ROBIN } from '../../sched/core/entity.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { sharedWords } from '../../../testing/kernel/fixtures/ending.ts'
import { sleep } from '../../coroutine/core/blocking.ts'
import { Schedule } from '../../coroutine/schedule/schedule.ts'
import { Mutex } from '../../sync/index.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from './modules.ts'
import type { SpawnOptions } from '../boot/options.ts'
import type { Task } from '../join/task.ts'

let kernel: Kernel

beforeAll(async () => {
  kernel = await Kernel.boot({ machine: 'simulated', cpus: 1, slice: 7 })
})

afterAll(async () => {
  await kernel.close({ abort: true })
})

/** The scheduler's settings of a task. */
function scheduled({ view, job }: Task): { slice: number; roundRobin: boolean } {
  let slice = Number.NaN
  let roundRobin = false
  view.withTask(job, task => {
    const se = view.i32[task + TaskRecord.entity]
    slice = view.f64[(se + Entity.timeSlice) >> 1]
    roundRobin = (view.i32[se + Entity.policy] & POLICY_ROUND_ROBIN) !== 0
  })
  return { slice, roundRobin }
}

test('a task has its own slice and round-robin setting', async () => {
  const work = await kernel.import<typeof import('../../../testing/kernel/fixtures/allowwork.ts')>(
    new URL('../../../testing/kernel/fixtures/allowwork.ts', import.meta.url),
  )
  const spawn = (options: SpawnOptions): Task => kernel.spawn(work.sleeps, [], options)
  const plain = spawn({})
  const own = spawn({ slice: 2.5, roundRobin: true, priority: 'high' })
  expect([scheduled(plain), scheduled(own)]).toEqual([
    { slice: 7, roundRobin: false },
    { slice: 2.5, roundRobin: true },
  ])
  expect(() => spawn({ slice: 0 })).toThrow(/slice: 0 is not a slice/)
  expect(() => spawn({ roundRobin: 1 as never })).toThrow(/roundRobin: 1 is not a boolean/)
})

describe('on worker threads, with one CPU,', () => {
  type Work = typeof import('../../../testing/kernel/fixtures/optionwork.ts')
  let work: ModuleView<Work>
  let threads: Kernel

  beforeAll(async () => {
    threads = await Kernel.boot({ cpus: 1, slice: 2 })
    work = await threads.import<Work>(
      new URL('../../../testing/kernel/fixtures/optionwork.ts', import.meta.url),
    )
  })

  afterAll(() => threads.close({ abort: true }))

  const equals = (options: SpawnOptions): Promise<boolean[]> => {
    const words = sharedWords()
    const limit = 20_000_000
    return Promise.all([
      threads.spawn(work.countsBesides, [words, 0, 1, limit], { priority: 'high', ...options }),
      threads.spawn(work.countsBesides, [words, 1, 0, limit], { priority: 'high', ...options }),
    ])
  }

  test('real-time tasks of equal priority take turns with roundRobin, and else run to their end', async () => {
    expect(await equals({ roundRobin: true, slice: 1 })).toEqual([true, true])
    // The first never sees the second; the second sees the counts of the first.
    expect(await equals({})).toEqual([false, true])
  })

  test('a lower nice gets more of the CPU', async () => {
    const words = sharedWords()
    const limit = 60_000_000
    const nicer = threads.spawn(work.countsFor, [words, 1, 0, limit], { nice: 15 })
    const share = threads.spawn(work.countsFor, [words, 0, 1, limit], { nice: -15 })
    expect(await share).toBeLessThan(limit / 2)
    await nicer
  })
})

test('the settings of hand-off locks come from the environment, then from the options', async () => {
  const knobs = async (handoff: object): Promise<[number, number]> => {
    await using booted = await Kernel.boot({ machine: 'simulated', cpus: 1, handoff })
    const { view } = (booted as unknown as { booted: BootedKernel }).booted
    return [view.handoff.yieldBudget, view.handoff.fallbackMs]
  }
  expect(await knobs({})).toEqual([32, 0.1])
  expect(await knobs({ yieldBudget: 3, fallbackUs: 50 })).toEqual([3, 0.05])
  process.env.LH_YIELD_BUDGET = '5'
  try {
    expect(await knobs({ yieldBudget: 3, fallbackUs: 50 })).toEqual([5, 0.05])
    process.env.LH_FALLBACK_US = '250'
    expect(await knobs({ yieldBudget: 3, fallbackUs: 50 })).toEqual([5, 0.25])
    process.env.LH_YIELD_BUDGET = 'many'
    await expect(knobs({})).rejects.toThrow(/LH_YIELD_BUDGET: 'many' is not a whole number/)
  } finally {
    delete process.env.LH_YIELD_BUDGET
    delete process.env.LH_FALLBACK_US
  }
  await expect(knobs({ fallbackUs: -1 })).rejects.toThrow(/handoff.fallbackUs: -1 is not/)
})

test('each call refuses unknown options, and changes nothing', async () => {
  const work = await kernel.import<typeof import('../../../testing/kernel/fixtures/allowwork.ts')>(
    new URL('../../../testing/kernel/fixtures/allowwork.ts', import.meta.url),
  )
  const active = kernel.active
  const wrong = { tiemout: 1 } as never
  expect(() => kernel.map(work.sleeps, [], { concurency: 1 } as never)).toThrow(/map\(.*concurrency\?/)
  expect(() => kernel.map(work.sleeps, [], { detached: true } as never)).toThrow(/no option 'detached'/)
  expect(() => kernel.spawn(work.sleeps, [], wrong)).toThrow(/spawn\(.*timeout\?/)
  await expect(kernel.loadPolicy('fifo', { task: 'all' } as never)).rejects.toThrow(/loadPolicy\(.*tasks\?/)
  expect(kernel.active).toBe(active)
  const task = kernel.spawn(work.sleeps)
  expect(() => task.kill('no', { grase: 1 } as never)).toThrow(/kill\(.*grace\?/)
  expect(() => task.join(wrong)).toThrow(/join\(.*timeout\?/)
  expect(kernel.active).toBe(active + 1)
  expect(task.kill('yes')).toBe(true)
  await expect(task).rejects.toThrow()
  const mutex = new Mutex()
  expect(() => mutex.lockSync(wrong)).toThrow(/options of a wait.*timeout\?/)
  await expect(mutex.lockAsync(wrong)).rejects.toThrow(/options of a wait.*timeout\?/)
  expect(mutex.locked).toBe(false)
  expect(() => new Schedule().exit({ grce: 1 } as never)).toThrow(/exit\(.*grace\?/)
  await expect(new Schedule().run(() => sleep(1, wrong))).rejects.toThrow(/sleep\(.*tiemout/)
})
