import { ENQUEUE_CAME, ENQUEUE_NEW, type Policy, type PolicyContext } from '../policy.ts'

/**
 * Weighted virtual time: CPU time by weight, over all CPUs. Each task has a virtual time that advances by its
 * run time, slower the heavier it is; the task that is furthest behind runs next.
 *
 * All CPUs share one number, float 0: the greatest virtual time of a task that was set to run. A task that
 * slept for long returns one slice behind that, not further: a sleep saves up no time.
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
    const behind = (flags & ENQUEUE_CAME) === 0 ? own : Math.max(own, now - SLICE_MS)
    context.dispatchVtime(task, context.queue(QUEUE, 'vtime'), behind)
  },

  dispatch(context, _cpu, previous) {
    const queue = context.queue(QUEUE, 'vtime')
    const first = context.first(queue)
    if (previous !== 0) advance(context, vtimeNow(context, previous))
    // The task that yields is not on the queue: if it is still the furthest behind, it keeps the CPU.
    if (previous !== 0 && first !== 0 && vtimeNow(context, previous) <= context.vtime(first)) {
      context.setSlice(previous, SLICE_MS)
    } else context.consume(queue)
  },

  running(context, task) {
    advance(context, context.vtime(task))
  },

  stopping(context, task) {
    context.setVtime(task, vtimeNow(context, task))
  },
}

/** Two CPUs may write at the same time: either value is the virtual time of a task. */
function advance(context: PolicyContext, vtime: number): void {
  context.floats[NOW] = Math.max(context.floats[NOW], vtime)
}

/** Its virtual time, with this turn. */
function vtimeNow(context: PolicyContext, task: number): number {
  return context.vtime(task) + (context.ran(task) * 1024) / context.weight(task)
}

export default vtime
