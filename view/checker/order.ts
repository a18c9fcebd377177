/** Moving a step of an execution to another place: pure functions over the order of its threads. */
import type { Execution } from '../../src/checker/report/execution.ts'
import { formatSchedule, parseSchedule } from '../../src/checker/machine/schedule.ts'

/**
 * How far a step may move. The steps of one thread keep their order, so the steps of its own thread before and
 * after it are the limits.
 */
export function reach(
  threads: readonly number[],
  at: number,
): { readonly first: number; readonly last: number } {
  const thread = threads[at]
  let first = at
  while (first > 0 && threads[first - 1] !== thread) first--
  let last = at
  while (last < threads.length - 1 && threads[last + 1] !== thread) last++
  return { first, last }
}

/** The schedule with the step `from` at the place `to`, and how many of its entries decide the question. */
export function movedSchedule(
  { steps, schedule }: Execution,
  from: number,
  to: number,
): { readonly schedule: string; readonly firm: number } {
  const threads = steps.map(({ thread }) => thread)
  const [thread] = threads.splice(from, 1)
  threads.splice(to, 0, thread)
  const { crashes } = parseSchedule(schedule)
  return { schedule: formatSchedule({ threads, crashes }), firm: Math.max(from, to) + 1 }
}

/** For each step: its effect in the other execution, where the same step of the same thread did something else. */
export function changesFrom(before: Execution, now: Execution): (string | undefined)[] {
  const described = (execution: Execution): Map<string, string> => {
    const count = new Map<number, number>()
    return new Map(
      execution.steps.map(({ thread, kind, target, effect }) => {
        const n = (count.get(thread) ?? 0) + 1
        count.set(thread, n)
        return [`${thread} ${n}`, [kind, target, effect].filter(text => text !== '').join(' ')]
      }),
    )
  }
  const old = described(before)
  return [...described(now)].map(([key, text]) => {
    const other = old.get(key)
    return other === undefined || other === text ? undefined : other
  })
}

/** The values of all words after step `at`; -1: before the first step. */
export function valuesAfter({ words, steps }: Execution, at: number): string[] {
  const values = words.map(({ initial }) => initial)
  for (const { word, value } of steps.slice(0, at + 1)) if (word >= 0) values[word] = value
  return values
}
