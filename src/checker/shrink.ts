import { PreemptionBounded } from './bounded.ts'
import type { Failure } from './failure.ts'
import type { Machine } from './machine.ts'
import { Follow } from './sampling.ts'
import type { Search } from './search.ts'
import { STEPS_MAX } from './search.ts'

/**
 * Looks for a shorter schedule with a failure of the same kind: fewer steps, then fewer switches. First every schedule
 * with no, one, two … preemptions, as long as that is affordable; then pieces are cut out of the best one so far,
 * and runs moved together, until nothing more comes off or the executions are used up.
 */
export function shrink(search: Search, failure: Failure, executionsMax: number): Failure {
  if (executionsMax === 0) return failure
  const machine = search.scout()
  const budget = { left: executionsMax }
  return search.withGuards(() => {
    let best = failure
    for (let bound = 0; bound <= 3 && budget.left > executionsMax / 2; bound++) {
      const found = fewPreemptions(search, machine, best, bound, budget, executionsMax / 2)
      if (found === undefined) continue
      if (better(found, best)) best = found
      break
    }
    for (;;) {
      const shorter = cutOnce(search, machine, best, budget)
      if (shorter === undefined) return best
      best = shorter
    }
  })
}

interface Budget {
  left: number
}

function fewPreemptions(
  search: Search,
  machine: Machine,
  failure: Failure,
  bound: number,
  budget: Budget,
  floor: number,
): Failure | undefined {
  const { crashes } = failure.schedule
  const explorer = new PreemptionBounded(machine, search.setup, STEPS_MAX, bound)
  let best: Failure | undefined
  while (explorer.hasMore && budget.left > floor) {
    budget.left--
    const found = search.tryOut(machine, explorer, crashes)
    if (found?.kind === failure.kind && (best === undefined || better(found, best))) best = found
  }
  return best
}

/** One cut that leaves a failure of the same kind, or undefined. */
function cutOnce(search: Search, machine: Machine, best: Failure, budget: Budget): Failure | undefined {
  const { threads, crashes } = best.schedule
  const attempt = (schedule: readonly number[]): Failure | undefined => {
    if (budget.left <= 0) return undefined
    budget.left--
    const found = search.tryOut(machine, new Follow(machine, search.setup, STEPS_MAX, schedule), crashes)
    return found?.kind === best.kind && better(found, best) ? found : undefined
  }
  for (let size = Math.max(1, threads.length >> 1); size >= 1; size >>= 1) {
    for (let at = 0; at + size <= threads.length; at += size) {
      const found = attempt([...threads.slice(0, at), ...threads.slice(at + size)])
      if (found !== undefined) return found
    }
  }
  // A run of one thread to the place where that thread runs next.
  for (let at = 0; at < threads.length; ) {
    let end = at
    while (end < threads.length && threads[end] === threads[at]) end++
    const next = threads.indexOf(threads[at], end)
    if (next >= 0) {
      const moved = [
        ...threads.slice(0, at),
        ...threads.slice(end, next),
        ...threads.slice(at, end),
        ...threads.slice(next),
      ]
      const found = attempt(moved)
      if (found !== undefined) return found
    }
    at = end
  }
  return undefined
}

function better(a: Failure, b: Failure): boolean {
  const [x, y] = [a.schedule.threads, b.schedule.threads]
  return x.length < y.length || (x.length === y.length && switches(x) < switches(y))
}

function switches(threads: readonly number[]): number {
  let count = 0
  for (let i = 1; i < threads.length; i++) if (threads[i] !== threads[i - 1]) count++
  return count
}
