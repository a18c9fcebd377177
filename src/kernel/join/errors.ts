/** The errors of tasks. Each has a `code`, and names its task. */

/** The task was killed, by `kill(reason)` or because the kernel closed; `cause` is the reason. */
export class TaskKilledError extends Error {
  override readonly name: string = 'TaskKilledError'
  readonly code: string = 'ERR_HEDDLE_TASK_KILLED'
  /** The task's name. */
  readonly task: string
  /**
   * How it ended. 'thrown': the error was thrown into it. 'evicted': it did not end within the grace period,
   * and lost its CPU. 'unstarted': it had not run yet.
   */
  readonly how: 'thrown' | 'evicted' | 'unstarted'

  constructor(task: string, how: 'thrown' | 'evicted' | 'unstarted', reason: unknown, why = 'was killed') {
    const details = reason === undefined ? '' : `: ${describe(reason)}`
    const evicted = how === 'evicted' ? ', and lost its CPU' : ''
    super(`task ${task} ${why}${evicted}${details}`, reason === undefined ? undefined : { cause: reason })
    this.task = task
    this.how = how
  }
}

/** The task ended before its state could be written. */
export class TaskEndedError extends Error {
  override readonly name: string = 'TaskEndedError'
  readonly code: string = 'ERR_HEDDLE_TASK_ENDED'
  readonly task: string

  constructor(what: string, task: string) {
    super(`${what}: task ${task} has ended; its result is that of the task itself`)
    this.task = task
  }
}

/** The state of the task left the kernel by `suspendToBytes`: it ends there, not here. */
export class TaskSuspendedError extends Error {
  override readonly name: string = 'TaskSuspendedError'
  readonly code: string = 'ERR_HEDDLE_TASK_SUSPENDED'
  readonly task: string

  constructor(task: string) {
    super(`task ${task} was suspended to bytes: kernel.resume(image) goes on with it`)
    this.task = task
  }
}

/** How a task's CPU died, and the state of the task then: the result of a lost job. */
export interface CpuLoss {
  readonly reason: string
  readonly exitCode: number
  readonly was: string
  /** The error that was thrown there, as text. */
  readonly error?: string
}

/** Used when the arena had no room for the details. */
export const unknownLoss: CpuLoss = { reason: 'terminated', exitCode: 1, was: 'running' }

/** The CPU of the task died. */
export class CpuLostError extends Error {
  override readonly name: string = 'CpuLostError'
  readonly code: string = 'ERR_HEDDLE_CPU_LOST'
  readonly task: string
  /** The CPU that it was on. */
  readonly cpu: number
  /** Its state on that CPU: 'running', 'waiting for its turn', 'asleep', 'stopped', 'ending'. */
  readonly was: string
  /** Why the CPU died: 'terminated', 'exited', 'out of memory', 'uncaught error'. */
  readonly reason: string
  readonly exitCode: number

  /** `cause`: the error that was thrown on the CPU, if it is known. */
  constructor(task: string, cpu: number, loss: CpuLoss, cause?: unknown) {
    const { reason, exitCode, was, error } = loss
    const details = cause === undefined ? error : describe(cause)
    const how = reason === 'exited' ? `${reason} with code ${exitCode}` : reason
    super(
      `task ${task} was lost while it was ${was}: its CPU ${cpu} died (${how}${details === undefined ? '' : `: ${details}`})`,
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
 * A CPU has died by itself repeatedly, and is not started again. `cause` is the last error that was thrown
 * there, if it is known.
 */
export class CrashLoopError extends Error {
  override readonly name: string = 'CrashLoopError'
  readonly code: string = 'ERR_HEDDLE_CRASH_LOOP'
  readonly cpu: number
  /** The reasons of its deaths, the last one last. */
  readonly reasons: readonly string[]
  /** How many CPUs the kernel still has. */
  readonly left: number

  constructor(cpu: number, reasons: readonly string[], left: number, cause: unknown) {
    const rest = left === 0 ? 'no CPU is left, so every task fails' : `${left} of the kernel's CPUs are left`
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
 * The shared data of a dead CPU could not be repaired: a defect of the kernel, named by `cause`. The CPU is
 * not started again.
 */
export class RecoveryError extends Error {
  override readonly name: string = 'RecoveryError'
  readonly code: string = 'ERR_HEDDLE_RECOVERY'
  readonly cpu: number

  constructor(cpu: number, cause: unknown) {
    super(
      `the data that CPU ${cpu} left when it died could not be repaired: ${describe(cause)}; close the kernel and boot another one`,
      { cause },
    )
    this.cpu = cpu
  }
}

/**
 * The kernel has closed, but a CPU's thread still exists: it is in a system call that does not return
 * (waiting for a child process, reading a pipe), or a debugger has paused it. It runs no more JavaScript. The
 * process ends when that call has returned.
 */
export class ThreadLeftError extends Error {
  override readonly name: string = 'ThreadLeftError'
  readonly code: string = 'ERR_HEDDLE_THREAD_LEFT'
  readonly cpu: number

  constructor(cpu: number) {
    super(
      `the kernel has closed, but the thread of CPU ${cpu} still exists: it is in native code that does not return, or a debugger has stopped it; end that call or resume the thread, or the process waits for it when it exits`,
    )
    this.cpu = cpu
  }
}

/**
 * The booting thread left a kernel call half done (its stack was full in the middle of a spawn), which cannot
 * be repaired: the kernel has ended. Every task fails with this error, and so does the next spawn. `cause`
 * names the call.
 */
export class KernelFaultError extends Error {
  override readonly name: string = 'KernelFaultError'
  readonly code: string = 'ERR_HEDDLE_KERNEL_FAULT'

  constructor(cause: unknown) {
    super(`the kernel has ended: ${describe(cause)}; close it and boot another one`, { cause })
  }
}

/** The kernel has as many unfinished tasks as it was booted for. */
export class SpawnQueueFullError extends Error {
  override readonly name: string = 'SpawnQueueFullError'
  readonly code: string = 'ERR_HEDDLE_SPAWN_QUEUE_FULL'
  readonly limit: number

  constructor(limit: number) {
    super(
      `spawn: ${limit} tasks have not ended yet, which is the limit; await kernel.ready before the next spawn, or raise the option \`queue\` at boot`,
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

/** A reason of any type in one line. */
export function describe(reason: unknown): string {
  if (reason instanceof Error) return reason.message === '' ? reason.name : reason.message
  try {
    return String(reason)
  } catch {
    return 'a value that cannot be shown'
  }
}

/** Appends the frames of a captured stack to an error's, with a line that introduces them. */
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
    // A frozen error keeps its own stack.
  }
}
