import { assert } from '../../arena/assert.ts'
import type { ArenaPlan, Region } from '../../arena/memory/arena.ts'
import { type Layout, ownLine, record, word, words } from '../../arena/memory/record.ts'
import { CPU_MAX } from '../../arena/sync/thread.ts'

/**
 * The words of a CPU that every thread can read. `state`:
 *
 *   state          meaning                                         changed by
 *   [0] OFFLINE    it has no thread                                controller -> [1]
 *   [1] STARTING   its thread is being created                     the CPU -> [2]
 *   [2] ONLINE     it runs its program                             the CPU -> [0] when its program ends
 *   [3] DEAD       its thread ended otherwise; recovery is due     controller -> [0] after recovery
 *
 * `park`: see halt.ts. `needResched`: set by any thread, read at safepoints, cleared by the CPU. `sliceEnd`:
 * see timekeeper.ts. `stopRequested`: the program is asked to end. `mail`: the number of messages that were
 * posted to the CPU's event loop and have not arrived (mail.ts).
 */
export const CpuRecord: Layout<
  | 'park'
  | 'needResched'
  | 'state'
  | 'sliceEnd'
  | 'stopRequested'
  | 'mail'
  | 'kicks'
  | 'life'
  | 'gone'
  | 'rescues'
  | 'turning'
> = record('cpu', {
  park: ownLine(word),
  needResched: ownLine(word),
  state: ownLine(word),
  sliceEnd: word,
  stopRequested: word,
  mail: word,
  /** The number of kicks that had to wake the thread: those that cost a system call. */
  kicks: word,
  /**
   * The number of this start among all starts of the machine; 0: the CPU has no thread that may hold a lock
   * (deaths.ts).
   */
  life: word,
  /** The number of the last start of this CPU whose thread is known to be gone. */
  gone: word,
  /** The number of rescues that this CPU is in (deaths.ts). */
  rescues: word,
  /** 1 while the CPU's event loop runs: its callbacks and microtasks cannot be preempted. */
  turning: word,
})

export const CPU_OFFLINE = 0
export const CPU_STARTING = 1
export const CPU_ONLINE = 2
export const CPU_DEAD = 3

/** The machine's part of the arena: the mask of active CPUs, the timekeeper's words, then the CPU records. */
export const MachineRecord: Layout<
  'active' | 'alarm' | 'until' | 'wakeups' | 'shutdown' | 'asked' | 'spinner'
> = record('machine', {
  /** Two words: CPUs 0 to 31, CPUs 32 to 63. */
  active: ownLine(words(2)),
  alarm: ownLine(word),
  until: ownLine(word),
  wakeups: word,
  shutdown: word,
  /** 1: a CPU asks whether another CPU is gone (deaths.ts). */
  asked: word,
  /** The record of the CPU that spins for a kick before it sleeps; 0: no CPU spins (halt.ts). */
  spinner: ownLine(word),
})

export function reserveMachine(plan: ArenaPlan, cpus: number): Region {
  checkCpus(cpus)
  return plan.reserve('machine', MachineRecord.words + cpus * CpuRecord.words)
}

/** Throws unless a machine can have `cpus` CPUs. */
export function checkCpus(cpus: unknown): asserts cpus is number {
  if (typeof cpus !== 'number' || !Number.isInteger(cpus) || cpus < 1 || cpus > CPU_MAX) {
    const shown = typeof cpus === 'string' ? `'${cpus}'` : String(cpus)
    throw new RangeError(`cpus: ${shown} is not a number of CPUs; give an integer from 1 to ${CPU_MAX}`)
  }
}

/** The pointer of a CPU's record. */
export function cpuRecord(machine: Region, cpu: number): number {
  const pointer = machine.start + MachineRecord.words + cpu * CpuRecord.words
  assert(
    cpu >= 0 && pointer + CpuRecord.words <= machine.start + machine.words,
    'the machine has no such CPU',
  )
  return pointer
}

export function cpuCount(machine: Region): number {
  return (machine.words - MachineRecord.words) / CpuRecord.words
}

/** Adds the CPU to the mask of CPUs that tasks may be placed on, or removes it. */
export function setActive(i32: Int32Array, machine: Region, cpu: number, active: boolean): void {
  const at = machine.start + MachineRecord.active + (cpu >>> 5)
  if (active) Atomics.or(i32, at, 1 << (cpu & 31))
  else Atomics.and(i32, at, ~(1 << (cpu & 31)))
}

export function isActive(i32: Int32Array, machine: Region, cpu: number): boolean {
  return ((Atomics.load(i32, machine.start + MachineRecord.active + (cpu >>> 5)) >>> (cpu & 31)) & 1) !== 0
}

/** One half of the active mask: `half` 0 is CPUs 0 to 31, 1 is CPUs 32 to 63. */
export function activeMask(i32: Int32Array, machine: Region, half: 0 | 1): number {
  return Atomics.load(i32, machine.start + MachineRecord.active + half)
}
