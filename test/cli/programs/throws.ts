import { Kernel } from '../../../src/index.ts'

await using _kernel = await Kernel.boot({ cpus: 1 })
throw new Error('thrown on purpose')
