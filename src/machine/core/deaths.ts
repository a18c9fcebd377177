import type { Region } from '../../arena/memory/arena.ts'
import { awaitChange } from '../../arena/sync/awaiting.ts'
import type { KernelThread } from '../../arena/sync/thread.ts'
import { CPU_OFFLINE, CpuRecord, cpuCount, cpuRecord, MachineRecord } from './cpurecord.ts'
import { wakeTimekeeper } from '../timekeeper/timekeeper.ts'

/**
 * How every CPU learns that the thread of another is gone, so that it can break the locks that the other held
 * while the booting thread is busy.
 *
 * `life` is the number of the CPU's start while it has a thread that may hold locks; 0: it has none. `gone`
 * is the number of the last start whose thread is known to be gone. A CPU is known to be gone when the two
 * are equal. On Node the timekeeper writes `gone`, when a CPU asks it (`asked`): it has the near end of a
 * lifeline of each start. In a browser the undertaker writes it, without being asked.
 *
 * A CPU that breaks a lock says so in `rescues` of its own record. The same number starts again only when no
 * rescue from before is under way:
 *
 *   CPU 0, waits at a lock of CPU 1            booting thread
 *   -------------------------------            --------------
 *   (A) rescues = 1
 *   (B) gone === life: CPU 1 is gone
 *                                              recovers CPU 1
 *                                              (C) life = 0
 *                                              (D) waits while CPU 0 has rescues
 *   breaks the lock
 *   (E) rescues = 0
 *                                              starts CPU 1, which takes the lock
 *
 * (A) before (B) and (C) before (D): either CPU 0 sees that there is no such life, or the booting thread sees
 * that it rescues. Without (D), or with (B) before (A), CPU 0 breaks the lock of a CPU that is alive. A CPU
 * that dies between (A) and (E) is not waited for: its record is reset when it starts again.
 */

/**
 * Whether the CPU has died, as far as memory says. The caller that acts on it is between (A) and (E). A CPU
 * whose program has ended is OFFLINE before its thread is gone: it holds no lock, and its number may start
 * again without (D). `life` is read twice, so that the state is that of the same start.
 */
export function isKnownDead(i32: Int32Array, machine: Region, cpu: number): boolean {
  const record = cpuRecord(machine, cpu)
  const life = Atomics.load(i32, record + CpuRecord.life)
  if (life === 0 || Atomics.load(i32, record + CpuRecord.gone) !== life) return false
  if (Atomics.load(i32, record + CpuRecord.state) === CPU_OFFLINE) return false
  return Atomics.load(i32, record + CpuRecord.life) === life // (B)
}

/** Asks for `gone` to be written where a thread has ended. The answer comes later. */
export function askForDeaths(i32: Int32Array, machine: Region): void {
  Atomics.store(i32, machine.start + MachineRecord.asked, 1)
  wakeTimekeeper(i32, machine)
}

/** Whether a CPU has asked since the last time. */
export function takeQuestion(i32: Int32Array, machine: Region): boolean {
  return Atomics.exchange(i32, machine.start + MachineRecord.asked, 0) !== 0
}

/** The thread of this start of the CPU is gone. */
export function noteGone(i32: Int32Array, machine: Region, cpu: number, start: number): void {
  Atomics.store(i32, cpuRecord(machine, cpu) + CpuRecord.gone, start)
}

/** Rescues nest: mending what one dead CPU left may wait for a lock of another. */
export function beginRescue(i32: Int32Array, record: number): void {
  Atomics.add(i32, record + CpuRecord.rescues, 1) // (A)
}

export function endRescue(i32: Int32Array, record: number): void {
  if (Atomics.sub(i32, record + CpuRecord.rescues, 1) === 1) Atomics.notify(i32, record + CpuRecord.rescues) // (E)
}

/** The booting thread, after (C) and before the same number starts again. It holds no lock. */
export function awaitRescues(thread: KernelThread, machine: Region, isGone: (cpu: number) => boolean): void {
  const { i32 } = thread
  for (let cpu = 0; cpu < cpuCount(machine); cpu++) {
    const at = cpuRecord(machine, cpu) + CpuRecord.rescues
    // (D)
    for (let seen = Atomics.load(i32, at); seen !== 0 && !isGone(cpu); seen = Atomics.load(i32, at)) {
      awaitChange(thread, i32, at, seen, cpu)
    }
  }
}
