import { ENQUEUE_NEW, type Policy } from '../policy.ts'

/**
 * Weighted virtual time: CPU time by weight, over all CPUs. Each task has a virtual time that advances by its run time, slower
 * the heavier it is; the task that is furthest behind runs next.
 *
 * What all CPUs share is one number, float 0: how far the furthest task has come that was set to run. One that was away for long
 * comes back one slice behind that, not further: sleeping saves nothing up.
 */
const NOW = 0
const QUEUE = 0
const SLICE_MS = 5

const vtime: Policy = {
  name: 'vtime',
  slice: SLICE_MS,

  enable(context) {
    context.queue(QUEUE, 'vtime')
  },

  enqueue(context, task, flags) {
    const now = context.floats[NOW]
    const own = (flags & ENQUEUE_NEW) === 0 ? context.vtime(task) : now
    context.dispatchVtime(task, context.queue(QUEUE, 'vtime'), Math.max(own, now - SLICE_MS))
  },

  dispatch(context) {
    context.consume(context.queue(QUEUE, 'vtime'))
  },

  running(context, task) {
    // Two CPUs may write at once: either is a time that a task has come to.
    context.floats[NOW] = Math.max(context.floats[NOW], context.vtime(task))
  },

  stopping(context, task) {
    context.setVtime(task, context.vtime(task) + (context.ran(task) * 1024) / context.weight(task))
  },
}

export default vtime
