import type { Region } from '../../arena/memory/arena.ts'
import { awaitChange } from '../../arena/sync/awaiting.ts'
import type { KernelThread } from '../../arena/sync/thread.ts'
import { CPU_OFFLINE, CpuRecord, cpuCount, cpuRecord, MachineRecord } from './cpurecord.ts'
import { wakeTimekeeper } from '../timekeeper/timekeeper.ts'

/**
 * How a CPU learns that the thread of another CPU is gone, so that it can break the locks of the dead CPU
 * while the booting thread is busy.
 *
 * `life` is the number of the CPU's start while its thread may hold locks, else 0. `gone` is the number of
 * the last start whose thread is known to be gone. A CPU is known to be gone when the two are equal. On Node
 * the timekeeper writes `gone` when a CPU asks (`asked`): it has the near end of a lifeline of each start. In
 * a browser the death watcher writes it, without being asked.
 *
 * A CPU that breaks a lock counts that in `rescues` of its own record. The dead CPU starts again only when no
 * earlier rescue is under way:
 *
 *   rescuer (CPU 0, waits for a lock of CPU 1)   booting thread
 *   ------------------------------------------   --------------
 *   (A) rescues = 1
 *   (B) gone === life: CPU 1 is gone
 *                                                recovers CPU 1
 *                                                (C) life = 0
 *                                                (D) waits while CPU 0 has rescues
 *   breaks the lock
 *   (E) rescues = 0
 *                                                starts CPU 1, which takes the lock
 *
 * (A) before (B) and (C) before (D): either CPU 0 sees that the life is over, or the booting thread sees the
 * rescue. Without (D), or with (B) before (A), CPU 0 breaks the lock of a living CPU. The booting thread does
 * not wait for a CPU that dies between (A) and (E): the record of that CPU is reset when it starts again.
 */

/**
 * Whether the shared words say that the CPU has died. A caller that acts on the answer is between (A) and
 * (E). A CPU whose program has ended is OFFLINE before its thread is gone: it holds no lock, and it may start
 * again without (D). `life` is read twice, so that `state` belongs to the same start.
 */
export function isKnownDead(i32: Int32Array, machine: Region, cpu: number): boolean {
  const record = cpuRecord(machine, cpu)
  const life = Atomics.load(i32, record + CpuRecord.life)
  if (life === 0 || Atomics.load(i32, record + CpuRecord.gone) !== life) return false
  if (Atomics.load(i32, record + CpuRecord.state) === CPU_OFFLINE) return false
  return Atomics.load(i32, record + CpuRecord.life) === life // (B)
}

/** Requests that `gone` is written for threads that have ended. The answer comes later. */
export function requestDeaths(i32: Int32Array, machine: Region): void {
  Atomics.store(i32, machine.start + MachineRecord.asked, 1)
  wakeTimekeeper(i32, machine)
}

/** Whether a CPU has requested it since the last call. */
export function takeDeathRequest(i32: Int32Array, machine: Region): boolean {
  return Atomics.exchange(i32, machine.start + MachineRecord.asked, 0) !== 0
}

/** Records that the thread of this start of the CPU is gone. */
export function noteGone(i32: Int32Array, machine: Region, cpu: number, start: number): void {
  Atomics.store(i32, cpuRecord(machine, cpu) + CpuRecord.gone, start)
}

/** Rescues nest: repairing the data of one dead CPU may need a lock of another dead CPU. */
export function beginRescue(i32: Int32Array, record: number): void {
  Atomics.add(i32, record + CpuRecord.rescues, 1) // (A)
}

export function endRescue(i32: Int32Array, record: number): void {
  if (Atomics.sub(i32, record + CpuRecord.rescues, 1) === 1) Atomics.notify(i32, record + CpuRecord.rescues) // (E)
}

/** Called by the booting thread, after (C) and before the CPU starts again. It holds no lock. */
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
