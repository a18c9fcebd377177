/**
 * Prints how many operations of Atomics one trivial task takes, in a batch of this many on one CPU: in the
 * spawns, in the collection of the results, and on the CPU, as JSON. With ATOMICS_SITES set it prints the
 * lines that make them. Run with `--import ./bench/kernel/countatomics.ts`.
 */
import { Kernel } from '../../src/kernel/boot/kernel.ts'
import type { AtomicsCount, AtomicsCounter } from './countatomics.ts'

const count = Number(process.argv[2] ?? 1000)
const { atomicsCounter } = globalThis as unknown as { atomicsCounter: AtomicsCounter }
const preload = new URL('./countatomics.ts', import.meta.url).href
const kernel = await Kernel.boot({
  cpus: 1,
  control: false,
  watchdog: false,
  execArgv: ['--import', preload],
})
const work = await kernel.import<typeof import('./work.ts')>(new URL('./work.ts', import.meta.url))
const batch = () => Array.from({ length: count }, (_, index) => kernel.spawn(work.add, [index, 1]))
for (let round = 0; round < 5; round++) await Promise.all(batch())

await kernel.spawn(work.countAtomics, [])
atomicsCounter.start()
const tasks = batch()
const spawn = atomicsCounter.stop()
// The CPU has ended all of them: what remains is to collect them.
while (kernel.active > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
atomicsCounter.start()
await Promise.all(tasks)
const collect = atomicsCounter.stop()
const cpu = await kernel.spawn(work.countedAtomics, [])

const each = ({ total }: AtomicsCount): number => Number((total / count).toFixed(1))
console.log(JSON.stringify({ spawn: each(spawn), collect: each(collect), cpu: each(cpu) }))
for (const [where, { sites }] of Object.entries({ spawn, collect, cpu })) {
  for (const [site, calls] of [...sites].sort((a, b) => b[1] - a[1]))
    if (calls > count / 20) console.log(`${where}: ${(calls / count).toFixed(2)} ${site}`)
}
await kernel.close()
