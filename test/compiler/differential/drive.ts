import { inspect } from 'node:util'
import { coroutineOf, setSafepointFlag, twinOf } from '../../../src/coroutine/core/coroutine.ts'

/** The outcome of a program as text, to compare runs of separate modules. */
export interface Outcome {
  ended: 'returned' | 'threw' | 'resolved' | 'rejected'
  value: string
  log: string[]
}

export type Log = (...values: unknown[]) => unknown
export type Program = (log: Log) => unknown

/** No program here has this many safepoints: one that reaches more never ends. */
const preemptions_max = 20_000_000

const raised = Int32Array.of(1)
const lowered = Int32Array.of(0)

/** Runs a program as plain code. */
export function runPlain(program: Program): Promise<Outcome> {
  return observe(log => program(log))
}

interface Preempted extends Outcome {
  preemptions: number
}

/**
 * Runs a program's twin. With `every`, the safepoint flag stays set, so that the coroutine is preempted at
 * every safepoint. Throws if the program has no twin.
 */
export async function runTwin(program: Program, every: boolean): Promise<Preempted> {
  let preemptions = 0
  const outcome = await observe(log => {
    const done = drive(program, [log], undefined, every)
    preemptions = done.preemptions
    if (done.threw) throw done.value
    return done.value
  })
  return { ...outcome, preemptions }
}

/**
 * Calls a function's twin with `args` and preempts it at every safepoint. Returns its result and the number
 * of preemptions.
 */
export function preemptEverywhere(
  program: (...args: any[]) => unknown,
  args: unknown[],
  receiver?: unknown,
): { value: any; preemptions: number } {
  const { threw, value, preemptions } = drive(program, args, receiver, true)
  if (threw) throw value
  return { value, preemptions }
}

function drive(
  program: (...args: any[]) => unknown,
  args: unknown[],
  receiver: unknown,
  every: boolean,
): { threw: boolean; value: unknown; preemptions: number } {
  if (twinOf(program) === undefined) throw new Error(`${program.name} has no twin`)
  const coroutine = coroutineOf(program, args, receiver)
  let preemptions = 0
  setSafepointFlag(every ? raised : lowered, 0)
  try {
    for (let finished = coroutine.start(); !finished; finished = coroutine.resume()) {
      if (coroutine.state !== 'preempted') throw new Error(`the coroutine is ${coroutine.state}`)
      if (++preemptions > preemptions_max) throw new Error(`${program.name} goes on and on`)
    }
  } finally {
    setSafepointFlag(lowered, 0)
  }
  return { threw: coroutine.state === 'threw', value: coroutine.result, preemptions }
}

export async function observe(run: (log: Log) => unknown): Promise<Outcome> {
  const lines: string[] = []
  const log: Log = (...values) => {
    lines.push(values.map(show).join(' '))
    return values.at(-1)
  }
  let returned: unknown
  try {
    returned = run(log)
  } catch (error) {
    return { ended: 'threw', value: show(error), log: lines }
  }
  if (!(returned instanceof Promise)) return { ended: 'returned', value: show(returned), log: lines }
  try {
    return { ended: 'resolved', value: show(await returned), log: lines }
  } catch (error) {
    return { ended: 'rejected', value: show(error), log: lines }
  }
}

/** A value as text: everything that a program can distinguish; for errors only the class and the message. */
export function show(value: unknown): string {
  if (value instanceof Error) {
    const parts = [`${value.constructor.name}: ${value.message}`]
    if (value.cause !== undefined) parts.push(`cause ${show(value.cause)}`)
    if (value instanceof AggregateError) parts.push(...value.errors.map(show))
    return parts.join('; ')
  }
  return inspect(value, { depth: 12, maxArrayLength: null, maxStringLength: null, breakLength: Infinity })
}
