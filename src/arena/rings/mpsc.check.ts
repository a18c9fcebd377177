import { check } from '../../checker/check.ts'
import { assert } from '../assert.ts'
import { MpscRing, mpscWords } from './mpsc.ts'

function ringOf(capacity: number): MpscRing {
  const ring = new MpscRing(new Int32Array(new SharedArrayBuffer(4 * mpscWords(capacity))), 0, capacity)
  ring.initialize()
  return ring
}

/** Takes the next value, however long it takes. */
function take(ring: MpscRing): number {
  let value = ring.pop()
  while (value < 0) value = ring.pop()
  return value
}

check('an MPSC ring of 2 slots keeps the order of each of two producers', {}, () => {
  const ring = ringOf(2)
  const produce = (first: number, count: number): void => {
    for (let i = 0; i < count; i++) while (!ring.push(first + i));
  }
  return {
    threads: {
      tens: () => produce(10, 2),
      twenties: () => produce(20, 1),
      consumer() {
        let last = 0
        let sum = 0
        for (let i = 0; i < 3; i++) {
          const value = take(ring)
          if (value < 20) {
            assert(value > last, 'values of one producer come in its order')
            last = value
          }
          sum += value
        }
        assert(sum === 10 + 11 + 20, 'every value comes once')
        assert(ring.pop() === -1, 'and nothing else')
      },
    },
    final: () => assert(ring.length === 0, 'the ring is empty'),
  }
})

check('three producers of an MPSC ring of 2 slots: whoever is told it is full was not lied to', {}, () => {
  const ring = ringOf(2)
  return {
    threads: [() => ring.push(1), () => ring.push(2), () => ring.push(3)],
    final({ results }) {
      assert(results.filter(pushed => pushed).length === 2, 'two of three fit')
      assert(ring.length === 2, 'the ring is full')
      const values = [ring.pop(), ring.pop()]
      assert(values[0] !== values[1] && ring.pop() === -1, 'both come out, once')
    },
  }
})

check(
  'a producer of an MPSC ring may die at any step and blocks nobody',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const ring = ringOf(2)
    return {
      threads: {
        mortal: () => ring.push(1),
        survivor() {
          while (!ring.push(2));
        },
        consumer() {
          let value = take(ring)
          if (value === 1) value = take(ring)
          assert(value === 2, 'the value of the survivor arrives')
        },
      },
    }
  },
)
