import type { DataRace, DataRaces } from '../search/datarace.ts'
import { asCheckError, CheckError } from '../errors.ts'
import { CHANGED } from '../machine/eventlog.ts'
import type { Ended } from '../search/explorer.ts'
import type { Fault, Machine } from '../machine/machine.ts'
import { ASLEEP, BLOCKED, CRASHED, FINISHED, SPINNING, UNBORN } from '../machine/threadstates.ts'
import { NOTIFY, WAIT, WAIT_ASYNC } from '../machine/operations.ts'
import { pending, siteName } from '../machine/pending.ts'
import { FINAL, requireEnded } from '../machine/program.ts'
import type { Crash, Schedule } from '../machine/schedule.ts'

export type FailureKind =
  | 'assertion'
  | 'exception'
  | 'deadlock'
  | 'lost-wakeup'
  | 'livelock'
  | 'data-race'
  | 'use-after-free'
  | 'nondeterminism'
  | 'unexpected-outcome'
  | 'unreached-outcome'

/** A failure of an execution, and the schedule that reproduces it. */
export interface Failure {
  readonly kind: FailureKind
  /** One line. */
  readonly title: string
  /** Further explanations, one line each. */
  readonly detail: readonly string[]
  readonly schedule: Schedule
  /** The events to mark, as positions in the schedule. */
  readonly marked: readonly number[]
  readonly error: unknown
  /**
   * Found under `memory: 'weak'`: the schedule is a memory order, and cannot be replayed as an interleaving.
   */
  readonly weak?: true
}

/**
 * Judges the execution that has just ended on a machine. `common`: how many events it has in common with the
 * execution that was judged before, counted from the beginning.
 */
export function judge(
  machine: Machine,
  ended: Ended,
  races: DataRaces | undefined,
  common: number,
  crashes: readonly Crash[],
): Failure | undefined {
  const { log } = machine
  const upTo = (length: number): Schedule => ({
    threads: Array.from(log.thread.subarray(0, length)),
    crashes,
  })
  const fault = machine.faults[0]
  if (fault !== undefined) {
    const wrong = asCheckError(fault.error)
    if (wrong !== undefined) throw wrong
    // By name: the code under check may use another copy of the runtime.
    if (fault.error instanceof Error && fault.error.name === 'EndlessLoopError') {
      throw new CheckError('ERR_CHECK_ENDLESS', fault.error.message, { cause: fault.error })
    }
    if (fault.kind === 'invariant') return brokenInvariant(machine, fault, upTo)
    const name = machine.names[fault.thread]
    const freed = fault.kind === 'use-after-free'
    return {
      kind: freed ? 'use-after-free' : isAssertion(fault.error) ? 'assertion' : 'exception',
      title: freed
        ? `${name}: ${messageOf(fault.error)}`
        : `${isAssertion(fault.error) ? 'assertion failed' : 'uncaught exception'} in ${name}: ${messageOf(fault.error)}`,
      detail: [],
      // An access to freed memory is found during its event, an error of a thread after its event.
      schedule: upTo(freed ? fault.at + 1 : fault.at),
      marked: freed ? [fault.other, fault.at].filter(at => at >= 0) : fault.at > 0 ? [fault.at - 1] : [],
      error: fault.error,
    }
  }
  if (races !== undefined) {
    const race = races.find(machine.memory.cells, common)
    if (race !== undefined) return dataRace(machine, race, upTo(race.second + 1))
  }
  if (ended !== 'complete') return undefined
  const stuck = judgeStuck(machine, upTo)
  for (let t = 0; t < machine.results.length; t++) requireEnded(machine.names[t], machine.results[t])
  machine.outcome = machine.results.some(value => value !== undefined) ? machine.results : undefined
  if (stuck !== undefined || machine.final === undefined) return stuck
  try {
    pending.judging = true
    machine.outcome = machine.final({ crashed: machine.crashed, results: machine.results })
  } catch (thrown) {
    if (pending.refusal !== undefined) throw pending.refusal
    const error = readable(thrown)
    return {
      kind: 'assertion',
      title: `${FINAL} failed: ${messageOf(error)}`,
      detail: [],
      schedule: upTo(log.length),
      marked: [],
      error,
    }
  } finally {
    pending.judging = false
  }
  if (pending.refusal !== undefined) throw pending.refusal
  return undefined
}

function brokenInvariant(
  machine: Machine,
  { thread, at, error }: Fault,
  upTo: (length: number) => Schedule,
): Failure {
  const when = thread < 0 ? 'after the set-up' : `after a step of ${machine.names[thread]}`
  return {
    kind: 'assertion',
    title: `an invariant does not hold ${when}: ${messageOf(error)}`,
    detail: [`The watched words then: ${machine.watch?.describe() ?? ''}`],
    schedule: upTo(at),
    marked: at > 0 ? [at - 1] : [],
    error,
  }
}

