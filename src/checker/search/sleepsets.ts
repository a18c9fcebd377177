import { conflict, WRITES, WRITES_WATCHED } from '../machine/eventlog.ts'
import type { Machine } from '../machine/machine.ts'

/** A thread that is asleep, with the footprint of its next event. */
export interface Asleep {
  readonly thread: number
  readonly from: number
  readonly to: number
  readonly from2: number
  readonly to2: number
  readonly flags: number
}

/** The sleep sets of the current execution: one for each depth, with a footprint for each thread asleep. */
export class SleepSets {
  private readonly machine: Machine
  /** Per depth: the mask of the threads asleep. */
  asleep: Int32Array = new Int32Array(0)
  /** Per depth and thread: the footprint of a thread asleep. */
  private from = new Int32Array(0)
  private to = new Int32Array(0)
  private from2 = new Int32Array(0)
  private to2 = new Int32Array(0)
  private flags = new Int32Array(0)

  constructor(machine: Machine) {
    this.machine = machine
  }

  add(
    depth: number,
    thread: number,
    from: number,
    to: number,
    from2: number,
    to2: number,
    flags: number,
  ): void {
    const at = depth * this.machine.threads + thread
    this.asleep[depth] |= 1 << thread
    this.from[at] = from
    this.to[at] = to
    this.from2[at] = from2
    this.to2[at] = to2
    this.flags[at] = flags
  }

  /** A thread asleep before an event stays asleep after it unless the two conflict. */
  inherit(depth: number, thread: number): void {
    const { log, threads } = this.machine
    let still = 0
    for (let rest = this.asleep[depth] & ~(1 << thread); rest !== 0; rest &= rest - 1) {
      const t = 31 - Math.clz32(rest & -rest)
      const at = depth * threads + t
      if (this.conflictsWith(at, depth, log.flags[depth])) continue
      still |= 1 << t
      const next = at + threads
      this.from[next] = this.from[at]
      this.to[next] = this.to[at]
      this.from2[next] = this.from2[at]
      this.to2[next] = this.to2[at]
      this.flags[next] = this.flags[at]
    }
    this.asleep[depth + 1] = still
  }

  /** Whether the footprint at index `sleeping` conflicts with an event. */
  conflictsWith(sleeping: number, event: number, flags: number): boolean {
    const { log } = this.machine
    return conflict(
      this.from[sleeping],
      this.to[sleeping],
      this.from2[sleeping],
      this.to2[sleeping],
      this.flags[sleeping],
      log.from[event],
      log.to[event],
      log.from2[event],
      log.to2[event],
      flags,
    )
  }

  /** The threads of a mask, with footprints from index `sleepers` on, that do not conflict with an event. */
  remaining(asleep: number, sleepers: number, event: number, flags: number): number {
    const { log } = this.machine
    const { from, to, to2 } = this
    const eventFrom = log.from[event]
    const eventTo = log.to[event]
    const single = log.to2[event] === 0
    let still = asleep
    for (let rest = asleep; rest !== 0; rest &= rest - 1) {
      const t = 31 - Math.clz32(rest & -rest)
      const at = sleepers + t
      // Nearly all footprints have one range.
      if (single && to2[at] === 0) {
        const apart = from[at] >= eventTo || eventFrom >= to[at]
        if (apart || ((this.flags[at] | flags) & WRITES) === 0) {
          if ((this.flags[at] & flags & WRITES_WATCHED) !== WRITES_WATCHED) continue
        }
      } else if (!this.conflictsWith(at, event, flags)) {
        continue
      }
      still &= ~(1 << t)
    }
    return still
  }

  clear(): void {
    this.asleep.fill(0)
  }

  /** Makes room for this number of depths. */
  grow(depths: number): void {
    const bigger = new Int32Array(depths)
    bigger.set(this.asleep)
    this.asleep = bigger
    for (const name of ['from', 'to', 'from2', 'to2', 'flags'] as const) {
      const footprints = new Int32Array(depths * this.machine.threads)
      footprints.set(this[name])
      this[name] = footprints
    }
  }
}
