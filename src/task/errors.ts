/** The errors of tasks. Each has a `code`, and says which task it was. */

/** The task was killed, by `kill(reason)` or because the kernel closed; `cause` is the reason that was given. */
export class TaskKilledError extends Error {
  override readonly name: string = 'TaskKilledError'
  readonly code: string = 'ERR_HEDDLE_TASK_KILLED'
  /** The task's name. */
  readonly task: string
  /**
   * How it ended: 'thrown', the error was thrown into it and it ended by that; 'evicted', it was still there after the
   * grace period, and its CPU was taken from it; 'unstarted', it had not run yet.
   */
  readonly how: 'thrown' | 'evicted' | 'unstarted'

  constructor(task: string, how: 'thrown' | 'evicted' | 'unstarted', reason: unknown, why = 'was killed') {
    const told = reason === undefined ? '' : `: ${describe(reason)}`
    const evicted = how === 'evicted' ? ', did not end within the grace period, and lost its CPU' : ''
    super(`task ${task} ${why}${evicted}${told}`, reason === undefined ? undefined : { cause: reason })
    this.task = task
    this.how = how
  }
}

/** The CPU that ran the task died under it. */
export class CpuLostError extends Error {
  override readonly name: string = 'CpuLostError'
  readonly code: string = 'ERR_HEDDLE_CPU_LOST'
  readonly task: string
  readonly cpu: number
  /** Why the CPU died: 'terminated', 'exited', 'out of memory', 'uncaught error', 'evicted'. */
  readonly reason: string

  constructor(task: string, cpu: number, reason: string, cause?: unknown) {
    const told = cause === undefined ? '' : `: ${describe(cause)}`
    super(
      `task ${task} was lost: CPU ${cpu}, which ran it, died (${reason}${told})`,
      cause === undefined ? undefined : { cause },
    )
    this.task = task
    this.cpu = cpu
    this.reason = reason
  }
}

/** As many tasks as the kernel was booted for are on their way. */
export class SpawnQueueFullError extends Error {
  override readonly name: string = 'SpawnQueueFullError'
  readonly code: string = 'ERR_HEDDLE_SPAWN_QUEUE_FULL'
  readonly limit: number

  constructor(limit: number) {
    super(
      `spawn: ${limit} tasks have not ended yet, and that is as many as there may be; await kernel.ready before the next, or raise the option \`queue\` at boot`,
    )
    this.limit = limit
  }
}

export class KernelClosedError extends Error {
  override readonly name: string = 'KernelClosedError'
  readonly code: string = 'ERR_HEDDLE_KERNEL_CLOSED'

  constructor(what: string) {
    super(`${what}: the kernel is closed, or closing; boot another one`)
  }
}

/** One line about a reason that may be anything. */
export function describe(reason: unknown): string {
  if (reason instanceof Error) return reason.message === '' ? reason.name : reason.message
  try {
    return String(reason)
  } catch {
    return 'a value that cannot be shown'
  }
}

/** The frames of a captured stack, and the line that leads to them. */
export function addOrigin(error: unknown, label: string, origin: { readonly stack?: string } | null): void {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return
  const frames = (origin?.stack ?? '').split('\n').filter(line => /^\s+at /.test(line))
  try {
    Object.defineProperty(error, 'stack', {
      value: [error.stack, `    at ${label}`, ...frames].join('\n'),
      configurable: true,
      writable: true,
      enumerable: false,
    })
  } catch {
    // Frozen: it keeps the stack that it was thrown with.
  }
}
