/**
 * A worker process of the chaos. It drains and ends at SIGTERM, and ends when its parent has ended. Standard
 * output: `ready`, then `drained`.
 */
import { Durable } from '../../../src/durable/index.ts'
import { Kernel } from '../../../src/index.ts'

export interface WorkerSettings {
  readonly database: string
  readonly name: string
  readonly cpus: number
  readonly concurrency: number
}

const { database, name, cpus, concurrency } = JSON.parse(process.argv[2]!) as WorkerSettings
process.stdin.resume().on('end', () => process.exit(3))
const kernel = await Kernel.boot({ cpus, control: false })
await kernel.import(new URL('./chaoswork.ts', import.meta.url))
const durable = await Durable.open({ kernel, database, name, concurrency, patience: 300 })
durable.onWarning(({ run, message }) => console.error(`${run ?? 'database'}: ${message}`))
process.once('SIGTERM', () => {
  void (async () => {
    await durable.close()
    console.log('drained')
    await kernel.close({ deadline: 5000 }).catch(() => undefined)
    process.exit(0)
  })()
})
console.log('ready')
