import { assert } from '../../arena/assert.ts'
import { CPU_MAX } from '../../arena/sync/thread.ts'

/** CPU masks are two words: CPUs 0 to 31 and 32 to 63. */

export function maskHas(low: number, high: number, cpu: number): boolean {
  return (((cpu < 32 ? low : high) >>> (cpu & 31)) & 1) !== 0
}

export function lowestCpu(low: number, high: number): number {
  if (low !== 0) return 31 - Math.clz32(low & -low)
  assert(high !== 0, 'an empty CPU mask has no lowest CPU')
  return 63 - Math.clz32(high & -high)
}

/** Both words of a list of CPUs. */
export function maskOf(cpus: readonly number[]): readonly [low: number, high: number] {
  let low = 0
  let high = 0
  for (const cpu of cpus) {
    if (!Number.isInteger(cpu) || cpu < 0 || cpu >= CPU_MAX) {
      throw new RangeError(`affinity: ${String(cpu)} is not a CPU; CPUs are 0 to ${CPU_MAX - 1}`)
    }
    if (cpu < 32) low |= 1 << cpu
    else high |= 1 << (cpu - 32)
  }
  return [low, high]
}

/** The CPUs of a mask, in order. */
export function cpusOf(low: number, high: number): number[] {
  const cpus: number[] = []
  for (let cpu = 0; cpu < CPU_MAX; cpu++) if (maskHas(low, high, cpu)) cpus.push(cpu)
  return cpus
}
