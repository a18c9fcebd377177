import { PreemptionBounded } from './bounded.ts'
import type { Explorer } from './explorer.ts'
import type { Failure } from '../report/failure.ts'
import type { Machine } from '../machine/machine.ts'
import { BeginAgain } from '../machine/memory.ts'
import { Follow } from './sampling.ts'
import type { Search } from './search.ts'
import { STEPS_MAX } from './search.ts'

/**
 * Searches for a shorter schedule with a failure of the same kind: fewer steps, then fewer switches. First it
 * tries all schedules with 0, 1, 2 … preemptions, within its budget. Then it removes pieces of the best
 * schedule and joins runs of one thread, until nothing more can be removed or the budget is used up. It calls
 * `alive` for each execution.
 */
export function shrink(
  search: Search,
  failure: Failure,
  executionsMax: number,
  alive: () => void = () => undefined,
): Failure {
  // A livelock of more steps than an execution may have was found by going on: no shorter schedule shows it.
  const { steps = STEPS_MAX } = search.options
  if (executionsMax === 0 || failure.schedule.threads.length > steps) return failure
  return search.withGuards(() => {
    const shrinking = new Shrinking(search, failure, executionsMax, alive)
    const half = executionsMax / 2
    for (let bound = 0; bound <= PREEMPTIONS_MAX && shrinking.left > half; bound++) {
      if (shrinking.fewPreemptions(bound, half)) break
    }
    while (shrinking.cutOnce()) {}
    return shrinking.best
  })
}

const PREEMPTIONS_MAX = 3

class Shrinking {
  best: Failure
  /** The number of executions that may still be tried. */
  left: number
  private readonly search: Search
  private readonly steps: number
  private readonly alive: () => void
  private machine: Machine

  constructor(search: Search, failure: Failure, executionsMax: number, alive: () => void) {
    this.search = search
    this.steps = search.options.steps ?? STEPS_MAX
    this.alive = alive
    this.best = failure
    this.left = executionsMax
    this.machine = search.extraMachine()
  }

  /** Tries schedules with at most `bound` preemptions until `floor` executions are left. True: one fails. */
  fewPreemptions(bound: number, floor: number): boolean {
    const { search } = this
    let explorer: PreemptionBounded | undefined
    let fails = false
    while ((explorer === undefined || explorer.hasMore) && this.left > floor) {
      explorer ??= new PreemptionBounded(this.machine, search.setup, this.steps, bound)
      const found = this.tryOut(explorer)
      if (found === 'again') {
        explorer = undefined
        continue
      }
      if (found?.kind !== this.best.kind) continue
      fails = true
      if (better(found, this.best)) this.best = found
    }
    return fails
  }

  /** Tries to remove one piece so that the failure remains. False when that is impossible. */
  cutOnce(): boolean {
    const { threads } = this.best.schedule
    for (let size = Math.max(1, threads.length >> 1); size >= 1; size >>= 1) {
      for (let at = 0; at + size <= threads.length; at += size) {
        if (this.follow([...threads.slice(0, at), ...threads.slice(at + size)])) return true
      }
    }
    // Move a run of one thread to the place where that thread runs next.
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
        if (this.follow(moved)) return true
      }
      at = end
    }
    return false
  }

  /** Whether this schedule has the failure and is better than the best one. */
  private follow(schedule: readonly number[]): boolean {
    while (this.left > 0) {
      const found = this.tryOut(new Follow(this.machine, this.search.setup, this.steps, schedule))
      if (found === 'again') continue
      if (found?.kind !== this.best.kind || !better(found, this.best)) return false
      this.best = found
      return true
    }
    return false
  }

  /**
   * Runs one execution. The search stopped at its failure, so this execution may access memory in a way for
   * which the cells are too large. Then it returns 'again', and the caller must create its explorers again.
   */
  private tryOut(explorer: Explorer): Failure | undefined | 'again' {
    const { search } = this
    this.left--
    this.alive()
    try {
      return search.tryOut(this.machine, explorer, this.best.schedule.crashes)
    } catch (error) {
      if (!(error instanceof BeginAgain)) throw error
      search.renumber(error)
      this.machine = search.extraMachine()
      return 'again'
    }
  }
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
