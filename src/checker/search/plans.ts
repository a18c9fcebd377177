import type { Crash } from '../machine/schedule.ts'

/**
 * Crash points as separate programs: "thread t dies before its step k" is the program in which thread t ends
 * there. Each is explored completely. Plans are tried with growing k until the thread ends before step k in
 * every execution.
 *
 * `next` takes whether each death of the previous plan happened in at least one execution.
 */
export class CrashPlans {
  private readonly threads: readonly number[]
  private readonly max: number
  private plan: Crash[] = []
  private started = false

  constructor(threads: readonly number[], max: number) {
    this.threads = [...threads].sort((a, b) => a - b)
    this.max = max
  }

  /** The first plan has no deaths. Undefined when all plans have been tried. */
  next(happened: boolean): readonly Crash[] | undefined {
    if (!this.started) {
      this.started = true
      return this.plan
    }
    // Add a death of a later thread while the current ones do happen.
    if (happened && this.plan.length < this.max) {
      const after = this.threads.find(t => t > (this.plan.at(-1)?.thread ?? -1))
      if (after !== undefined) {
        this.plan = [...this.plan, { thread: after, step: 0 }]
        return this.plan
      }
    }
    return this.advance(happened)
  }

  private advance(happened: boolean): readonly Crash[] | undefined {
    let later = happened
    while (this.plan.length > 0) {
      const last = this.plan[this.plan.length - 1]
      const rest = this.plan.slice(0, -1)
      if (later) {
        this.plan = [...rest, { thread: last.thread, step: last.step + 1 }]
        return this.plan
      }
      const other = this.threads.find(t => t > last.thread)
      if (other !== undefined) {
        this.plan = [...rest, { thread: other, step: 0 }]
        return this.plan
      }
      // The plan without its last death did happen, or it would not have been extended.
      this.plan = rest
      later = true
    }
    return undefined
  }
}
