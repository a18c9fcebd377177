import { CheckError } from '../errors.ts'
import type { AsyncEvent } from './agenda.ts'
import { type Execution, show } from './execution.ts'
import { isDuration } from './options.ts'
import type { IoOptions, Outside } from './program.ts'

const NONE: IoOptions = {}

/** The outside world of one execution. */
export function outsideOf(execution: Execution): Outside {
  return {
    io: (name: string, answer?: unknown, options: IoOptions = NONE) =>
      operation(execution, name, answer, options),
    choose: (...values: readonly unknown[]) => {
      if (values.length === 0)
        throw wrong(execution, 'choose() has nothing to choose from; give it the values to try')
      if (values.length === 1) return values[0]
      return values[execution.choose(values.length, `choose ${values.length}`)]
    },
  } as Outside
}

function operation(
  execution: Execution,
  name: string,
  answer: unknown,
  options: IoOptions,
): Promise<unknown> {
  if (typeof name !== 'string') {
    throw wrong(
      execution,
      `io(${show(name)}): the first argument names the operation; io('load user', () => user)`,
    )
  }
  refuseOptions(execution, name, options)
  const { line, signal } = options
  const delay = durationOf(execution, name, options.takes)
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    const happen = (): void => {
      signal?.removeEventListener('abort', abort)
      try {
        const value = typeof answer === 'function' ? (answer as () => unknown)() : answer
        execution.witness?.settled(event, value === undefined ? 'is done' : `→ ${show(value)}`)
        resolve(value)
      } catch (error) {
        execution.witness?.settled(event, `fails: ${show(error)}`)
        reject(error)
      }
    }
    const time = delay === undefined ? 'free' : 'exact'
    const event: AsyncEvent = execution.add({
      kind: 'io',
      name,
      task: execution.task,
      time,
      delay,
      line,
      keeps: true,
      happen,
    })
    const abort = (): void => {
      if (execution.agenda.remove(event)) reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** An option that means nothing, or a signal that is none, would leave orders out in silence. */
function refuseOptions(execution: Execution, name: string, options: IoOptions): void {
  const call = `io(${show(name)})`
  if (typeof options !== 'object' || options === null)
    throw wrong(
      execution,
      `${call}: ${show(options)} is not an object with options; give { takes, line, signal }`,
    )
  for (const key in options) {
    if (key !== 'takes' && key !== 'line' && key !== 'signal')
      throw wrong(execution, `${call}: there is no option ${show(key)}; it takes takes, line, signal`)
  }
  const { signal } = options as { signal?: Partial<AbortSignal> | null }
  if (signal !== undefined && signal !== null && typeof signal.addEventListener !== 'function')
    throw wrong(execution, `${call}: \`signal\` is ${show(signal)}; it must be an AbortSignal`)
}

function durationOf(execution: Execution, name: string, takes: IoOptions['takes']): number | undefined {
  if (takes === undefined) return undefined
  if (!isDuration(takes)) {
    const text = `\`takes\` is ${show(takes)}; it must be a number of milliseconds from 0 on, or a list of them`
    throw wrong(execution, `io(${show(name)}): ${text}`)
  }
  return execution.oneOf(takes, `${name} takes`)
}

function wrong(execution: Execution, text: string): CheckError {
  return execution.refuse(new CheckError('ERR_CHECK_SETUP', text))
}
