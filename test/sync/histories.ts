import { linearize, type Model, type Operation, show } from './linearizable.ts'
import { Cancelled, Dice, pause, SyncSimulation } from './simulate.ts'

/**
 * One step of a task's script: the call and its form. The result 'refused' means a timeout, 'cancelled' a
 * throw.
 */
export interface Call {
  readonly name: string
  readonly args: readonly unknown[]
  run(): Generator<number, unknown, unknown>
}

export interface Subject<State> {
  readonly model: Model<State>
  /**
   * A cancelled call may have acquired something and released it, at two moments: a second operation,
   * 'giveBack', then represents the second in the history.
   */
  readonly givesBack?: boolean
  /** The calls of a task; `holds` is the task's own memory. */
  next(dice: Dice, who: number, holds: Record<string, number>): Call | null
  /** Must hold when all tasks have ended and released everything. */
  final?(): void
}

export interface Shape {
  readonly tasks: number
  readonly calls: number
  /** Out of a hundred histories, how many have a cancelled task. */
  readonly cancels: number
}

const HISTORIES_PER_SIMULATION = 250

/**
 * Runs this many random histories and checks each. Returns their number, and how many operations had to wait.
 */
export function tryHistories<State>(
  count: number,
  shape: Shape,
  make: (dice: Dice) => Subject<State>,
): { histories: number; waited: number; cancelled: number } {
  let waited = 0
  let cancelled = 0
  for (let done = 0; done < count; ) {
    const simulation = new SyncSimulation(1 + (done % 3), done + 1)
    try {
      for (let of = 0; of < HISTORIES_PER_SIMULATION && done < count; of++, done++) {
        const found = runOne(simulation, new Dice(done + 7), shape, make)
        waited += found.waited
        cancelled += found.cancelled
      }
      const { waiters } = simulation.futexes.context.layout
      const left = waiters.count(simulation.futexes.context.i32)
      if (left !== 0) throw new Error(`${left} waiters are left over`)
    } catch (error) {
      throw new Error(`history ${done}: ${(error as Error).message}`, { cause: error })
    } finally {
      simulation.close()
    }
  }
  return { histories: count, waited, cancelled }
}

function runOne<State>(
  simulation: SyncSimulation,
  dice: Dice,
  shape: Shape,
  make: (dice: Dice) => Subject<State>,
): { waited: number; cancelled: number } {
  const subject = make(dice)
  const history: Operation[] = []
  let clock = 0
  let waited = 0
  let cancelled = 0
  const body = (who: number) =>
    function* (): Generator<number, void, unknown> {
      const holds: Record<string, number> = {}
      const begin = ({ name, args }: Call): Operation => {
        const operation = { who, name, args, start: clock++, end: Infinity, result: undefined }
        history.push(operation)
        return operation
      }
      let dead = false
      for (let at = 0; !dead; at++) {
        const call = at < shape.calls ? subject.next(dice, who, holds) : subject.next(NO_DICE, who, holds)
        if (call === null) {
          if (at >= shape.calls) return
          continue
        }
        const operation = begin(call)
        const before = clock
        try {
          operation.result = yield* call.run()
        } catch (error) {
          if (error instanceof Cancelled) dead = true
          else if (!isRefusal(error)) throw error
          operation.result = dead ? 'cancelled' : 'refused'
        }
        if (clock !== before) waited++
        operation.end = clock++
        if (dead && subject.givesBack === true) history.push({ ...operation, name: 'giveBack' })
        try {
          if (dice.roll(3) === 0) yield* pause()
        } catch (error) {
          if (!(error instanceof Cancelled)) throw error
          dead = true
        }
      }
      // Cancelled: the task releases everything that it holds, and ends.
      for (
        let call = subject.next(NO_DICE, who, holds);
        call !== null;
        call = subject.next(NO_DICE, who, holds)
      ) {
        const operation = begin(call)
        operation.result = yield* call.run()
        operation.end = clock++
      }
    }
  const bodies = Array.from({ length: shape.tasks }, (_, who) => body(who))
  if (dice.roll(100) < shape.cancels) {
    const victim = dice.roll(shape.tasks)
    const after = dice.roll(6)
    bodies.push(function* () {
      for (let i = 0; i < after; i++) yield* pause()
      cancelled++
      simulation.cancel(victim)
    })
  }
  try {
    simulation.run(bodies)
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${show(history)}`, { cause: error })
  }
  if (linearize(history, subject.model) === null) throw new Error(`no order explains\n${show(history)}`)
  subject.final?.()
  return { waited, cancelled }
}

function isRefusal(error: unknown): boolean {
  return error instanceof DOMException && (error.name === 'TimeoutError' || error.name === 'AbortError')
}

/** With these results, a task only releases what it holds. */
export const NO_DICE: Dice = new Dice(0)
