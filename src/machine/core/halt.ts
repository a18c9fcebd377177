import type { Region } from '../../arena/memory/arena.ts'
import { pause } from '../../arena/sync/pause.ts'
import { CpuRecord, MachineRecord } from './cpurecord.ts'
import type { SpinBudget } from './spinbudget.ts'

/**
 * Halt and kick: a CPU sleeps until it is kicked. A kick costs a system call only when the CPU sleeps.
 *
 *   park          meaning                                             changed by
 *   [1] RUNNING   runs; not kicked since its last search for work     itself -> [2]; a kicker -> [3]
 *   [2] HALTED    asleep, or about to sleep                           itself -> [1]; a kicker -> [3], wakes
 *   [3] KICKED    must search for work                                itself -> [1]
 *
 * The wakeup that must not be lost:
 *
 *   sleeper                                 kicker
 *   -------                                 ------
 *   finds no work
 *                                           adds work
 *                                           (A) exchange(park, KICKED): it was RUNNING, no notify
 *   (B) compare-exchange RUNNING -> HALTED
 *       fails, it is KICKED: does not sleep
 *
 * With (B) before (A), the kicker finds HALTED and notifies; (C) wait(park, HALTED) then either sleeps and is
 * woken, or does not sleep because the word has changed. So a CPU searches for work once after each kick.
 */
export const RUNNING = 0
export const HALTED = 1
export const KICKED = 2

/** Kicks the CPU with this record, from any thread. Returns whether it was asleep. */
export function kickCpu(i32: Int32Array, cpu: number): boolean {
  const at = cpu + CpuRecord.park
  if (Atomics.load(i32, at) === KICKED) return false
  if (Atomics.exchange(i32, at, KICKED) !== HALTED) return false // (A)
  Atomics.notify(i32, at, 1)
  Atomics.add(i32, cpu + CpuRecord.kicks, 1)
  return true
}

/** Recovery: wakes a CPU whose kicker died between (A) and its notify. It does nothing to any other CPU. */
export function nudgeCpu(i32: Int32Array, cpu: number): void {
  Atomics.notify(i32, cpu + CpuRecord.park)
}

/** The CPU announces that it will sleep. False: it was kicked, and must search for work again. */
export function prepareHalt(i32: Int32Array, cpu: number): boolean {
  const at = cpu + CpuRecord.park
  if (Atomics.compareExchange(i32, at, RUNNING, HALTED) === RUNNING) return true // (B)
  Atomics.store(i32, at, RUNNING)
  return false
}

/** The CPU is awake. This consumes a kick that came in the meantime. */
export function finishHalt(i32: Int32Array, cpu: number): void {
  Atomics.store(i32, cpu + CpuRecord.park, RUNNING)
}

/** The longest time that a CPU without work spins for a kick before it sleeps, in milliseconds. */
export const SPIN_MS = 0.05
const LOOKS_PER_CLOCK = 32

/**
 * Only one CPU of a machine spins at a time, so that spinning takes no core from working CPUs. False: another
 * CPU spins.
 */
function mayOneSpin(i32: Int32Array, spinner: number, cpu: number): boolean {
  return Atomics.load(i32, spinner) === 0 && Atomics.compareExchange(i32, spinner, 0, cpu) === 0
}

/**
 * A CPU that has just run out of work often gets more soon: then it saves the sleep and the wakeup. True: it
 * was kicked.
 */
function spinForKick(i32: Int32Array, spinner: number, cpu: number, now: () => number, ms: number): boolean {
  const until = now() + ms
  let kicked = false
  do {
    for (let look = 0; look < LOOKS_PER_CLOCK && !kicked; look++) {
      kicked = Atomics.load(i32, cpu + CpuRecord.park) === KICKED
      pause()
    }
  } while (!kicked && now() < until)
  Atomics.store(i32, spinner, 0)
  return kicked
}

/** Sleeps until a kick, for at most `timeout` milliseconds. Blocks the thread. */
export function haltBlocking(i32: Int32Array, cpu: number, timeout: number): void {
  if (!prepareHalt(i32, cpu)) return
  Atomics.wait(i32, cpu + CpuRecord.park, HALTED, timeout) // (C)
  finishHalt(i32, cpu)
}

/**
 * Before a halt: spins for a kick, if the budget and the other CPUs allow it. True: it was kicked, and must
 * search for work. `now`: milliseconds.
 */
export function spinBeforeHalt(
  i32: Int32Array,
  machine: Region,
  cpu: number,
  timeout: number,
  now: () => number,
  budget: SpinBudget,
): boolean {
  const spinner = machine.start + MachineRecord.spinner
  budget.spun = budget.ms > 0 && timeout > budget.ms && mayOneSpin(i32, spinner, cpu)
  if (!budget.spun || !spinForKick(i32, spinner, cpu, now, budget.ms)) return false
  budget.found()
  finishHalt(i32, cpu)
  return true
}

/** As `haltBlocking`, after `spinBeforeHalt`: the budget counts the sleep. */
export function haltAfterSpin(
  i32: Int32Array,
  cpu: number,
  timeout: number,
  now: () => number,
  budget: SpinBudget,
): void {
  const began = now()
  haltBlocking(i32, cpu, timeout)
  if (budget.spun || budget.ms === 0) budget.slept(now() - began)
}

/** As `haltBlocking`, without blocking: the event loop runs, and its callbacks may kick this CPU. */
export async function haltTurning(i32: Int32Array, cpu: number, timeout: number): Promise<void> {
  if (!prepareHalt(i32, cpu)) return
  const waiting = Atomics.waitAsync(i32, cpu + CpuRecord.park, HALTED, timeout) // (C)
  if (waiting.async) await waiting.value
  finishHalt(i32, cpu)
}
