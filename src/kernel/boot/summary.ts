import { cpuAccount } from '../../sched/core/account.ts'
import type { KernelView } from './view.ts'

/** Figures of a kernel since its boot. As a string it is one line. */
export class KernelSummary {
  /** Tasks of the booting thread that have ended in any way. */
  readonly completed: number
  /** Those of them that did not return. */
  readonly failed: number
  /** Tasks that have not ended. */
  readonly active: number
  /** CPUs now, and the maximum. */
  readonly online: number
  readonly cpus: number
  /** Milliseconds since the boot. */
  readonly uptime: number
  /** Milliseconds that all CPUs together have run tasks. */
  readonly busyTime: number
  /** The share of the time of `cpus` CPUs since the boot in which tasks ran: 0 to 1. */
  readonly utilization: number

  constructor(
    view: KernelView,
    now: number,
    counts: { completed: number; failed: number; active: number; online: number },
  ) {
    const { i32, s } = view
    this.completed = counts.completed
    this.failed = counts.failed
    this.active = counts.active
    this.online = counts.online
    this.cpus = s.cpus
    this.uptime = now
    let busyTime = 0
    for (let cpu = 0; cpu < s.cpus; cpu++) busyTime += cpuAccount(i32, s.queueOf(cpu)).busyTime
    this.busyTime = busyTime
    this.utilization = now > 0 ? Math.min(1, busyTime / (now * s.cpus)) : 0
  }

  toString(): string {
    const { completed, failed, active, online, cpus, uptime, utilization } = this
    const failures = failed === 0 ? '' : ` (${failed} failed)`
    const range = online === cpus ? String(cpus) : `${online} of ${cpus}`
    return `${completed} tasks completed${failures}, ${active} active, ${range} CPUs, ${(utilization * 100).toFixed(1)}% used in ${(uptime / 1000).toFixed(1)} s`
  }
}
