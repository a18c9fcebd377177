import type { Latch, Mutex } from '../../src/index.ts'

/** Holds the bus while it computes for this long on its CPU, and announces that it has the bus. */
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

/** Uses this many milliseconds of CPU time. The time of other tasks does not count. */
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
