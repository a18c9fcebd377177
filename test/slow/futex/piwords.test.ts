import { expect, test } from 'vitest'
import { CpuLostError, Kernel, type Task } from '../../../src/index.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'

const long = process.env.HEDDLE_LONG === '1'
const DEATHS = long ? 60 : 6
const TASKS = 120
const CPUS = 3
const seed = Number(process.env.HEDDLE_SEED ?? Date.now() % 1_000_000)

/**
 * The word of a PI lock while CPUs die. The thread that recovers has not mapped the buffer of the word. A
 * call may find the lock lost (ESRCH), and no other error.
 */
test(`a PI word in a task's buffer serves while CPUs die, seed ${seed}`, async () => {
  const kernel = await Kernel.boot({ cpus: CPUS })
  const work = await kernel.import<typeof import('./piwordswork.ts')>(
    new URL('./piwordswork.ts', import.meta.url),
  )
  const words = new Int32Array(new SharedArrayBuffer(64))
  const random = new SeededRandom(seed)
  const faults: unknown[] = []
  const running = new Set<Task<void>>()
  let deaths = 0
  const spawn = (n: number): void => {
    const use = n % 3 === 0 ? work.useWordAsync : work.useWord
    const priority = (['low', 'normal', 'high'] as const)[n % 3]
    const task = kernel.spawn(use, [words, seed + n, 40], { priority })
    running.add(task)
    task.then(
      () => running.delete(task),
      (error: unknown) => {
        running.delete(task)
        if (!(error instanceof CpuLostError)) faults.push(error)
        else if (deaths < DEATHS) spawn(n)
      },
    )
  }
  for (let n = 0; n < TASKS; n++) spawn(n)
  while (deaths < DEATHS && running.size > 0) {
    await new Promise(resolve => setTimeout(resolve, 20 + random.below(60)))
    void kernel['booted'].machine.terminate(random.below(CPUS))
    deaths++
  }
  await expect.poll(() => running.size).toBe(0)
  expect(faults).toEqual([])
  await kernel.close()
}, 600_000)
