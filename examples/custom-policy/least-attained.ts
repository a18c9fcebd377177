import type { Policy } from '../../src/index.ts'

/**
 * Every CPU loads this module. State that all CPUs share is in dispatch queues and in the context's words.
 */
const QUEUE = 0

const leastAttained: Policy = {
  name: 'least attained service',
  slice: 2,

  enable(context) {
    context.queue(QUEUE, 'vtime')
  },

  /** Ordered by used CPU time, the least first. */
  enqueue(context, task) {
    context.dispatchVtime(task, context.queue(QUEUE, 'vtime'), context.runTime(task))
    context.kick(context.cpuOf(task))
  },

  dispatch(context) {
    context.consume(context.queue(QUEUE, 'vtime'))
  },
}

export default leastAttained