function dataRace(machine: Machine, race: DataRace, schedule: Schedule): Failure {
  const { log, names } = machine
  const [first, second] = [race.first, race.second]
  return {
    kind: 'data-race',
    title: `data race between ${names[log.thread[first]]} (${siteName(log.site[first])}) and ${names[log.thread[second]]} (${siteName(log.site[second])})`,
    detail: [
      'Both touch the same bytes, at least one writes, and nothing orders them: not both are atomic, or they are atomic on different ranges.',
      'Make both atomic on the same range, or order them through an atomic that one writes and the other reads.',
    ],
    schedule,
    marked: [first, second],
    error: undefined,
  }
}

/** No thread can continue: a failure if one of them has not finished. */
function judgeStuck(machine: Machine, upTo: (length: number) => Schedule): Failure | undefined {
  const { status, names, log } = machine
  const stuck: number[] = []
  for (let t = 0; t < machine.threads; t++) {
    if (status[t] !== FINISHED && status[t] !== CRASHED && status[t] !== UNBORN) stuck.push(t)
  }
  if (stuck.length === 0) return undefined
  const detail: string[] = []
  const marked: number[] = []
  let kind: FailureKind = 'deadlock'
  for (const t of stuck) {
    if (status[t] === ASLEEP) {
      const nap = describeNap(machine, t)
      detail.push(nap.text)
      marked.push(...nap.marked)
      if (nap.missed && kind === 'deadlock') kind = 'lost-wakeup'
    } else if (status[t] === SPINNING) {
      kind = 'livelock'
      detail.push(
        `${names[t]} spins at ${siteName(pending.spunSite[t])}: a turn of the loop changes nothing, and no thread is left that could change the words it reads`,
      )
      marked.push(...machine.spin.turnOf(t))
    } else if (status[t] === BLOCKED) {
      detail.push(`${names[t]} waits for a mutex at ${siteName(pending.site[t])}`)
      const last = lastEventOf(machine, t)
      if (last >= 0) marked.push(last)
    }
  }
  for (const t of machine.crashed) detail.push(`${names[t]} died before its step ${pending.steps[t]}`)
  const who = stuck.map(t => names[t]).join(', ')
  const verb = stuck.length === 1 ? 'is' : 'are'
  const titles: Partial<Record<FailureKind, string>> = {
    deadlock: `deadlock: ${who} ${verb} blocked and no thread is left that could go on`,
    'lost-wakeup': `lost wakeup: ${who} ${verb} asleep and no thread is left that could wake ${stuck.length === 1 ? 'it' : 'them'}`,
    livelock: `livelock: ${who} ${verb} stuck (a deadlock of threads that spin or wait), and no thread is left that could help`,
  }
  return {
    kind,
    title: titles[kind] as string,
    detail,
    schedule: upTo(log.length),
    marked: marked.filter(at => at < log.length),
    error: undefined,
  }
}

/** The word that a sleeping thread waits for, and whether it missed its wakeup. */
function describeNap(machine: Machine, thread: number): { text: string; marked: number[]; missed: boolean } {
  const { log, names } = machine
  const sleeper = machine.sleepers[thread]
  let waited = -1
  for (let at = log.length - 1; at >= 0 && waited < 0; at--) {
    const wait = log.kind[at] === WAIT || log.kind[at] === WAIT_ASYNC
    if (wait && log.thread[at] === (sleeper?.thread ?? thread) && log.from2[at] === sleeper?.cell) waited = at
  }
  const marked = waited >= 0 ? [waited] : []
  let text = `${names[thread]} sleeps since its wait at ${siteName(log.site[waited] ?? -1)}`
  let missed = false
  for (let at = 0; at < log.length; at++) {
    if (log.kind[at] === NOTIFY && log.from2[at] === sleeper?.cell && log.thread[at] !== thread) {
      missed = true
      marked.push(at)
      text +=
        at < waited
          ? `; ${names[log.thread[at]]} notified before it slept`
          : `; ${names[log.thread[at]]} notified, and woke others`
    } else if (
      at > waited &&
      log.to[at] > log.from[waited] &&
      log.from[at] < log.to[waited] &&
      (log.flags[at] & CHANGED) !== 0
    ) {
      missed = true
      marked.push(at)
      text += `; ${names[log.thread[at]]} changed the word that it sleeps on, without waking it`
    }
  }
  return { text, marked, missed }
}

function lastEventOf(machine: Machine, thread: number): number {
  for (let at = machine.log.length - 1; at >= 0; at--) if (machine.log.thread[at] === thread) return at
  return -1
}

function isAssertion(error: unknown): boolean {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
  return (
    code === 'ERR_ASSERTION' ||
    (typeof name === 'string' && (name.includes('Assertion') || name === 'InvariantError'))
  )
}

/** Its message, or its text: a program may throw anything. */
export function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message).split('\n')[0] : String(error)
  } catch {
    return `a value of type ${typeof error} that has no text`
  }
}

/** What a program threw, or an error in its place if its name or message cannot be read. */
export function readable(error: unknown): unknown {
  if ((typeof error !== 'object' && typeof error !== 'function') || error === null) return error
  try {
    const { name, message, code, stack, cause } = error as Record<string, unknown>
    String([name, message, code, stack, cause])
    return error
  } catch {
    return new Error(messageOf(error))
  }
}
