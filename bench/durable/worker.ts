/** A worker process of the rows of `durable`: a database, and its name. It ends with its parent. */
import { Durable } from '../../src/durable/index.ts'
import { Kernel } from '../../src/index.ts'

const [, , database, name] = process.argv
process.stdin.resume().on('end', () => process.exit())
const kernel = await Kernel.boot({ cpus: 1, control: false })
await kernel.import(new URL('./work.ts', import.meta.url))
await Durable.open({ kernel, database, name, concurrency: 1 })
console.log('ready')
