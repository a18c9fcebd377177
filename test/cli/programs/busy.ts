/** Runs until it is signalled: two tasks that compute, and one that sleeps. */
import { Kernel } from '../../../src/index.ts'

const kernel = await Kernel.boot({ cpus: 2 })
const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
console.log('booted')
const ms = Number(process.argv[2] ?? 60_000)
const tasks = [
  kernel.spawn(work.spin, [ms], { name: 'spinner A' }),
  kernel.spawn(work.spin, [ms], { name: 'spinner B', priority: 'low' }),
  kernel.spawn(work.nap, [ms], { name: 'sleeper' }),
]
const ended = await Promise.allSettled(tasks)
console.log(ended.map(({ status }) => status).join(' '))
await kernel.close()
