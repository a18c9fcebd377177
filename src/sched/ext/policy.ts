import type { EjectReport } from './eject.ts'
import type { PolicyContext } from './policycontext.ts'

export type { EjectReason, EjectReport } from './eject.ts'
export type { PolicyContext } from './policycontext.ts'

/**
 * A scheduling policy: what a user writes. Every CPU loads it and calls it on its own thread, so what two
 * CPUs must both know lives in the words that the context gives (`words`, `taskWords`), and is reached with
 * Atomics; what one CPU alone knows may live in variables of its own. `task` is the task's pointer: a number
 * that is right until the task ends.
 *
 * A task's way: it becomes runnable, and `selectCpu` may say where. The CPU that it comes to calls `enqueue`,
 * which puts it on a dispatch queue, or keeps it for later. A CPU that has nothing on its local queue calls
 * `dispatch`, which takes tasks from dispatch queues to the local one. `running` and `stopping` tell of its
 * turns, `tick` of interrupts meanwhile.
 *
 * No lock is held in any of these but `selectCpu`, where the task's own is: that one may look, answer and
 * dispatch this task to `local`, and nothing else. All of them return soon: the CPU does nothing else
 * meanwhile.
 */
export interface Policy {
  readonly name: string
  /**
   * Milliseconds that a task runs before it gives way, where a dispatch does not say. Default: the kernel's.
   */
  readonly slice?: number
  /**
   * A task that yields while nothing else waits on its CPU is enqueued too, if it could run elsewhere.
   * Default: it just goes on.
   */
  readonly takesLast?: boolean
  /**
   * The CPU that a waking task goes to, or -1: the kernel chooses. Only for tasks that may run on several.
   */
  selectCpu?(context: PolicyContext, task: number, lastCpu: number): number
  /** The task can run, and is the policy's to place. `flags`: ENQUEUE_ bits. */
  enqueue(context: PolicyContext, task: number, flags: number): void
  /**
   * A task that the policy has been given, and that has not reached a local queue, is no longer runnable
   * here.
   */
  dequeue?(context: PolicyContext, task: number): void
  /**
   * This CPU has nothing to run. `previous`: the task that gives way and could go on, or 0. Default: takes
   * from `global`.
   */
  dispatch?(context: PolicyContext, cpu: number, previous: number): void
  running?(context: PolicyContext, task: number): void
  /** It has left its CPU. `runnable`: and would go on; it is enqueued next. */
  stopping?(context: PolicyContext, task: number, runnable: boolean): void
  /** The CPU was interrupted while the task runs: its slice has ended, or another reason. */
  tick?(context: PolicyContext, task: number): void
  /** First of all, on every CPU. Queues of the policy's own are made here. */
  enable?(context: PolicyContext): void
  /** Last of all, on every CPU: unloaded, or ejected. Its tasks are in the fair class by now. */
  exit?(context: PolicyContext, report: EjectReport): void
}

/** What a policy module exports: a policy, or what makes one for each CPU. */
export type PolicySource = Policy | (() => Policy)

/** It was not runnable before, or comes from another CPU or class. */
export const ENQUEUE_CAME = 1
/** The policy has not seen it before. Its task words are 0. */
export const ENQUEUE_NEW = 2
/** It gave way of its own will. */
export const ENQUEUE_YIELDED = 4
/** It has used its slice up. */
export const ENQUEUE_SLICE_ENDED = 8

/** Throws TypeError unless this is a policy, and says what is wrong with it. */
export function checkPolicy(value: unknown): Policy {
  const made: unknown = typeof value === 'function' ? (value as () => unknown)() : value
  if (typeof made !== 'object' || made === null) {
    throw new TypeError(
      `a policy module's default export is a policy or a function that makes one, not ${String(made)}`,
    )
  }
  const policy = made as Record<string, unknown>
  if (typeof policy.name !== 'string' || policy.name === '') {
    throw new TypeError('a policy has a `name`, a string that is not empty')
  }
  if (typeof policy.enqueue !== 'function') {
    throw new TypeError(`policy '${policy.name}': it has no \`enqueue(context, task, flags)\``)
  }
  for (const name of OPERATIONS) {
    if (policy[name] !== undefined && typeof policy[name] !== 'function') {
      throw new TypeError(`policy '${policy.name}': \`${name}\` is not a function`)
    }
  }
  const { slice } = policy
  if (slice !== undefined && (typeof slice !== 'number' || !(slice > 0))) {
    throw new TypeError(
      `policy '${policy.name}': \`slice\` is ${String(slice)}; give milliseconds, more than 0`,
    )
  }
  return made as Policy
}

const OPERATIONS = ['selectCpu', 'dequeue', 'dispatch', 'running', 'stopping', 'tick', 'enable', 'exit']
