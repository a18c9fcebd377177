import { CheckError } from '../errors.ts'
import type { Machine } from '../machine/machine.ts'
import type { Crash } from '../machine/schedule.ts'
import type { CheckOptions } from '../run/options.ts'

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

  constructor(threads: Iterable<number>, max: number) {
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

/** The plans for the threads of this machine, which has begun. Throws when an option names no thread. */
export function crashPlans(machine: Machine, { crashes = 0 }: CheckOptions): CrashPlans {
  const { max = 1, threads } = typeof crashes === 'number' ? { max: crashes } : crashes
  const bodies = machine.names.slice(0, machine.mortal)
  const mortal = threads?.map(thread => {
    const index = typeof thread === 'number' ? thread : bodies.indexOf(thread)
    if (index >= 0 && index < bodies.length) return index
    throw new CheckError(
      'ERR_CHECK_OPTION',
      `\`crashes.threads\` has ${JSON.stringify(thread)}, which is no thread of this check; there are ${bodies.map((name, t) => `${t} (${name})`).join(', ')}`,
    )
  })
  return new CrashPlans(new Set(mortal ?? bodies.keys()), max)
}
