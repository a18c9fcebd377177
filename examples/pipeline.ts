/**
 * A pipeline over channels: one task reads, several parse, one adds up. Each stage is an ordinary loop.
 *
 *     npm run example pipeline
 *
 * Channels are bounded, so a fast stage waits for a slow one, and only a few lines are in memory.
 */
import { Channel, Kernel, WaitGroup } from '../src/index.ts'

console.log('one task reads, three parse, one adds up; no channel holds more than 16')
await using kernel = await Kernel.boot({ cpus: 2 })
const work = await kernel.import<typeof import('./pipeline/stages.ts')>(
  new URL('./pipeline/stages.ts', import.meta.url),
)

const lines = new Channel<string>(16)
const orders = new Channel<{ item: string; cents: number }>(16)
const parsers = 3
const parsing = new WaitGroup(parsers)

const reading = kernel.spawn(work.read, [lines, 5000])
for (let n = 0; n < parsers; n++)
  kernel.spawn(work.parse, [lines, orders, parsing], { name: `parser ${n}`, detached: true })
const adding = kernel.spawn(work.add, [orders])

// The last parser to end closes the channel to the last stage.
await parsing.waitAsync()
orders.close()
const totals = await adding
console.log(`${await reading} lines through ${parsers} parsers`)
for (const [item, cents] of [...totals].toSorted(([a], [b]) => a.localeCompare(b)))
  console.log(`  ${item.padEnd(8)} ${(cents / 100).toFixed(2)}`)
