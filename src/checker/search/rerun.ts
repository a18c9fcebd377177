import { type Execution, type ExecutionEnd, executionOf, failedEnd } from '../report/execution.ts'
import type { Failure } from '../report/failure.ts'
import { Footprints } from '../report/footprints.ts'
import { record } from '../report/recording.ts'
import { BeginAgain } from '../machine/memory.ts'
import type { Schedule } from '../machine/schedule.ts'
import { ASLEEP, BLOCKED, CRASHED, FINISHED, SPINNING, UNBORN } from '../machine/threadstates.ts'
import { formatOutcome } from '../spec/outcomes.ts'
import { Follow, type RefusedEntry } from './sampling.ts'
import { type Search, STEPS_MAX } from './search.ts'

/** The result of a schedule that was asked for. */
export type Rerun =
  | { readonly possible: true; readonly execution: Execution }
  /** Entry `at` of the schedule is a thread that cannot move there. */
  | { readonly possible: false; readonly at: number; readonly why: string }

/**
 * Runs a schedule of a check and records it, with the way it ends. The first `firm` entries must be followed
 * exactly: where one of their threads cannot move, the schedule is not possible. The other entries are
 * followed as far as they can be, because an earlier change may end a thread sooner. After them the running
 * thread goes on. The search may be over; its results do not change.
 */
export function rerun(search: Search, schedule: Schedule, firm: number = schedule.threads.length): Rerun {
  return again(search, () => rerunOnce(search, schedule, firm))
}

/** Records the execution of a failure that the search has found. */
export function failingExecution(search: Search, failure: Failure): Execution {
  return again(search, () => recorded(search, failure.schedule, failedEnd(failure), failure.marked))
}

/** Runs the body once more after the cells were numbered again. */
function again<T>(search: Search, body: () => T): T {
  return search.withGuards(() => {
    for (;;) {
      try {
        return body()
      } catch (error) {
        if (!(error instanceof BeginAgain)) throw error
        search.renumber(error)
      }
    }
  })
}

function rerunOnce(search: Search, { threads, crashes }: Schedule, firm: number): Rerun {
  const machine = search.extraMachine()
  // The execution of a livelock is longer than the limit.
  const limit = Math.max(search.options.steps ?? STEPS_MAX, threads.length)
  const follow = new Follow(machine, search.setup, limit, threads)
  const failure = search.tryOut(machine, follow, crashes)
  const { refused } = follow
  if (refused !== undefined && refused.at < firm) {
    return { possible: false, at: refused.at, why: whyNot(refused, machine.names) }
  }
  const end: ExecutionEnd =
    failure !== undefined
      ? failedEnd(failure)
      : follow.ended === 'truncated'
        ? { kind: 'cut', title: `the execution was cut off after ${limit} steps`, detail: [] }
        : { kind: 'passed', title: passed(machine.outcome), detail: [] }
  const ran = failure?.schedule ?? {
    threads: Array.from(machine.log.thread.subarray(0, machine.log.length)),
    crashes,
  }
  return { possible: true, execution: recorded(search, ran, end, failure?.marked ?? []) }
}

function recorded(
  search: Search,
  schedule: Schedule,
  end: ExecutionEnd,
  marked: readonly number[],
): Execution {
  const machine = search.extraMachine()
  const footprints = new Footprints(machine)
  const steps = record(machine, search.setup, schedule, marked, footprints)
  return executionOf(machine.names, steps, footprints, schedule, end, marked)
}

function passed(outcome: unknown): string {
  return outcome === undefined ? 'no failure' : `no failure; the outcome is ${formatOutcome(outcome)}`
}

const REASONS: Readonly<Record<number, string>> = {
  [ASLEEP]: 'sleeps there, and no thread has woken it yet',
  [FINISHED]: 'has ended by then',
  [CRASHED]: 'is dead by then',
  [SPINNING]: 'spins there, and no word that it reads has changed',
  [BLOCKED]: 'waits there for a lock that another thread holds',
  [UNBORN]: 'has not started by then: no thread has died',
}

function whyNot({ thread, status }: RefusedEntry, names: readonly string[]): string {
  const name = names[thread]
  return name === undefined
    ? `there is no thread ${thread}`
    : `${name} ${REASONS[status] ?? 'cannot move there'}`
}
