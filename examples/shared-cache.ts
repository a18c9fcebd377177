/**
 * A cache that all CPUs share: a hash table in a SharedArrayBuffer, guarded by a readers-writer lock. Readers
 * do not wait for each other, and each value is computed once.
 *
 *     npm run example shared-cache
 */
import { Kernel, RwLock } from '../src/index.ts'
import { CACHE_BYTES } from './shared-cache/cache.ts'

const clients = 8
const asked = 2000
const keys = 300

console.log(`${clients} tasks on 2 CPUs look ${keys} keys up, again and again`)
await using kernel = await Kernel.boot({ cpus: 2 })
const work = await kernel.import<typeof import('./shared-cache/cache.ts')>(
  new URL('./shared-cache/cache.ts', import.meta.url),
)

const memory = new SharedArrayBuffer(CACHE_BYTES)
const lock = new RwLock()
const tasks = Array.from({ length: clients }, (_, client) =>
  kernel.spawn(work.client, [memory, lock, client, asked, keys]),
)
const results = await Promise.all(tasks)
const sum = (of: 'hits' | 'misses' | 'wrong'): number =>
  results.reduce((total, result) => total + result[of], 0)
console.log(
  `${clients * asked} look-ups by ${clients} tasks: ${sum('hits')} hits, ${sum('misses')} computed, ${sum('wrong')} wrong`,
)
if (sum('misses') !== keys || sum('wrong') !== 0) process.exitCode = 1
