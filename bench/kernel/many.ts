/**
 * Prints what operations cost in a kernel with this many sleeping tasks, as JSON. Medians, in microseconds;
 * `close` is the whole kernel.
 */
import { Kernel } from '../../src/kernel/boot/kernel.ts'
import type { KernelMonitor } from '../../src/kernel/boot/monitor.ts'
import { median } from '../harness.ts'

const ROUNDS = 200
const BATCH = 2000

const count = Number(process.argv[2])
const kernel = await Kernel.boot({ cpus: 2, tasks: count + 1000, control: false, grace: 3000 })
const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const { monitor } = kernel as unknown as { monitor: KernelMonitor }

for (let warmUp = 0; warmUp < 20; warmUp++)
  await Promise.all(Array.from({ length: BATCH }, () => kernel.spawn(work.sleeper, [0])))
const asleep: Promise<unknown>[] = []
while (asleep.length < count) {
  for (let index = 0; index < BATCH && asleep.length < count; index++)
    asleep.push(kernel.spawn(work.sleeper, [1e9]).join())
  await turn()
}
// Behind all of them on each CPU.
for (const cpu of [0, 1]) await kernel.spawn(work.add, [1, 2], { affinity: [cpu], priority: 'low' })

async function time(rounds: number, act: () => unknown): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const start = performance.now()
    await act()
    times.push((performance.now() - start) * 1e3)
  }
  return median(times)
}

const spawn = await time(ROUNDS, () => kernel.spawn(work.add, [1, 2]))
const kill = await time(ROUNDS, async () => {
  const task = kernel.spawn(work.sleeper, [1e9])
  task.kill()
  await task.catch(() => undefined)
})
const wakes: number[] = []
for (let round = 0; round < 10; round++) wakes.push(await kernel.spawn(work.wakes, [1000]))
const watchdog = await time(20, () => monitor.poll())
const ended = Promise.allSettled(asleep)
const start = performance.now()
await kernel.close({ abort: true })
const close = (performance.now() - start) * 1e3
const outcomes = await ended
if (outcomes.some(({ status }) => status !== 'rejected')) throw new Error('many: a sleeper was not killed')
console.log(JSON.stringify({ spawn, kill, wake: median(wakes), watchdog, close }))
process.exit()
