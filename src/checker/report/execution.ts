/** One execution as plain data, for a page that draws it. */
import { type Schedule, formatSchedule } from '../machine/schedule.ts'
import type { Failure, FailureKind } from './failure.ts'
import type { ExecutionWord, Footprint } from './footprints.ts'
import type { RecordedStep } from './recording.ts'

export interface ExecutionStep extends RecordedStep, Footprint {}

/** How an execution ended: with a failure, without one, or at the limit of steps. */
export interface ExecutionEnd {
  readonly kind: 'failed' | 'passed' | 'cut'
  readonly failure?: FailureKind
  readonly title: string
  readonly detail: readonly string[]
  readonly stack?: string
}

export interface Execution {
  /** The names of the threads: one column each. */
  readonly threads: readonly string[]
  readonly steps: readonly ExecutionStep[]
  readonly words: readonly ExecutionWord[]
  /** The steps of a data race, as positions in `steps`. */
  readonly race?: readonly [number, number]
  readonly end: ExecutionEnd
  /** The text that `--replay` takes; empty when the execution is no interleaving. */
  readonly schedule: string
}

/** How a failure reads as the end of an execution. */
export function failedEnd({ kind, title, detail, error }: Failure): ExecutionEnd {
  const stack = error instanceof Error ? error.stack : undefined
  return { kind: 'failed', failure: kind, title, detail, ...(stack !== undefined && { stack }) }
}

/** A failure whose steps have no footprints: of weak memory, or of asynchronous code. */
export function plainExecution(
  threads: readonly string[],
  steps: readonly RecordedStep[],
  failure: Failure,
): Execution {
  return {
    threads,
    steps: steps.map(step => ({ ...step, word: -1, value: '', changed: false, after: [] })),
    words: [],
    end: failedEnd(failure),
    schedule: '',
  }
}

/** Puts an execution together from its recording. */
export function executionOf(
  threads: readonly string[],
  steps: readonly RecordedStep[],
  { steps: footprints, words }: { steps: readonly Footprint[]; words: readonly ExecutionWord[] },
  schedule: Schedule,
  end: ExecutionEnd,
  marked: readonly number[],
): Execution {
  const [first, second] = marked
  const isRace = end.failure === 'data-race' && first !== undefined && second !== undefined
  return {
    threads,
    steps: steps.map((step, at) => ({ ...step, ...footprints[at] })),
    words,
    ...(isRace && { race: [first, second] as const }),
    end,
    schedule: formatSchedule(schedule),
  }
}
