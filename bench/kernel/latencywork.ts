/** Workloads for `compiler/latency-task-…`, and the high-priority task that is woken beside them. */
import { sleep } from '../../src/index.ts'
import * as decomposition from '../programs/decomposition.ts'
import * as documents from '../programs/documents.ts'

interface Work {
  fn: (...args: any[]) => unknown
  self?: unknown
  args: readonly unknown[]
}

const prepared = new Map<string, Work>()
const programs: Readonly<Record<string, Work>> = {
  decomposition: { fn: decomposition.run, args: [decomposition.size] },
  documents: { fn: documents.run, args: [documents.size] },
  loop: { fn: spin, args: [5] },
}

/** Loads the workload into this CPU's thread, whose loader compiles whole packages. */
export async function prepare(name: string, entry: string, method: string, args: unknown[]): Promise<void> {
  if (entry === '') {
    prepared.set(name, programs[name]!)
    return
  }
  const namespace = (await import(entry)) as Record<string, any>
  const fn = (namespace[method] ?? namespace.default[method] ?? namespace.default) as Work['fn']
  prepared.set(name, { fn, args })
}

/**
 * The workload with the shortest waits: a loop with safepoints and nothing else, the baseline of the other
 * rows.
 */
export function spin(ms: number): number {
  'use task'
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}

export function workload(name: string, ms: number): number {
  'use task'
  const { fn, self, args } = prepared.get(name)!
  const end = performance.now() + ms
  let rounds = 0
  while (performance.now() < end) {
    fn.apply(self, args as unknown[])
    rounds++
  }
  return rounds
}

/** Wakes every few milliseconds, and reports each delay. */
export function probe(ms: number, every: number): Float64Array {
  'use task'
  const waits: number[] = []
  const end = performance.now() + ms
  while (performance.now() < end) {
    const due = performance.now() + every
    sleep(every)
    waits.push(performance.now() - due)
  }
  return Float64Array.from(waits)
}
