import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Kernel, type ModuleView, Mutex, sleepOn, wakeupOn } from '../../index.ts'
import { failureOf, sharedWords, until } from '../../../testing/kernel/fixtures/ending.ts'

type Work = typeof import('../../../testing/kernel/fixtures/channelwork.ts')

let kernel: Kernel
let work: ModuleView<Work>

describe.each(['threads', 'simulated'] as const)('sleep channels on %s:', machine => {
  beforeAll(async () => {
    kernel = await Kernel.boot({ machine, cpus: 2 })
    work = await kernel.import<Work>(
      new URL('../../../testing/kernel/fixtures/channelwork.ts', import.meta.url),
    )
  })

  afterAll(() => kernel.close({ abort: true }))

  const asleep = (tasks: readonly { readonly status: { readonly state: string } }[]): Promise<void> =>
    until('they sleep', () => tasks.every(({ status }) => status.state === 'sleeping'))

  test('a wakeup wakes the tasks of its channel, of every CPU, and no others', async () => {
    const here = [0, 1].map(cpu => kernel.spawn(work.sleeps, [7], { affinity: [cpu] }))
    // Code that the test itself has loaded is not compiled.
    const plain = kernel.spawn(machine === 'threads' ? work.sleepsPlainly : work.sleeps, [7])
    const other = kernel.spawn(work.sleeps, [8])
    await asleep([...here, plain, other])
    expect(wakeupOn(9)).toBe(0)
    expect(wakeupOn(7)).toBe(3)
    expect(await Promise.all([...here, plain])).toEqual([true, true, true])
    expect(other.status.state).toBe('sleeping')
    expect(await kernel.spawn(work.wakes, [8, 5])).toBe(1)
    expect(await other).toBe(true)
    expect(wakeupOn(7)).toBe(0)
  })

  test('the best priority is woken first, then the first that came', async () => {
    const words = sharedWords()
    const tasks = []
    for (const [n, priority] of (['normal', 'high', 'normal'] as const).entries()) {
      const task = kernel.spawn(work.notesItsTurn, [3, words, n], { priority, affinity: [0] })
      await asleep([task])
      tasks.push(task)
    }
    for (const [woken, task] of [1, 0, 2].entries()) {
      expect(wakeupOn(3, 1)).toBe(1)
      await tasks[task]
      expect(words[1 + task]).toBe(woken + 1)
    }
  })

  test('a sleep has an end by its timeout, and by a kill', async () => {
    expect(await kernel.spawn(work.sleeps, [4, { timeout: 2 }])).toBe(false)
    const task = kernel.spawn(work.sleeps, [4])
    await asleep([task])
    task.kill('enough')
    expect(await failureOf(task)).toMatchObject({ name: 'TaskKilledError' })
    expect(wakeupOn(4)).toBe(0)
  })

  test('with a mutex no wakeup is lost between the look at the condition and the sleep', async () => {
    const mutex = new Mutex()
    const words = sharedWords()
    const [rounds, room] = [400, 2]
    const tasks = [
      kernel.spawn(work.produces, [mutex, words, rounds, room], { affinity: [0] }),
      kernel.spawn(work.produces, [mutex, words, rounds, room], { affinity: [1] }),
      kernel.spawn(work.consumes, [mutex, words, rounds], { affinity: [0] }),
      kernel.spawn(work.consumes, [mutex, words, rounds], { affinity: [1] }),
    ]
    expect(await Promise.all(tasks)).toEqual([undefined, undefined, rounds, rounds])
    expect([words[0], mutex.locked]).toEqual([0, false])
  })

  test('a wakeup that comes after the mutex is unlocked and before the task sleeps ends the sleep', async () => {
    expect(await kernel.spawn(work.sleepsTooLate, [6])).toBe(true)
    expect(wakeupOn(6)).toBe(0)
  })

  test('what is wrong is refused, with the value', async () => {
    expect(() => wakeupOn(-1)).toThrow(/wakeupOn\(-1\): a channel is an integer/)
    expect(() => wakeupOn(0.5)).toThrow(/0.5/)
    expect(() => wakeupOn(1, Number.NaN)).toThrow(/NaN/)
    expect(() => sleepOn(1)).toThrow(/sleepOn/)
    expect((await failureOf(kernel.spawn(work.sleeps, [2 ** 31]))).message).toMatch(/2147483648/)
    const failure = await failureOf(kernel.spawn(work.sleeps, [1, { timeout: -1 }]))
    expect(failure.message).toMatch(/timeout: -1/)
  })
})
