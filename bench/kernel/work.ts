/** The work of the kernel's benchmarks, the same for heddle and for its peers. */
import { sleep } from '../../src/coroutine/core/blocking.ts'
import { spawn } from '../../src/kernel/cpu/current.ts'

export function add(a: number, b: number): number {
  return a + b
}

/** Looks at both ends of what it is given. */
export function touch(bytes: Uint8Array): number {
  return bytes[0] + bytes[bytes.length - 1]
}

/** So many milliseconds on the CPU, as an ordinary long computation: heddle compiles it to be preempted. */
export function hog(ms: number): number {
  'use task'
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}

/** The moment at which it ran. */
export function when(): number {
  return performance.timeOrigin + performance.now()
}

export function* sleeper(ms: number): Generator<unknown, void> {
  yield* sleep(ms)
}

/** The heap of this CPU, its garbage collected where Node was told to offer that. */
export function memory(): { used: number; total: number } {
  globalThis.gc?.()
  const { heapUsed, heapTotal } = process.memoryUsage()
  return { used: heapUsed, total: heapTotal }
}

/** Spawns from inside a task, and joins. */
export function* spawner(count: number): Generator<unknown, number> {
  const children = []
  for (let index = 0; index < count; index++) children.push(spawn(add, [index, 1]))
  let sum = 0
  for (const child of children) sum += (yield* child.join()) as number
  return sum
}
