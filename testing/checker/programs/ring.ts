import type { SpscRing } from '../../../src/arena/rings/spsc.ts'
import type { Body } from '../../../src/checker/machine/program.ts'

/**
 * A producer and a consumer that pass `count` values through a ring; each waits for the other when necessary.
 */
export function spscBodies(ring: SpscRing, count: number): Record<'producer' | 'consumer', Body> {
  return {
    producer() {
      for (let value = 1; value <= count; value++) while (!ring.push(value));
    },
    consumer() {
      for (let expected = 1; expected <= count; expected++) {
        let value = ring.pop()
        while (value === 0) value = ring.pop()
        if (value !== expected) throw new Error(`${value} came instead of ${expected}`)
      }
    },
  }
}
