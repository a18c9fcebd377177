/** The runs of the rows of `durable`. */
import { progress } from '../../src/durable/index.ts'

export function empty(): void {
  'use task movable'
}

/** The time of its first instruction. */
export function first(): number {
  'use task movable'
  return performance.timeOrigin + performance.now()
}

/** A task, no run: it has a state of so many bytes, and computes until it is killed. */
export function holds(bytes: Uint8Array): number {
  'use task movable'
  let sum = 0
  for (;;) {
    for (let step = 0; step < 1_000_000; step++) sum = (sum * 31 + step) % 1_000_003
    if (sum < 0) return bytes.length
  }
}

/** A long computation, which shows the time of its last turns. */
export function computes(turns: number): number {
  'use task movable'
  let sum = 0
  for (let turn = 0; turn < turns; turn++) {
    for (let step = 0; step < 1_000_000; step++) sum = (sum * 31 + step) % 1_000_003
    progress({ at: Date.now() })
  }
  return sum
}

/** The same as plain code, which shows nothing. */
export function computesPlainly(turns: number): number {
  let sum = 0
  for (let turn = 0; turn < turns; turn++) {
    for (let step = 0; step < 1_000_000; step++) sum = (sum * 31 + step) % 1_000_003
  }
  return sum
}
