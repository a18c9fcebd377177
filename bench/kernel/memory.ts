/** Bytes of this process for each of so many sleeping tasks: run with --expose-gc, prints a number. */
import { Kernel } from '../../src/task/kernel.ts'

const count = Number(process.argv[2])
const cpus = 2
const rss = async (): Promise<number> => {
  for (let turn = 0; turn < 3; turn++) {
    globalThis.gc?.()
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return process.memoryUsage.rss()
}

const kernel = await Kernel.boot({ cpus, tasks: 131_072 })
const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
// A first thousand, so that what is there once is there already.
const first = Array.from({ length: 1000 }, () => kernel.spawn(work.sleeper, [1e9]))
await new Promise(resolve => setTimeout(resolve, 300))
const before = await rss()
const tasks = Array.from({ length: count }, () => kernel.spawn(work.sleeper, [1e9]))
while (tasks.some(task => task.status.state !== 'sleeping'))
  await new Promise(resolve => setTimeout(resolve, 50))
const after = await rss()
console.log((after - before) / count)
process.exit(first.length > 0 ? 0 : 1)
