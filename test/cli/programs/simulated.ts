/** Prints values that depend on time, random numbers and the order of events. */
import { Kernel } from '../../../src/index.ts'

await using kernel = await Kernel.boot()
const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
const start = performance.now()
const at = (): string => (performance.now() - start).toFixed(3)
setTimeout(() => console.log('timer', at(), Math.random()), 12)
const tasks = [30, 10, 20].map((ms, n) => kernel.spawn(work.spin, [ms], { name: `spin ${n}`, nice: n * 5 }))
await Promise.all(tasks.map(async task => console.log(task.name, await task, at())))
await kernel.spawn(work.nap, [1000])
console.log(at(), new Date().toISOString(), process.argv.slice(2).join(' '))
