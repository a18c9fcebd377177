/** A worker whose booting thread is busy for a while when it has a run. */
import { Durable } from '../../src/durable/index.ts'
import { Kernel } from '../../src/index.ts'

const [, , database, ms] = process.argv
const kernel = await Kernel.boot({ cpus: 1 })
await kernel.import(new URL('./runs.ts', import.meta.url))
const durable = await Durable.open({ kernel, database, queues: ['busy'], name: 'busy' })
while (durable.running.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
process.send?.('claimed')
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms))
while (durable.running.length > 0) await new Promise(resolve => setTimeout(resolve, 5))
await durable.close()
await kernel.close()
process.disconnect?.()
