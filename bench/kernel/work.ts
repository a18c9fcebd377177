/** The work of the kernel's benchmarks, the same for heddle and for its peers. */
import { sleep } from '../../src/coroutine/core/blocking.ts'
import type { AtomicsCount, AtomicsCounter } from './countatomics.ts'
import { Semaphore } from '../../src/sync/small/semaphore.ts'
import { spawn } from '../../src/kernel/cpu/current.ts'

export function add(a: number, b: number): number {
  return a + b
}

/** Reads both ends of its argument. */
export function touch(bytes: Uint8Array): number {
  return bytes[0] + bytes[bytes.length - 1]
}

/** Computes for this many milliseconds of CPU time; heddle compiles it to be preempted. */
export function hog(ms: number): number {
  'use task'
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}

/** The time at which the task ran. */
export function when(): number {
  return performance.timeOrigin + performance.now()
}

export function* sleeper(ms: number): Generator<unknown, void> {
  yield* sleep(ms)
}

/** The heap of this CPU, after a garbage collection where Node offers it. */
export function memory(): { used: number; total: number } {
  globalThis.gc?.()
  const { heapUsed, heapTotal } = process.memoryUsage()
  return { used: heapUsed, total: heapTotal }
}

/** Two tasks of one CPU wake each other in turns. Returns microseconds for each wake. */
export function* wakes(turns: number): Generator<unknown, number> {
  const [there, back] = [new Semaphore(0), new Semaphore(0)]
  const answers = spawn(function* () {
    for (let turn = 0; turn < turns; turn++) {
      yield* there.acquire()
      back.release()
    }
  })
  const start = performance.now()
  for (let turn = 0; turn < turns; turn++) {
    there.release()
    yield* back.acquire()
  }
  const took = performance.now() - start
  yield* answers.join()
  return (took * 1e3) / (2 * turns)
}

/** Spawns from inside a task, and joins. */
export function* spawner(count: number): Generator<unknown, number> {
  const children = []
  for (let index = 0; index < count; index++) children.push(spawn(add, [index, 1]))
  let sum = 0
  for (const child of children) sum += (yield* child.join()) as number
  return sum
}

/** Counts the operations of Atomics on this CPU from here on (countatomics.ts). */
export function countAtomics(): void {
  counterHere().start()
}

export function countedAtomics(): AtomicsCount {
  return counterHere().stop()
}

function counterHere(): AtomicsCounter {
  return (globalThis as unknown as { atomicsCounter: AtomicsCounter }).atomicsCounter
}
