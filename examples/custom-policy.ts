/**
 * A scheduler policy of your own: least attained service. The task with the least CPU time so far runs next,
 * so short jobs pass long ones without any hint. The policy is loaded and unloaded while tasks run.
 *
 *     npm run example custom-policy
 */
import { Kernel } from '../src/index.ts'
import { waiting } from './terminal/waiting.ts'

console.log('short jobs beside six long ones, on one CPU, from spawn to end on average:')
// The policy lets long tasks wait. On a busy machine that may take a while, so the watchdog is patient.
await using kernel = await Kernel.boot({ cpus: 1, slice: 10, watchdog: { limit: 30_000 } })
const work = await kernel.import<typeof import('./job-queue/jobs.ts')>(
  new URL('./job-queue/jobs.ts', import.meta.url),
)

async function averageOfShortJobs(): Promise<number> {
  const long = [1, 2, 3, 4, 5, 6].map(n => kernel.spawn(work.burn, [120], { name: `long ${n}` }))
  await new Promise(resolve => setTimeout(resolve, 60))
  const short = Array.from({ length: 8 }, async (_, n) => {
    const from = performance.now()
    await kernel.spawn(work.burn, [3], { name: `short ${n}` })
    return performance.now() - from
  })
  const waits = await Promise.all(short)
  await Promise.all(long)
  return waits.reduce((sum, ms) => sum + ms, 0) / waits.length
}

const fair = await waiting('the fair class', averageOfShortJobs())
console.log(`  ${fair.toFixed(0)} ms with the fair class`)
const policy = await kernel.loadPolicy(new URL('./custom-policy/least-attained.ts', import.meta.url))
const own = await waiting('the policy', averageOfShortJobs())
await policy.unload()
console.log(
  `  ${own.toFixed(0)} ms with the policy "${policy.name}" (examples/custom-policy/least-attained.ts)`,
)
