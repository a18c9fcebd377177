import type { EjectReport } from './eject.ts'
import type { PolicyContext } from './policycontext.ts'

export type { EjectReason, EjectReport } from './eject.ts'
export type { PolicyContext } from './policycontext.ts'

/**
 * A scheduling policy: what a user writes. Every CPU loads it and calls it on its own thread, so data that
 * CPUs share lives in the words of the context (`words`, `taskWords`), and is accessed with Atomics; data of
 * one CPU may live in variables. `task` is the task's pointer: a number that is valid until the task ends.
 *
 * The path of a task: it becomes runnable, and `selectCpu` may choose a CPU. That CPU calls `enqueue`,
 * which puts it on a dispatch queue, or keeps it for later. A CPU that has nothing on its local queue calls
 * `dispatch`, which takes tasks from dispatch queues to the local one. `running` and `stopping` report its
 * turns, `tick` the interrupts during a turn.
 *
 * No lock is held in these calls, except in `selectCpu`, which holds the task's own: it may read, return a
 * CPU and dispatch this task to `local`, and nothing else. All of them must return soon: the CPU does nothing
 * else until then.
 */
export interface Policy {
  readonly name: string
  /**
   * Milliseconds of a slice, for dispatches that give none. Default: the kernel's.
   */
  readonly slice?: number
  /**
   * A task that yields while no other task waits on its CPU is enqueued too, if it could run on another CPU.
   * Default: it keeps the CPU.
   */
  readonly takesLast?: boolean
  /**
   * The CPU that a waking task goes to, or -1: the kernel chooses. Only for tasks that may run on several.
   */
  selectCpu?(context: PolicyContext, task: number, lastCpu: number): number
  /** The task can run: the policy places it. `flags`: ENQUEUE_ bits. */
  enqueue(context: PolicyContext, task: number, flags: number): void
  /**
   * A task that was passed to the policy, and has not reached a local queue, is no longer runnable here.
   */
  dequeue?(context: PolicyContext, task: number): void
  /**
   * This CPU has nothing to run. `previous`: the task that yields and could keep the CPU, or 0. Default:
   * takes from `global`.
   */
  dispatch?(context: PolicyContext, cpu: number, previous: number): void
  running?(context: PolicyContext, task: number): void
  /** It has left its CPU. `runnable`: it still wants to run, and is enqueued next. */
  stopping?(context: PolicyContext, task: number, runnable: boolean): void
  /**
   * A started task that can move waits for a lock here, and has just yielded: the CPU that it should continue
   * on, or -1. At most once for each wait that follows; the kernel ignores a CPU that the task may not use.
   */
  moveTo?(context: PolicyContext, task: number): number
  /** The CPU was interrupted while the task runs: its slice has ended, or another reason. */
  tick?(context: PolicyContext, task: number): void
  /** The first call, on every CPU. The policy creates its queues here. */
  enable?(context: PolicyContext): void
  /** The last call, on every CPU: unloaded, or ejected. Its tasks are in the fair class by now. */
  exit?(context: PolicyContext, report: EjectReport): void
}

/** The default export of a policy module: a policy, or a function that makes one for each CPU. */
export type PolicySource = Policy | (() => Policy)

/** It was not runnable before, or comes from another CPU or class. */
export const ENQUEUE_CAME = 1
/** The policy has not seen it before. Its task words are 0. */
export const ENQUEUE_NEW = 2
/** It yielded. */
export const ENQUEUE_YIELDED = 4
/** Its slice has ended. */
export const ENQUEUE_SLICE_ENDED = 8

/** Throws a TypeError that says what is wrong, unless this is a policy. */
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

const OPERATIONS = [
  'selectCpu',
  'dequeue',
  'dispatch',
  'running',
  'stopping',
  'moveTo',
  'tick',
  'enable',
  'exit',
]
