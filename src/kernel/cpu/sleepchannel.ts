import { show } from '../../coroutine/core/knownoptions.ts'
import { blocking } from '../../coroutine/core/blocking.ts'
import { CoroutineError } from '../../coroutine/core/errors.ts'
import { inside } from '../../coroutine/core/faces.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { sleepOnChannel, wakeupOnChannel } from '../../sched/core/sleep.ts'
import { INTERRUPTIBLE, SLEEP_TIMED_OUT } from '../../sched/core/taskrecord.ts'

import { here } from './here.ts'

/**
 * Sleep channels: a task sleeps on a number, and a wakeup of that number wakes the tasks that sleep on it,
 * by priority, then by age. The program chooses what the number means. To the scheduler, channel 0
 * means none.
 *
 * With a mutex that guards the condition no wakeup is lost (sched/core/sleep.ts). Without one, a wakeup that
 * comes before the sleep is lost, and the caller must allow for that.
 */
export interface SleepOnOptions {
  /** Milliseconds; then the sleep ends, and the call returns false. */
  readonly timeout?: number | undefined
  /** A mutex that the task holds: unlocked while it sleeps, locked again before the call returns. */
  readonly mutex?: SleepMutex | undefined
}

/** The part of a `Mutex` that a sleep needs. */
export interface SleepMutex {
  lock(): unknown
  unlock(): void
}

/**
 * Sleeps until a `wakeupOn` of this channel. True: it was woken; check the condition again, because another
 * task may have been first. False: the time is over.
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
    const run = on.currentRun()
    on.throwIfKilled(run)
    const unlock = mutex === undefined ? undefined : () => mutex.unlock()
    const reason = yield* sleepOnChannel({ s: on.s, task: run.task }, at, INTERRUPTIBLE, timeout, unlock)
    on.throwIfKilled(run)
    if (mutex !== undefined) {
      yield* inside(() => mutex.lock()) as Generator<number, unknown, unknown>
    }
    return reason !== SLEEP_TIMED_OUT
  },
) as never

resumable(sleepOnChannel)

/**
 * Wakes the tasks that sleep on the channel, at most `limit`. Returns how many. From a task, or from the
 * booting thread.
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
  return channel + 1
}
