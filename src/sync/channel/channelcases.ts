import { suspendForm } from '../../coroutine/core/blocking.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { currentFutexes } from '../../futex/core/currentfutexes.ts'
import { deadlineOf, sleepMs, timeLeft, WALL_STEP_MS, wokeEarly } from '../../futex/core/deadline.ts'
import { startAlarm } from '../../machine/timekeeper/alarm.ts'
import type { Channel } from './channel.ts'
import { SyncError } from '../wait/errors.ts'
import { type LocalPipe, Selection } from './localpipe.ts'
import { CasesWait } from './sharedcases.ts'
import { SharedPipe } from './sharedpipe.ts'
import { limitOf, waitAsync, waitSync, waitTask, type WaitOptions } from '../wait/waiting.ts'

/** A send or a receive at a channel, in a wait for one or several. */
export interface ChannelCase {
  readonly channel: Channel<any>
  readonly sends: boolean
  readonly value: unknown
}

/** The result of a wait. */
export interface Served {
  /** Which case. */
  readonly index: number
  /** The received value. */
  readonly value: unknown
  /** The channel was closed: nothing was sent, and nothing is left to be received. */
  readonly closed: boolean
}

let turn = 0

/**
 * Waits until one of the cases was served. If all channels are local, the wait stays on this thread; if one
 * is shared, all become shared.
 */
class ChannelWait {
  readonly what: string
  readonly cases: readonly ChannelCase[]
  private readonly start: number

  constructor(what: string, cases: readonly ChannelCase[]) {
    this.what = what
    this.cases = cases
    this.start = cases.length === 1 ? 0 : turn++ % cases.length
  }

  /** The local channels, or null: at least one is shared, and now all are. */
  local(): LocalPipe[] | null {
    const pipes: LocalPipe[] = []
    for (const { channel } of this.cases) {
      if (!(channel.pipe instanceof SharedPipe)) pipes.push(channel.pipe)
    }
    if (pipes.length === this.cases.length) return pipes
    for (const { channel } of this.cases) channel.share()
    return null
  }

  shared(): CasesWait {
    const cases = this.cases.map(({ channel, sends, value }) => ({ pipe: channel.share(), sends, value }))
    return new CasesWait(this.what, cases, this.start)
  }

  tryLocal(pipes: readonly LocalPipe[]): Served | null {
    for (let at = 0; at < pipes.length; at++) {
      const index = (this.start + at) % pipes.length
      const pipe = pipes[index]
      const { sends, value } = this.cases[index]
      if (sends ? !pipe.closed && pipe.put(value) : pipe.take()) {
        return { index, value: sends ? undefined : pipe.taken, closed: false }
      }
      if (pipe.closed) return { index, value: undefined, closed: true }
    }
    return null
  }

  queue(pipes: readonly LocalPipe[]): Selection {
    const selection = new Selection()
    pipes.forEach((pipe, index) => {
      const { sends, value } = this.cases[index]
      pipe.add(sends, { selection, index, value })
    })
    return selection
  }

  /** Ends the wait at local channels; a value that it received meanwhile is put back. */
  abandon(pipes: readonly LocalPipe[], selection: Selection): void {
    if (!selection.over) selection.over = true
    else if (!selection.moved && !selection.closed && !this.cases[selection.index].sends) {
      pipes[selection.index].putBack(selection.value)
    }
    for (const pipe of pipes) pipe.forget(selection)
  }
}

/** Without waiting; null: no case can be served now. */
export function tryCases(what: string, channelCases: readonly ChannelCase[]): Served | null {
  const waiting = new ChannelWait(what, channelCases)
  const pipes = waiting.local()
  if (pipes !== null) return waiting.tryLocal(pipes)
  const cases = waiting.shared()
  if (cases.attempt(currentFutexes().context)) return cases
  cases.giveUp()
  return null
}

