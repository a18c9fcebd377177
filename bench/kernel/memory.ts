/**
 * Prints the memory of one sleeping task in bytes, over this many tasks; run with --expose-gc. It counts the
 * used heap of every thread after a garbage collection, and the growth of the process outside these heaps,
 * which is the arena.
 */
import { Kernel } from '../../src/kernel/boot/kernel.ts'

interface Memory {
  readonly used: number
  readonly total: number
}

const count = Number(process.argv[2])
const cpus = 2
const kernel = await Kernel.boot({ cpus, tasks: 131_072 })
const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

async function measure(): Promise<{ used: number; beside: number }> {
  let used = 0
  let total = 0
  const add = (memory: Memory): void => {
    used += memory.used
    total += memory.total
  }
  for (let cpu = 0; cpu < cpus; cpu++) add(await kernel.spawn(work.memory, [], { affinity: [cpu] }))
  await pause(200)
  globalThis.gc?.()
  const { rss, heapUsed, heapTotal } = process.memoryUsage()
  add({ used: heapUsed, total: heapTotal })
  return { used, beside: rss - total }
}

// First as many short tasks, a few at a time: one-time memory (code, young generations) is then allocated,
// and the pages of the arena are not.
for (let round = 0; round < 100; round++) {
  await Promise.all(Array.from({ length: count / 100 }, () => kernel.spawn(work.sleeper, [0])))
}
const before = await measure()
const tasks = []
for (let round = 0; round < 100; round++) {
  for (let index = 0; index < count / 100; index++) tasks.push(kernel.spawn(work.sleeper, [1e9]))
  await pause(5)
}
while (tasks.some(task => task.status.state !== 'sleeping')) await pause(50)
const after = await measure()
console.log((after.used - before.used + after.beside - before.beside) / count)
process.exit()
