import type { Policy } from '../policy.ts'
import type { PolicyContext } from '../policycontext.ts'

/**
 * Isolates tasks that are critical for latency, those with a nice below 0, from the rest:
 *
 *   CPU 0 is reserved for them: another task runs there only if it may run nowhere else
 *   on the other CPUs they go first, and another task that runs there yields to them at its next safepoint
 *   the other tasks share those CPUs, in turn, with short slices
 *
 * Word `cpu` says whether a CPU runs one of the other tasks. With one CPU none is reserved, and only the
 * order counts.
 */
const RESERVED = 0
const CRITICAL = 0
const REST = 1
const REST_SLICE_MS = 2

const latency: Policy = {
  name: 'latency',

  enable(context) {
    context.queue(CRITICAL)
    context.queue(REST)
  },

  selectCpu(context, task, last) {
    if (isCritical(context, task)) {
      const idle = context.idleCpu(task)
      return idle >= 0 ? idle : last
    }
    for (let cpu = 0; cpu < context.cpus; cpu++) {
      if (!isReserved(context, cpu) && context.isIdle(cpu) && context.mayRun(task, cpu)) return cpu
    }
    return isReserved(context, last) ? 1 + (task % (context.cpus - 1)) : last
  },

  enqueue(context, task) {
    if (isCritical(context, task)) {
      context.dispatch(task, context.queue(CRITICAL), Infinity)
      if (context.idleCpu(task) < 0) preemptOne(context, task)
    } else if (context.cpusOf(task).every(cpu => isReserved(context, cpu))) {
      context.dispatch(task, context.localOf(RESERVED), REST_SLICE_MS)
    } else {
      context.dispatch(task, context.queue(REST), REST_SLICE_MS)
    }
  },

  dispatch(context, cpu) {
    if (context.consume(context.queue(CRITICAL)) || isReserved(context, cpu)) return
    context.consume(context.queue(REST))
  },

  running(context, task) {
    Atomics.store(context.words, context.cpu, isCritical(context, task) ? 0 : 1)
  },

  stopping(context) {
    Atomics.store(context.words, context.cpu, 0)
  },
}

function isCritical(context: PolicyContext, task: number): boolean {
  return context.nice(task) < 0
}

function isReserved(context: PolicyContext, cpu: number): boolean {
  return context.cpus > 1 && cpu === RESERVED
}

/** Preempts one of the other tasks on a CPU that the task may run on. */
function preemptOne(context: PolicyContext, task: number): void {
  for (let cpu = 0; cpu < context.cpus; cpu++) {
    if (!context.mayRun(task, cpu) || Atomics.compareExchange(context.words, cpu, 1, 0) !== 1) continue
    context.kick(cpu, true)
    return
  }
}

export default latency
