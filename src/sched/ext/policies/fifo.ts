import type { Policy } from '../policy.ts'

/**
 * First come, first served, over all CPUs: one queue, from which each CPU takes the next task that it may
 * run. A task whose slice has ended goes to the end. The smallest useful policy.
 */
const fifo: Policy = {
  name: 'fifo',

  enqueue(context, task) {
    context.dispatch(task, context.global)
  },

  dispatch(context) {
    context.consume(context.global)
  },
}

export default fifo
