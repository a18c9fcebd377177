import { useCodeCache } from './node-codecache.ts'

/**
 * The entry of a CPU's worker thread. It loads nothing but the switch of the cache: modules that are imported
 * by name are compiled before any of them runs.
 */
useCodeCache()
void start()

// An async function, because a CommonJS bundle cannot await at its top level.
async function start(): Promise<void> {
  const { runNodeCpu } = await import('./node-cpurun.ts')
  await runNodeCpu()
}
