/**
 * A job queue with priorities: long reports fill every CPU, and an urgent job still runs first.
 *
 *     npm run example job-queue
 *
 * In a worker pool an urgent job waits until a worker has finished its report. Here it preempts a report.
 */
import { Kernel, type TaskPriority } from '../src/index.ts'

console.log('four reports of 300 ms fill two CPUs; three invoices of 2 ms come after them')
await using kernel = await Kernel.boot({ cpus: 2 })
const work = await kernel.import<typeof import('./job-queue/jobs.ts')>(
  new URL('./job-queue/jobs.ts', import.meta.url),
)

const started = performance.now()
const done: string[] = []

async function submit(name: string, ms: number, priority: TaskPriority): Promise<number> {
  const from = performance.now()
  await kernel.spawn(work.job, [ms], { name, priority })
  done.push(name)
  return performance.now() - from
}

// Four reports of 300 ms on two CPUs: more than half a second of work for each CPU.
const reports = [1, 2, 3, 4].map(n => submit(`report ${n}`, 300, 'low'))
await new Promise(resolve => setTimeout(resolve, 50))
const urgent = [1, 2, 3].map(n => submit(`invoice ${n}`, 2, 'high'))

const waits = await Promise.all(urgent)
console.log(`the invoices were done after ${waits.map(ms => ms.toFixed(1)).join(', ')} ms`)
await Promise.all(reports)
console.log(`in order of completion: ${done.join(', ')}`)
console.log(`all done after ${(performance.now() - started).toFixed(0)} ms`)
