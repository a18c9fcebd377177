import { check } from '../../checker/check.ts'
import { assert } from '../assert.ts'
import { SpscRing, spscWords } from './spsc.ts'

function ringOf(capacity: number): SpscRing {
  return new SpscRing(new Int32Array(new SharedArrayBuffer(4 * spscWords(capacity))), 0, capacity)
}

for (const [capacity, values] of [
  [2, 4],
  [3, 5],
]) {
  check(
    `an SPSC ring of ${capacity} slots hands ${values} values over in order, full and empty in between`,
    {},
    () => {
      const ring = ringOf(capacity)
      return {
        threads: {
          producer() {
            for (let value = 1; value <= values; value++) while (!ring.push(value));
          },
          consumer() {
            for (let expected = 1; expected <= values; expected++) {
              let value = ring.pop()
              while (value === 0) value = ring.pop()
              assert(value === expected, 'values come out in the order in which they went in')
            }
            assert(ring.pop() === 0, 'nothing comes out that did not go in')
          },
        },
        final: () => assert(ring.length === 0, 'the ring is empty'),
      }
    },
  )
}

check('a push on a full ring fails and changes nothing; a pop on an empty one likewise', {}, () => {
  const ring = ringOf(2)
  let pushed = 0
  return {
    threads: {
      producer() {
        for (let value = 1; value <= 3; value++) if (ring.push(value)) pushed++
      },
      consumer: () => [ring.pop(), ring.pop()],
    },
    final({ results }) {
      const popped = (results[1] as number[]).filter(value => value !== 0)
      assert(popped.length + ring.length === pushed, 'what went in came out or is still there')
      for (let i = 1; i < popped.length; i++) assert(popped[i] > popped[i - 1], 'in order')
    },
  }
})

/** The producer writes a record and pushes it; the consumer pops it, reads it, and allows the next write. */
check('what is written before the push is whole after the pop', {}, () => {
  const record = spscWords(2)
  const read = record + 2
  const i32 = new Int32Array(new SharedArrayBuffer((read + 1) * 4))
  const ring = new SpscRing(i32, 0, 2)
  return {
    threads: {
      producer() {
        for (let round = 1; round <= 2; round++) {
          i32[record] = round
          i32[record + 1] = round
          assert(ring.push(1), 'the consumer has taken the one before')
          while (Atomics.load(i32, read) !== round);
        }
      },
      consumer() {
        for (let round = 1; round <= 2; round++) {
          while (ring.pop() === 0);
          assert(i32[record] === round && i32[record + 1] === round, 'the record is whole')
          Atomics.store(i32, read, round)
        }
      },
    },
  }
})
