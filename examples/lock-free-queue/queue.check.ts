import { check } from '../../src/checker/check.ts'
import { HastyQueue, type Queue, SteadyQueue } from './queue.ts'

/** Sends 1, 2, 3 through a ring of two slots. The receiver must get exactly these. */
function sendThree(make: (memory: SharedArrayBuffer) => Queue) {
  return () => {
    const memory = new SharedArrayBuffer(32)
    const received: number[] = []
    return {
      threads: {
        producer() {
          const queue = make(memory)
          for (let value = 1; value <= 3; ) if (queue.push(value)) value++
        },
        consumer() {
          const queue = make(memory)
          while (received.length < 3) {
            const value = queue.pop()
            if (value !== undefined) received.push(value)
          }
        },
      },
      final() {
        if (received.join() !== '1,2,3') throw new Error(`sent 1,2,3 and received ${received.join()}`)
      },
    }
  }
}

check(
  'the hasty queue',
  sendThree(memory => new HastyQueue(memory)),
)
check(
  'the steady queue',
  sendThree(memory => new SteadyQueue(memory)),
)
