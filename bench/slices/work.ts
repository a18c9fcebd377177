import { needResched } from '../../src/coroutine/core/safepoint.ts'

/** Runs a loop with a safepoint in each turn until `stop[0]` is set. Returns the turns. */
export function* turns(stop: Int32Array): Generator<number, number, unknown> {
  const own = new Int32Array(32)
  let count = 0
  while (Atomics.load(stop, 0) === 0) {
    for (let at = 0; at < 1000; at++) own[at & 31]++
    count++
    if (needResched()) yield 0
  }
  return count
}

export function* nothing(): Generator<number, void, unknown> {}