/** In a task. Null: the time is over. */
export function* casesInTask(
  what: string,
  channelCases: readonly ChannelCase[],
  options: WaitOptions | undefined,
): Generator<number, Served | null, unknown> {
  const waiting = new ChannelWait(what, channelCases)
  for (;;) {
    const pipes = waiting.local()
    if (pipes === null) {
      const cases = waiting.shared()
      return (yield* waitTask(cases, options)) ? cases : null
    }
    const served = waiting.tryLocal(pipes)
    if (served !== null) return served
    const selection = waiting.queue(pipes)
    const nap = napWithin(options)
    try {
      yield* suspendForm(waker => {
        selection.wake = () => waker.wake()
      }, nap)
    } catch (thrown) {
      waiting.abandon(pipes, selection)
      if (!isTimeout(thrown, nap)) throw thrown
      if (isOver(options)) return null
      continue
    }
    for (const pipe of pipes.length > 1 ? pipes : []) pipe.forget(selection)
    if (!selection.moved) return selection
  }
}

resumable(casesInTask)

/** Blocking the thread. Null: the time is over. */
export function casesOnThread(
  what: string,
  channelCases: readonly ChannelCase[],
  options: WaitOptions | undefined,
): Served | null {
  const waiting = new ChannelWait(what, channelCases)
  const pipes = waiting.local()
  if (pipes === null) {
    const cases = waiting.shared()
    return waitSync(cases, options) ? cases : null
  }
  const served = waiting.tryLocal(pipes)
  if (served !== null) return served
  if (limitOf(options) !== Infinity) {
    // Only the timeout can end it.
    const { now } = currentFutexes().context
    const deadline = deadlineOf(now, limitOf(options))
    const nothing = new Int32Array(new SharedArrayBuffer(4))
    for (let left = timeLeft(now, deadline); left > 0; ) {
      Atomics.wait(nothing, 0, 0, sleepMs(deadline, left))
      if (!wokeEarly(now, deadline, left)) break
      left = timeLeft(now, deadline)
    }
    return null
  }
  throw new SyncError(
    'ERR_HEDDLE_DEADLOCK',
    `${what}: no other thread has the channel, so the wait would never end; use the verb of tasks, or ${what.replace(/Sync$/, '')}Async`,
  )
}

export async function casesAsync(
  what: string,
  channelCases: readonly ChannelCase[],
  options: WaitOptions | undefined,
): Promise<Served | null> {
  const waiting = new ChannelWait(what, channelCases)
  for (;;) {
    const pipes = waiting.local()
    if (pipes === null) {
      const cases = waiting.shared()
      return (await waitAsync(cases, options)) ? cases : null
    }
    const served = waiting.tryLocal(pipes)
    if (served !== null) return served
    const selection = waiting.queue(pipes)
    const result = await awaitSelection(selection, napWithin(options))
    if (result !== SERVED) {
      waiting.abandon(pipes, selection)
      if (result === TIME_OVER) {
        if (isOver(options)) return null
        continue
      }
      throw options?.signal?.reason
    }
    for (const pipe of pipes.length > 1 ? pipes : []) pipe.forget(selection)
    if (!selection.moved) return selection
  }
}

const SERVED = 0
const TIME_OVER = 1
const ABORTED = 2

function awaitSelection(selection: Selection, options: WaitOptions | undefined): Promise<number> {
  const { timeout, signal } = options ?? {}
  return new Promise<number>(resolve => {
    let cancel = (): void => undefined
    const finish = (result: number): void => {
      cancel()
      signal?.removeEventListener('abort', onAbort)
      resolve(selection.over ? SERVED : result)
    }
    const onAbort = (): void => finish(ABORTED)
    selection.wake = () => finish(SERVED)
    if (timeout !== undefined) cancel = startAlarm(timeout, () => finish(TIME_OVER))
    signal?.addEventListener('abort', onAbort)
  })
}

/** A wait for a moment of the wall clock goes in steps, because that clock may be set. */
function napWithin(options: WaitOptions | undefined): WaitOptions | undefined {
  if (options?.until === undefined) return options
  const left = Number(options.until) - Date.now()
  return { signal: options.signal, timeout: Math.min(WALL_STEP_MS, Math.max(0, left)) }
}

/** A nap is over: whether the wait is, too. */
function isOver(options: WaitOptions | undefined): boolean {
  return options?.until === undefined || Number(options.until) <= Date.now()
}

function isTimeout(thrown: unknown, options: WaitOptions | undefined): boolean {
  return (
    options?.timeout !== undefined &&
    thrown instanceof DOMException &&
    thrown.name === 'TimeoutError' &&
    thrown !== options.signal?.reason &&
    thrown.message.startsWith('suspend:')
  )
}
