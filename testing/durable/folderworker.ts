/**
 * A process with an embedded database in a folder, for tests that kill it. It starts a run unless there is
 * one.
 */
import { Durable } from '../../src/durable/index.ts'
import { Kernel } from '../../src/index.ts'
import type * as Work from './runs.ts'

const [, , folder, turns] = process.argv
const kernel = await Kernel.boot({ cpus: 1 })
const work = await kernel.import<typeof Work>(new URL('./runs.ts', import.meta.url))
const durable = await Durable.open({ kernel, folder: folder! })
const run = await durable.start(work.sum, [Number(turns)], { id: 'one', checkpoint: 50 })
const timer = setInterval(async () => {
  const { checkpoint, epoch, progress } = await run.status()
  if (checkpoint !== null) process.send?.({ epoch, progress })
}, 20)
const result = await run.result()
clearInterval(timer)
process.send?.({ result, epoch: (await run.status()).epoch })
await durable.close()
await kernel.close()
process.disconnect?.()
