import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { acquire } from '../../arena/sync/spinlock.ts'
import { KernelFaultError } from '../../index.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import { failureOf, sharedWords, until } from '../../../testing/kernel/fixtures/ending.ts'
import { Kernel } from '../boot/kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/rescuework.ts')

const url = new URL('../../../testing/kernel/fixtures/rescuework.ts', import.meta.url)

/**
 * Something is thrown in the middle of the kernel, with a lock of it: that is told, and costs the CPU.
 * Nothing waits for that lock for ever.
 */
describe('an exception leaves a call of the kernel', () => {
  let kernel: Kernel
  let work: ModuleView<Work>
  const deaths: string[] = []

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 2, watchdog: false })
    work = await kernel.import<Work>(url)
    kernel.on('death', ({ reason, error }) => deaths.push(`${reason}: ${(error as Error).message}`))
  })
  afterAll(() => kernel.close({ deadline: 1000 }))

  test.each([
    ['a run queue', 'throws', 'run queue'],
    ['timers', 'returns', 'timer'],
    ['the sleepers', 'yields', 'sleep'],
    ['the payload heap', 'in a callback', 'heap'],
  ])(
    'with the lock of %s, which the task %s: its CPU dies of it, and another goes on',
    async (name, how, lock) => {
      const words = sharedWords()
      const working = kernel.spawn(work.works, [words], { affinity: [1] })
      await until('it works', () => words[0] > 2)
      const error = await failureOf(
        kernel.spawn(work.throwsWith, [name, how], { affinity: [0], name: 'throwing' }),
      )
      expect(error).toMatchObject({ name: 'CpuLostError', cpu: 0, reason: 'uncaught error' })
      const death = deaths.pop()!
      expect(death).toMatch(
        how === 'in a callback' ? /a callback on CPU 0 left/ : /task throwing on CPU 0 left/,
      )
      expect(death).toContain(`with the lock '${lock}' locked`)
      if (how === 'throws') expect(death).toContain('Maximum call stack size exceeded\n    at')
      const turns = words[0]
      await until('it goes on', () => words[0] > turns + 2)
      const next = sharedWords()
      Atomics.store(next, 4, 1)
      expect(await kernel.spawn(work.works, [next], { affinity: [0] })).toBe(1)
      Atomics.store(words, 4, 1)
      expect(await working).toBeGreaterThan(turns)
      expect(deaths).toEqual([])
    },
  )
})

test('the thread that booted a kernel leaves a lock of it locked: every task fails with why, and close ends', async () => {
  const kernel = await Kernel.boot({ cpus: 2, watchdog: false })
  const work = await kernel.import<Work>(url)
  const errors: unknown[] = []
  kernel.on('error', error => errors.push(error))
  const words = sharedWords()
  const working = failureOf(kernel.spawn(work.works, [words]))
  await until('it works', () => words[0] > 2)
  const { s } = kernel['booted'].view
  acquire(s.thread, s.queueOf(0) + RunQueue.lock)
  const error = await working
  expect(error).toBeInstanceOf(KernelFaultError)
  expect(error.message).toContain(
    "the thread that booted the kernel left a call of the kernel with the lock 'run queue' locked",
  )
  expect(errors).toEqual([error])
  expect(() => kernel.spawn(work.works, [words])).toThrow(error)
  await kernel.close({ deadline: 100 })
  // It is that kernel alone.
  await using another = await Kernel.boot({ cpus: 1 })
  const again = await another.import<Work>(url)
  const ended = sharedWords()
  Atomics.store(ended, 4, 1)
  expect(await another.spawn(again.works, [ended])).toBe(1)
})
