import { expect, test } from 'vitest'
import { CpuLostError, Kernel } from '../../../src/index.ts'
import { inUse, leftSince } from '../../../testing/kernel/fixtures/inuse.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import type { SimulatedMachine } from '../../../src/machine/simulated/simulatedmachine.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'

/** The chaos of chaos.test.ts on simulated CPUs: each seed is one order of events, the same every time. */
const TASKS = 60
const CPUS = 3
const DEATHS = 8

type Work = typeof import('./work.ts')

async function run(seed: number): Promise<{ story: string[]; deaths: number }> {
  const kernel = await Kernel.boot({ cpus: CPUS, machine: 'simulated', seed, watchdog: false, tasks: 256 })
  await using _kernel = kernel
  const work = await kernel.import<Work>(new URL('./work.ts', import.meta.url))
  await expect.poll(() => inUse(kernel).tasks).toBe(CPUS)
  const before = inUse(kernel)
  const random = new SeededRandom(seed * 31_337)
  const machine = kernel['booted'].machine as unknown as SimulatedMachine
  let deaths = 0
  kernel.on('death', () => deaths++)
  kernel.on('failure', ({ error }) => expect(error).toBeInstanceOf(CpuLostError))
  for (let at = 0; at < DEATHS; at++)
    machine.killAt(machine.steps + 1 + random.below(150), random.below(CPUS))
  const marks = new Int32Array(new SharedArrayBuffer(8 * TASKS))
  const outcomes = new Array<string>(TASKS).fill('')
  await Promise.all(
    outcomes.map(async (_, n) => {
      const options = { restartable: n % 2 === 0 }
      const task =
        n % 3 === 0
          ? kernel.spawn(work.turns, [marks, n, 4], options)
          : n % 3 === 1
            ? kernel.spawn(work.family, [marks, n], options)
            : kernel.spawn(work.text, [marks, n, 50], options)
      try {
        await task
        outcomes[n] += 'returned'
      } catch (error) {
        if (!(error instanceof CpuLostError)) throw error
        outcomes[n] += `lost on ${error.cpu}, ${error.was}`
      }
    }),
  )
  outcomes.forEach((outcome, n) => {
    expect(outcome).toMatch(n % 2 === 0 ? /^returned$/ : /^(returned|lost on \d, [a-z ]+)$/)
    expect(marks[2 * n + 1]).toBeGreaterThanOrEqual(outcome === 'returned' ? 1 : 0)
    if (n % 2 !== 0) expect(marks[2 * n]).toBeLessThanOrEqual(1)
  })
  await expect.poll(() => leftSince(kernel, before)).toEqual({})
  checkInvariants(kernel['booted'].view.s)
  return { story: outcomes, deaths }
}

test.each(Array.from({ length: 30 }, (_, index) => index + 1))(
  'simulated CPUs die at random steps: every task has one outcome, seed %i',
  async seed => {
    const { deaths } = await run(seed)
    expect(deaths).toBeGreaterThan(0)
  },
)
