import type { Channel } from '../sync/channel/channel.ts'
import { Mutex } from '../sync/mutex/mutex.ts'

/** The tasks of `heddle bench`. */
export function add(a: number, b: number): number {
  return a + b
}

export function burn(ms: number): number {
  'use task'
  const end = performance.now() + ms
  let turns = 0
  while (performance.now() < end) turns++
  return turns
}

function sumPlainly(count: number): number {
  let sum = 0
  for (let n = 0; n < count; n++) sum = (sum + Math.imul(n, n)) | 0
  return sum
}

function sumInSlices(count: number): number {
  'use task'
  let sum = 0
  for (let n = 0; n < count; n++) sum = (sum + Math.imul(n, n)) | 0
  return sum
}

/** An unknown callee for the compiler, which would warn about a plain function that a task calls. */
const measured: (count: number) => number = Reflect.get({ sumPlainly }, 'sumPlainly') as typeof sumPlainly

/** Milliseconds for the same sum in a plain function and in a preemptible one. */
export function sums(count: number): [number, number] {
  'use task'
  const start = performance.now()
  const plain = measured(count)
  const middle = performance.now()
  const sliced = sumInSlices(count)
  const end = performance.now()
  if (plain !== sliced) throw new Error('heddle bench: the two sums differ')
  return [middle - start, end - middle]
}

/** Nanoseconds for one lock and unlock. */
export function* lockFree(count: number): Generator<number, number, unknown> {
  const mutex = new Mutex()
  const start = performance.now()
  for (let n = 0; n < count; n++) {
    const token = yield* mutex.lock()
    token.unlock()
  }
  return ((performance.now() - start) * 1e6) / count
}

export function* send(channel: Channel<number>, count: number): Generator<number, void, unknown> {
  for (let n = 0; n < count; n++) yield* channel.send(n)
  channel.close()
}

export function receive(channel: Channel<number>): number {
  'use task'
  let sum = 0
  for (const value of channel) sum += value
  return sum
}
