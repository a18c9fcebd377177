/** The errors of tasks. Each has a `code`, and says which task it was. */

/**
 * The task was killed, by `kill(reason)` or because the kernel closed; `cause` is the reason that was given.
 */
export class TaskKilledError extends Error {
  override readonly name: string = 'TaskKilledError'
  readonly code: string = 'ERR_HEDDLE_TASK_KILLED'
  /** The task's name. */
  readonly task: string
  /**
   * How it ended: 'thrown', the error was thrown into it and it ended by that; 'evicted', it was still there
   * after the grace period, and its CPU was taken from it; 'unstarted', it had not run yet.
   */
  readonly how: 'thrown' | 'evicted' | 'unstarted'

  constructor(task: string, how: 'thrown' | 'evicted' | 'unstarted', reason: unknown, why = 'was killed') {
    const told = reason === undefined ? '' : `: ${describe(reason)}`
    const evicted = how === 'evicted' ? ', and lost its CPU' : ''
    super(`task ${task} ${why}${evicted}${told}`, reason === undefined ? undefined : { cause: reason })
    this.task = task
    this.how = how
  }
}

/** How a task's CPU died, and what the task was doing then: the result of a lost job. */
export interface CpuLoss {
  readonly reason: string
  readonly exitCode: number
  readonly was: string
  /** What was thrown there, in words. */
  readonly error?: string
}

/** What is said where there was no room to say more. */
export const unknownLoss: CpuLoss = { reason: 'terminated', exitCode: 1, was: 'running' }

/** The CPU that ran the task died under it. */
export class CpuLostError extends Error {
  override readonly name: string = 'CpuLostError'
  readonly code: string = 'ERR_HEDDLE_CPU_LOST'
  readonly task: string
  /** Where it was: on this CPU. */
  readonly cpu: number
  /** What it was doing there: 'running', 'waiting for its turn', 'asleep', 'stopped', 'ending'. */
  readonly was: string
  /** Why the CPU died: 'terminated', 'exited', 'out of memory', 'uncaught error'. */
  readonly reason: string
  readonly exitCode: number

  /** `cause`: what was thrown on the CPU, where it is known. */
  constructor(task: string, cpu: number, loss: CpuLoss, cause?: unknown) {
    const { reason, exitCode, was, error } = loss
    const told = cause === undefined ? error : describe(cause)
    const how = reason === 'exited' ? `${reason} with code ${exitCode}` : reason
    super(
      `task ${task} was lost while it was ${was}: its CPU ${cpu} died (${how}${told === undefined ? '' : `: ${told}`})`,
      cause === undefined ? undefined : { cause },
    )
    this.task = task
    this.cpu = cpu
    this.was = was
    this.reason = reason
    this.exitCode = exitCode
  }
}

/**
 * A CPU has died by itself again and again, and is not started any more. `cause` is what was thrown there
 * last, where it is known.
 */
export class CrashLoopError extends Error {
  override readonly name: string = 'CrashLoopError'
  readonly code: string = 'ERR_HEDDLE_CRASH_LOOP'
  readonly cpu: number
  /** Why it died, the last death last. */
  readonly reasons: readonly string[]
  /** How many CPUs the kernel still has. */
  readonly left: number

  constructor(cpu: number, reasons: readonly string[], left: number, cause: unknown) {
    const rest = left === 0 ? 'no CPU is left, and every task fails' : `${left} of the kernel’s CPUs are left`
    super(
      `CPU ${cpu} died ${reasons.length} times in a row and is not started again: ${reasons.at(-1)}; ${rest}`,
      cause === undefined ? undefined : { cause },
    )
    this.cpu = cpu
    this.reasons = reasons
    this.left = left
  }
}

/**
 * What a dead CPU left could not be repaired: a fault of the kernel, which `cause` names. The CPU is not
 * started again.
 */
export class RecoveryError extends Error {
  override readonly name: string = 'RecoveryError'
  readonly code: string = 'ERR_HEDDLE_RECOVERY'
  readonly cpu: number

  constructor(cpu: number, cause: unknown) {
    super(
      `what CPU ${cpu} left when it died could not be repaired: ${describe(cause)}; close the kernel and boot another one`,
      { cause },
    )
    this.cpu = cpu
  }
}

/**
 * The kernel has closed, and a CPU's thread is still there: it is in a call of the operating system that does
 * not return (a child process that is waited for, a file that nothing is written to), or a debugger has
 * stopped it. It runs no more JavaScript. The process ends when that call has returned.
 */
export class ThreadLeftError extends Error {
  override readonly name: string = 'ThreadLeftError'
  readonly code: string = 'ERR_HEDDLE_THREAD_LEFT'
  readonly cpu: number

  constructor(cpu: number) {
    super(
      `the kernel has closed, and the thread of CPU ${cpu} is still there: it is in native code that does not return, or a debugger has stopped it; end that call or resume the thread, or the process waits for it when it exits`,
    )
    this.cpu = cpu
  }
}

/**
 * The thread that booted the kernel left a call of it half done (its stack was full in the middle of a
 * spawn), and nothing can recover that thread: the kernel has ended. Every task fails with this, and so does
 * the next spawn. `cause` says what was left.
 */
export class KernelFaultError extends Error {
  override readonly name: string = 'KernelFaultError'
  readonly code: string = 'ERR_HEDDLE_KERNEL_FAULT'

  constructor(cause: unknown) {
    super(`the kernel has ended: ${describe(cause)}; close it and boot another one`, { cause })
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
