import { sleep, yieldNow } from '../../../src/coroutine/core/blocking.ts'
import { join } from '../../../src/kernel/join/childtask.ts'
import { spawn } from '../../../src/kernel/cpu/current.ts'

/**
 * The tasks of the chaos test. Each records in `marks` that it has begun and that it has ended: `marks[2 *
 * n]` and `marks[2 * n + 1]` for task number n.
 */

/** Without a stop. */
export function add(marks: Int32Array, n: number, a: number, b: number): number {
  Atomics.add(marks, 2 * n, 1)
  Atomics.add(marks, 2 * n + 1, 1)
  return a + b
}

/** A result in the payload heap. */
export function text(marks: Int32Array, n: number, length: number): string {
  Atomics.add(marks, 2 * n, 1)
  const result = 'x'.repeat(length)
  Atomics.add(marks, 2 * n + 1, 1)
  return result
}

/** Works, yields and sleeps. */
export function* turns(marks: Int32Array, n: number, count: number): Generator<unknown, number, unknown> {
  Atomics.add(marks, 2 * n, 1)
  let sum = 0
  for (let turn = 0; turn < count; turn++) {
    for (let i = 0; i < 500; i++) sum = (sum * 31 + i) | 0
    if (turn === 1) yield* sleep(1)
    else yield* yieldNow()
  }
  Atomics.add(marks, 2 * n + 1, 1)
  return sum
}

/** Spawns a child and joins it. The loss of the child's CPU is allowed. */
export function* family(marks: Int32Array, n: number): Generator<unknown, number, unknown> {
  Atomics.add(marks, 2 * n, 1)
  const child = spawn(half, [n])
  let value: number
  try {
    value = (yield* join(child)) as number
  } catch (error) {
    if ((error as Error).name !== 'CpuLostError') throw error
    value = n / 2
  }
  Atomics.add(marks, 2 * n + 1, 1)
  return value * 2
}

export function half(n: number): number {
  return n / 2
}

/** Its event loop runs while it waits. */
export async function later(marks: Int32Array, n: number): Promise<number> {
  Atomics.add(marks, 2 * n, 1)
  await new Promise(resolve => setTimeout(resolve, 1))
  Atomics.add(marks, 2 * n + 1, 1)
  return n
}
