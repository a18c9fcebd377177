/**
 * The priority inversion of Mars Pathfinder (1997). A low-priority task holds the bus, a high-priority task
 * needs it, and a middle one computes. So the high task waits for the middle one, which does not use the bus.
 * With inheritance, the low task runs at the high task's priority while it holds the bus.
 *
 *     npm run example pathfinder
 */
import { Kernel, Latch, Mutex } from '../src/index.ts'

const MIDDLE_MS = 400
const HOLD_MS = 20

console.log(`the low task needs the bus for ${HOLD_MS} ms, the middle one computes for ${MIDDLE_MS} ms`)
await using kernel = await Kernel.boot({ cpus: 1 })
const work = await kernel.import<typeof import('./pathfinder/tasks.ts')>(
  new URL('./pathfinder/tasks.ts', import.meta.url),
)

async function mission(protocol: 'none' | 'inherit'): Promise<number> {
  const bus = new Mutex({ protocol, name: 'the bus' })
  const [lowHasIt, highHasIt] = [new Latch(1), new Latch(1)]
  const weather = kernel.spawn(work.useBus, [bus, HOLD_MS, lowHasIt], {
    name: 'weather data',
    priority: 'low',
  })
  await lowHasIt.waitAsync()
  const radio = kernel.spawn(work.compute, [MIDDLE_MS], { name: 'communications', priority: 'normal' })
  const from = performance.now()
  kernel.spawn(work.useBus, [bus, 1, highHasIt], { name: 'bus manager', priority: 'high' })
  await highHasIt.waitAsync()
  const waited = performance.now() - from
  await Promise.all([weather, radio])
  return waited
}

const without = await mission('none')
console.log(
  `without inheritance the high task waited ${without.toFixed(0)} ms: the watchdog resets the spacecraft`,
)
const withInheritance = await mission('inherit')
console.log(`with inheritance it waited ${withInheritance.toFixed(0)} ms`)
