import type { Region } from '../../arena/memory/arena.ts'
import { CpuRecord, cpuCount, cpuRecord, MachineRecord } from '../core/cpurecord.ts'

/**
 * The timekeeper: a thread that raises `needResched` on a CPU when its slice has ended. Tickless: it sleeps
 * until the earliest slice ends, and for ever when no CPU has armed one.
 *
 * A moment is microseconds since boot in 31 bits, shifted left, with bit 0 set: an armed moment is never 0,
 * and two moments compare correctly while they are less than 17 minutes apart. `sliceEnd` 0: not armed.
 * `until` 0: asleep for ever.
 *
 *   CPU                                     timekeeper
 *   ---                                     ----------
 *   (A) store(sliceEnd, t)                  (C) store(until, earliest known moment)
 *   (B) load(until): later than t,          (D) reads every sliceEnd again: one is earlier, so it
 *       so it increments `alarm` and            does not sleep
 *       notifies
 *                                           (E) wait(alarm, its value before (C))
 *
 * (A) before (B) and (C) before (D): in every interleaving one side sees the other. An increment between (D)
 * and (E) makes (E) return immediately.
 *
 * A process can be stopped and continued much later. Then a moment may be so long ago that it compares as one
 * to come. So after a gap of GAP_MS the timekeeper expires all slices, also those to come: a CPU that is
 * interrupted too early finds nothing to do.
 */
const ARMED = 1
const GAP_MS = 600_000

/** The data that the thread of a timekeeper starts with. */
export interface TimekeeperBoot {
  readonly buffer: SharedArrayBuffer
  readonly region: Region
  /** When the machine was created, on the clock that all threads of the process or page share. */
  readonly origin: number
}

/** The moment of a time in milliseconds since boot. */
export function momentOf(ms: number): number {
  return (Math.trunc((ms * 1000) % 0x8000_0000) << 1) | ARMED
}

/** Whether moment `a` is before `b`. */
export function isBefore(a: number, b: number): boolean {
  return ((a - b) | 0) < 0
}

/**
 * The CPU's slice ends at `ms`, at most GAP_MS from now. Called by the CPU, or by a thread that queues a task
 * there.
 */
export function armSlice(i32: Int32Array, machine: Region, cpu: number, ms: number): void {
  const moment = momentOf(ms)
  Atomics.store(i32, cpu + CpuRecord.sliceEnd, moment) // (A)
  const until = Atomics.load(i32, machine.start + MachineRecord.until) // (B)
  if (until === 0 || isBefore(moment, until)) wakeTimekeeper(i32, machine)
}

/** The CPU needs no tick. The timekeeper may wake once more for the armed slice. */
export function disarmSlice(i32: Int32Array, cpu: number): void {
  Atomics.store(i32, cpu + CpuRecord.sliceEnd, 0)
}

export function wakeTimekeeper(i32: Int32Array, machine: Region): void {
  Atomics.add(i32, machine.start + MachineRecord.alarm, 1)
  Atomics.notify(i32, machine.start + MachineRecord.alarm)
}

/**
 * Raises `needResched` on each CPU whose slice has ended, or with `all` on each that has armed one. Returns
 * the earliest moment still armed, or 0.
 */
export function raiseExpired(i32: Int32Array, machine: Region, now: number, all = false): number {
  let earliest = 0
  for (let id = 0; id < cpuCount(machine); id++) {
    const cpu = cpuRecord(machine, id)
    const end = Atomics.load(i32, cpu + CpuRecord.sliceEnd)
    if (end === 0) continue
    if (!all && isBefore(now, end)) {
      if (earliest === 0 || isBefore(end, earliest)) earliest = end
    } else if (Atomics.compareExchange(i32, cpu + CpuRecord.sliceEnd, end, 0) === end) {
      // The compare-exchange fails if the CPU has armed a new slice in the meantime: that slice is not over.
      Atomics.store(i32, cpu + CpuRecord.needResched, 1)
    } else {
      id--
    }
  }
  return earliest
}

/**
 * Runs until `shutdown` is set, and blocks its thread. `now`: milliseconds since boot. `woken` is called
 * after each wakeup.
 */
export function keepTime(
  i32: Int32Array,
  machine: Region,
  now: () => number,
  woken: () => void = () => undefined,
): void {
  const { alarm, until, wakeups, shutdown } = MachineRecord
  const base = machine.start
  let last = now()
  while (Atomics.load(i32, base + shutdown) === 0) {
    const seen = Atomics.load(i32, base + alarm)
    const time = now()
    const earliest = raiseExpired(i32, machine, momentOf(time), time - last > GAP_MS)
    last = time
    Atomics.store(i32, base + until, earliest) // (C)
    const check = raiseExpired(i32, machine, momentOf(now())) // (D)
    if (check !== 0 && (earliest === 0 || isBefore(check, earliest))) continue
    const timeout = earliest === 0 ? Infinity : msUntil(earliest, momentOf(now()))
    Atomics.wait(i32, base + alarm, seen, timeout) // (E)
    Atomics.add(i32, base + wakeups, 1)
    woken()
  }
}

function msUntil(moment: number, now: number): number {
  return Math.max(0, (moment - now) | 0) / 2000
}

/** The number of wakeups of the timekeeper since boot. */
export function timekeeperWakeups(i32: Int32Array, machine: Region): number {
  return Atomics.load(i32, machine.start + MachineRecord.wakeups)
}
