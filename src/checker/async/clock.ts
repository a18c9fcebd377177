import type { Execution } from './execution.ts'
import { here, written } from './place.ts'
import type { Replacements } from './replacements.ts'

/** The time of the clocks when an execution begins: 2030. */
const EPOCH_MS = 1_893_456_000_000

/**
 * Makes the clocks of Node read virtual time, which advances only from event to event. Outside of an
 * execution they show the time of the set-up.
 */
export function replaceClocks(replacements: Replacements, running: () => Execution | undefined): void {
  const elapsed = (): number => read(running())
  const wall = (): number => EPOCH_MS + elapsed()
  const RealDate = Date
  function VirtualDate(this: unknown, ...args: unknown[]): unknown {
    if (new.target === undefined) return new RealDate(wall()).toString()
    const maker = new.target === (VirtualDate as unknown) ? RealDate : new.target
    return Reflect.construct(RealDate, args.length === 0 ? [wall()] : args, maker)
  }
  Object.setPrototypeOf(VirtualDate, RealDate)
  VirtualDate.prototype = RealDate.prototype
  replacements.add(globalThis, 'Date', VirtualDate)
  replacements.add(RealDate, 'now', wall)
  replacements.add(performance, 'now', elapsed)
  replacements.add(process, 'uptime', () => elapsed() / 1000)
  const hrtime = (before?: readonly [number, number]): [number, number] => {
    const ms = elapsed()
    const now: [number, number] = [Math.floor(ms / 1000), (ms % 1000) * 1e6]
    if (before === undefined) return now
    const nanoseconds = (now[0] - before[0]) * 1e9 + now[1] - before[1]
    return [Math.floor(nanoseconds / 1e9), nanoseconds % 1e9]
  }
  hrtime.bigint = (): bigint => BigInt(Math.round(elapsed() * 1e6))
  replacements.add(process, 'hrtime', hrtime)
}

function read(execution: Execution | undefined): number {
  if (execution === undefined) return 0
  const { time, exact } = execution.agenda.time.read()
  if (!exact && execution.notes.size === 0) {
    execution.notes.add(
      `the clock was read ${written(here())} after events that may come at any time: only the earliest time was tried; say when tasks start (\`{ starts: [0, 100] }\`) and how long operations take (\`io(…, { takes: [0, 100] })\`)`,
    )
  }
  return time
}
