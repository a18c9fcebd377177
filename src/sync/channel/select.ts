import type { Blocking } from '../../coroutine/core/blocking.ts'
import { checkTime } from '../../coroutine/core/blocking.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import { blocks, facesOpen, toRun } from '../../coroutine/core/faces.ts'
import type { Channel } from './channel.ts'
import {
  type ChannelCase,
  casesAsync,
  casesInTask,
  casesOnThread,
  type Served,
  tryCases,
} from './channelcases.ts'
import { refuseInTask, refuseOutsideTask } from '../wait/caller.ts'
import { checkWait, type WaitOptions } from '../wait/waiting.ts'

/** What can happen in a select, whichever is first. */
export type SelectCase =
  | { readonly receive: Channel<any> }
  | { readonly send: Channel<any>; readonly value: unknown }
  /** That many milliseconds have passed. */
  | { readonly timeout: number }
  /** It is aborted. A thread that blocks looks at it only before it does. */
  | { readonly signal: AbortSignal }
  /** None of the others can happen now. */
  | { readonly otherwise: true }

export interface Selected {
  /** Which case it was. */
  readonly index: number
  /** What was received, or the reason of the signal. */
  readonly value: any
  /** The channel of the case is closed: nothing was sent, or nothing is left to be received. */
  readonly closed: boolean
}

/** The cases sorted by what they need. */
class Cases {
  readonly ends: ChannelCase[] = []
  private readonly places: number[] = []
  private readonly signals: { readonly signal: AbortSignal; readonly index: number }[] = []
  private timer = -1
  private timeout = Infinity
  private otherwise = -1

  constructor(cases: readonly SelectCase[]) {
    cases.forEach((each, index) => {
      if ('receive' in each) this.addEnd(each.receive.end(false), index)
      else if ('send' in each) this.addEnd(each.send.end(true, each.value), index)
      else if ('timeout' in each) this.addTimer(each.timeout, index)
      else if ('signal' in each) this.signals.push({ signal: each.signal, index })
      else if ('otherwise' in each) this.otherwise = index
      else throw new TypeError(`select: case ${index} is none of receive, send, timeout, signal, otherwise`)
    })
    if (cases.length === 0) throw new TypeError('select: no case, and nothing that could ever happen')
  }

  /** What can be said without waiting. */
  now(): Selected | null {
    const served = this.ends.length === 0 ? null : tryCases('select', this.ends)
    if (served !== null) return this.ended(served)
    const aborted = this.signals.find(({ signal }) => signal.aborted)
    if (aborted !== undefined) return { index: aborted.index, value: aborted.signal.reason, closed: false }
    if (this.otherwise >= 0) return { index: this.otherwise, value: undefined, closed: false }
    return this.timeout === 0 ? this.timedOut() : null
  }

  /** How long to wait, and what ends it: the cases' own signals and the call's. */
  options(signal: AbortSignal | undefined): WaitOptions {
    const signals = this.signals.map(each => each.signal)
    if (signal !== undefined) signals.push(signal)
    return {
      ...(this.timeout !== Infinity && { timeout: this.timeout }),
      ...(signals.length > 0 && { signal: signals.length === 1 ? signals[0] : AbortSignal.any(signals) }),
    }
  }

  ended(served: Served): Selected {
    return { index: this.places[served.index], value: served.value, closed: served.closed }
  }

  timedOut(): Selected {
    return { index: this.timer, value: undefined, closed: false }
  }

  /**
   * A wait was thrown out of: by one of the cases, which is then what happened, or by something else, which
   * goes on.
   */
  thrown(error: unknown, signal: AbortSignal | undefined): Selected {
    const aborted = signal?.aborted ? undefined : this.signals.find(each => each.signal.aborted)
    if (aborted === undefined || aborted.signal.reason !== error) throw error
    return { index: aborted.index, value: error, closed: false }
  }

  private addEnd(end: ChannelCase, index: number): void {
    this.ends.push(end)
    this.places.push(index)
  }

  private addTimer(ms: number, index: number): void {
    checkTime('select: timeout', ms)
    if (ms >= this.timeout) return
    this.timeout = ms
    this.timer = index
  }
}

/**
 * In a task: waits for the first of the cases to happen. When several can, no channel is preferred for long.
 */
export const select: (
  cases: readonly SelectCase[],
  options?: Pick<WaitOptions, 'signal'>,
) => Blocking<Selected> = (cases, options) => {
  if (!facesOpen()) refuseOutsideTask('select')
  return toRun('select', selectInTask(cases, options)) as Blocking<Selected>
}

function* selectInTask(
  cases: readonly SelectCase[],
  options: Pick<WaitOptions, 'signal'> = {},
): Generator<number, Selected, unknown> {
  checkWait(options)
  const all = new Cases(cases)
  const now = all.now()
  if (now !== null) return now
  try {
    const served = yield* casesInTask('select', all.ends, all.options(options.signal))
    return served === null ? all.timedOut() : all.ended(served)
  } catch (error) {
    return all.thrown(error, options.signal)
  }
}

Object.defineProperty(selectInTask, blocks, { value: true })
Object.defineProperty(select, twin, { value: resumable(selectInTask) })

export function selectSync(
  cases: readonly SelectCase[],
  options: Pick<WaitOptions, 'signal'> = {},
): Selected {
  refuseInTask('select')
  checkWait(options)
  const all = new Cases(cases)
  const now = all.now()
  if (now !== null) return now
  const served = casesOnThread('selectSync', all.ends, all.options(options.signal))
  return served === null ? all.timedOut() : all.ended(served)
}

export async function selectAsync(
  cases: readonly SelectCase[],
  options: Pick<WaitOptions, 'signal'> = {},
): Promise<Selected> {
  checkWait(options)
  const all = new Cases(cases)
  const now = all.now()
  if (now !== null) return now
  try {
    const served = await casesAsync('select', all.ends, all.options(options.signal))
    return served === null ? all.timedOut() : all.ended(served)
  } catch (error) {
    return all.thrown(error, options.signal)
  }
}
