/**
 * Bytes that each of so many sleeping tasks takes: run with --expose-gc, prints a number. What is counted:
 * the used heap of every thread after a collection, and what the process has grown by beside those heaps,
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

// As many short tasks first, a few at a time: what is there once (code, the young generations) is there then,
// and the arena's pages are not.
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
