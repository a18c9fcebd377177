import { acquire, release } from '../../arena/sync/spinlock.ts'
import { blocking } from '../../coroutine/core/blocking.ts'
import { CoroutineError } from '../../coroutine/core/errors.ts'
import { inside } from '../../coroutine/core/faces.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { Entity } from '../../sched/core/entity.ts'
import { beginSleep, endSleep, wakeupOnChannel } from '../../sched/core/sleep.ts'
import { SWITCH_SLEEPS } from '../../sched/core/switch.ts'
import { INTERRUPTIBLE, TaskRecord, SLEEP_TIMED_OUT } from '../../sched/core/taskrecord.ts'
import type { KernelCpu } from './kernelcpu.ts'
import { show } from '../boot/options.ts'
import { here } from './here.ts'

/**
 * Sleep channels: a task sleeps on a number, and a wakeup of that number wakes the tasks that sleep on it,
 * best priority first, then first come. The number means what the program says. The scheduler's own channels
 * are pointers, above 0; a program's are below.
 *
 * With a mutex, which guards the condition, no wakeup is lost:
 *
 *   sleeper, has the mutex                     waker
 *   ----------------------                     -----
 *   the condition does not hold
 *   (A) is on the wait tree
 *   (B) unlocks the mutex
 *                                              locks it; makes the condition hold; unlocks it
 *                                              (C) takes the sleeper off the tree; it is not asleep yet
 *   (D) it is off the tree: does not sleep
 *   locks the mutex again
 *
 * Were (B) before (A), (C) would find nobody, and the sleeper sleep on. Without a mutex the caller has to
 * bear a wakeup that comes before it sleeps.
 */
export interface SleepOnOptions {
  /** Milliseconds; then the sleep ends, and the call says false. */
  readonly timeout?: number | undefined
  /** A mutex that the task holds: unlocked while it sleeps, locked again before the call returns. */
  readonly mutex?: SleepMutex | undefined
}

/** A `Mutex`, as far as a sleep needs it. */
export interface SleepMutex {
  lock(): unknown
  unlock(): void
}

/**
 * Sleeps until a `wakeupOn` of this channel. True: it was woken; look at the condition again, another task
 * may have come first. False: the time was over.
 */
export const sleepOn: (
  channel: number,
  options?: SleepOnOptions,
) => Generator<number, boolean, unknown> & boolean = blocking(
  'sleepOn',
  function* (channel: number, { timeout = Infinity, mutex }: SleepOnOptions = {}) {
    const at = channelOf('sleepOn', channel)
    if (typeof timeout !== 'number' || !(timeout >= 0))
      throw new RangeError(
        `sleepOn(${channel}, { timeout: ${show(timeout)} }): give milliseconds of at least 0`,
      )
    const on = here.cpu
    if (on === null)
      throw new CoroutineError(
        'ERR_HEDDLE_RUNNING_CO_NULL',
        `sleepOn(${channel}): only a task of a kernel sleeps on a channel; use a Condition`,
      )
    const slept = yield* sleepOnTree(on, at, timeout, mutex)
    if (mutex !== undefined) {
      yield* inside(() => mutex.lock()) as Generator<number, unknown, unknown>
    }
    return slept
  },
) as never

function* sleepOnTree(
  on: KernelCpu,
  channel: number,
  timeout: number,
  mutex: SleepMutex | undefined,
): Generator<number, boolean, unknown> {
  const run = on.currentRun()
  const { task } = run
  const { s } = on
  const { i32, thread, waitTree, sleepLock } = s
  on.throwIfKilled(run)
  acquire(thread, sleepLock)
  waitTree.add(task, channel, i32[i32[task + TaskRecord.entity] + Entity.priority]) // (A)
  release(thread, sleepLock)
  try {
    mutex?.unlock() // (B)
    acquire(thread, sleepLock)
    const sleeps = waitTree.isQueued(task) && beginSleep(s, task, INTERRUPTIBLE, timeout) // (D)
    release(thread, sleepLock)
    if (sleeps) {
      yield SWITCH_SLEEPS
      return endSleep(s, task, timeout) !== SLEEP_TIMED_OUT
    }
    on.throwIfKilled(run)
    return true
  } finally {
    acquire(thread, sleepLock)
    if (waitTree.isQueued(task)) waitTree.take(task)
    release(thread, sleepLock)
  }
}

resumable(sleepOnTree)

/**
 * Wakes the tasks that sleep on the channel, at most `limit`; how many. From a task, or from the thread that
 * booted the kernel.
 */
export function wakeupOn(channel: number, limit: number = Infinity): number {
  const at = channelOf('wakeupOn', channel)
  if (typeof limit !== 'number' || !(limit >= 0))
    throw new RangeError(
      `wakeupOn(${channel}, ${show(limit)}): the limit is a number of tasks, of at least 0`,
    )
  const { view } = here
  if (view === null)
    throw new CoroutineError(
      'ERR_HEDDLE_RUNNING_CO_NULL',
      `wakeupOn(${channel}): there is no kernel on this thread; boot one, or use a Condition`,
    )
  return wakeupOnChannel(view.s, at, limit)
}

function channelOf(what: string, channel: number): number {
  if (!Number.isInteger(channel) || channel < 0 || channel > 0x7fff_fffe) {
    throw new RangeError(`${what}(${show(channel)}): a channel is an integer from 0 to 2147483646`)
  }
  return ~channel
}
