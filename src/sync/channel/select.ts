import type { Blocking } from '../../coroutine/core/blocking.ts'
import { checkSignal, checkTime } from '../../coroutine/core/blocking.ts'
import { show } from '../../coroutine/core/knownoptions.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import { blocks, facesOpen, toRun } from '../../coroutine/core/faces.ts'
import { Channel } from './channel.ts'
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

/** A case of a select: the first that happens ends it. */
export type SelectCase =
  | { readonly receive: Channel<any> }
  | { readonly send: Channel<any>; readonly value: unknown }
  /** That many milliseconds have passed. */
  | { readonly timeout: number }
  /** It is aborted. A thread that blocks checks it only before it blocks. */
  | { readonly signal: AbortSignal }
  /** None of the others can happen now. */
  | { readonly otherwise: true }

export interface Selected {
  /** Which case it was. */
  readonly index: number
  /** The received value, or the reason of the signal. */
  readonly value: any
  /** The channel of the case is closed: nothing was sent, or nothing is left to be received. */
  readonly closed: boolean
}

/** The case, if it is one. */
function checkCase(given: unknown, index: number): SelectCase {
  const each = Object(given) as Partial<Record<'receive' | 'send' | 'otherwise' | 'signal', unknown>>
  const isOfChannel = 'receive' in each || 'send' in each
  const channel = 'receive' in each ? each.receive : each.send
  if (isOfChannel && !(channel instanceof Channel))
    throw new TypeError(`select: case ${index}: ${show(channel)} is not a Channel; give a channel`)
  if ('signal' in each) {
    if (each.signal === undefined)
      throw new TypeError(
        `select: case ${index}: signal: undefined is not an AbortSignal; leave the case out`,
      )
    checkSignal(each.signal)
  }
  if ('otherwise' in each && each.otherwise !== true)
    throw new TypeError(
      `select: case ${index}: otherwise: ${show(each.otherwise)} is not true; give true, or leave the case out`,
    )
  let count = 0
  for (const kind of kinds) if (kind in each) count++
  if (count !== 1) {
    const its = kinds.filter(kind => kind in each)
    const has = count === 0 ? `none of ${kinds.join(', ')}` : its.join(' and ')
    throw new TypeError(`select: case ${index} has ${has}; a case has one of them, so give each its own`)
  }
  return each as SelectCase
}

const kinds = ['receive', 'send', 'timeout', 'signal', 'otherwise'] as const

/** The cases by kind. */
class Cases {
  readonly channelCases: ChannelCase[] = []
  /** Which case of the caller each of them is. */
  private readonly indexes: number[] = []
  private readonly signals: { readonly signal: AbortSignal; readonly index: number }[] = []
  private timer = -1
  private timeout = Infinity
  private otherwise = -1

  constructor(cases: readonly SelectCase[]) {
    if (!Array.isArray(cases))
      throw new TypeError(
        `select(cases): ${show(cases)} is not a list; give a list of cases, as in [{ receive: channel }]`,
      )
    cases.forEach((given: unknown, index) => {
      const each = checkCase(given, index)
      if ('receive' in each) this.addChannel(each.receive.end(false), index)
      else if ('send' in each) this.addChannel(each.send.end(true, each.value), index)
      else if ('timeout' in each) this.addTimer(each.timeout, index)
      else if ('signal' in each) this.signals.push({ signal: each.signal, index })
      else this.otherwise = index
    })
    if (cases.length === 0) throw new TypeError('select: the list of cases is empty; give at least one')
  }

  /** The case that has happened already, or null. */
  now(): Selected | null {
    const served = this.channelCases.length === 0 ? null : tryCases('select', this.channelCases)
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
    return { index: this.indexes[served.index], value: served.value, closed: served.closed }
  }

  timedOut(): Selected {
    return { index: this.timer, value: undefined, closed: false }
  }

  /** The wait threw. If a case caused it, that case is the result; else the error is thrown on. */
  thrown(error: unknown, signal: AbortSignal | undefined): Selected {
    const aborted = signal?.aborted ? undefined : this.signals.find(each => each.signal.aborted)
    if (aborted === undefined || aborted.signal.reason !== error) throw error
    return { index: aborted.index, value: error, closed: false }
  }

  private addChannel(channelCase: ChannelCase, index: number): void {
    this.channelCases.push(channelCase)
    this.indexes.push(index)
  }

  private addTimer(ms: number, index: number): void {
    checkTime('select: timeout', ms)
    if (ms >= this.timeout) return
    this.timeout = ms
    this.timer = index
  }
}

/** In a task: waits for the first of the cases. When several can happen, no channel is preferred for long. */
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
    const served = yield* casesInTask('select', all.channelCases, all.options(options.signal))
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
  const served = casesOnThread('selectSync', all.channelCases, all.options(options.signal))
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
    const served = await casesAsync('select', all.channelCases, all.options(options.signal))
    return served === null ? all.timedOut() : all.ended(served)
  } catch (error) {
    return all.thrown(error, options.signal)
  }
}
