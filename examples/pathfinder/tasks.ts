import type { Latch, Mutex } from '../../src/index.ts'

/** Holds the bus while it computes for so long, on its CPU, and says when it has it. */
export function useBus(bus: Mutex, ms: number, hasIt: Latch): void {
  'use task'
  const token = bus.lock()
  hasIt.countDown()
  burn(ms)
  token.unlock()
}

export function compute(ms: number): void {
  'use task'
  burn(ms)
}

/** So many milliseconds of CPU time, not of the clock: what another task takes in between does not count. */
function burn(ms: number): void {
  'use task'
  let last = performance.now()
  let left = ms
  while (left > 0) {
    const now = performance.now()
    left -= Math.min(now - last, 0.5)
    last = now
  }
}
