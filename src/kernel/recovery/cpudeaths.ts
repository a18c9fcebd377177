import { throwIfInside } from '../../arena/sync/section.ts'
import { CPU_ONLINE, cpuRecord, CpuRecord } from '../../machine/core/cpurecord.ts'
import { awaitRescues } from '../../machine/core/deaths.ts'
import type { CpuDeath } from '../../machine/core/machine.ts'
import type { LostTask } from '../../sched/recovery/lost.ts'
import type { BootedKernel } from '../boot/boot.ts'
import { endedBy } from '../boot/counters.ts'
import type { CpuSet } from '../boot/cpuset.ts'
import type { KernelReports } from '../boot/reports.ts'
import type { SimulatedDriver } from '../boot/simulateddriver.ts'
import type { BooterMail } from '../cpu/mail.ts'
import type { Collector } from '../join/collector.ts'
import { CrashLoopError, KernelFaultError, RecoveryError } from '../join/errors.ts'
import { Job, OUTCOME_PENDING, JOB_POSTED, JOB_RESULT_MAILED } from '../spawn/job.ts'
import { type Recovery, recoverCpu, releaseDead } from './recovery.ts'
import { Restarts } from './restarts.ts'

/** The parts of a kernel that the death of a CPU concerns. */
export interface DeathParts {
  readonly booted: BootedKernel
  readonly collector: Collector
  readonly mail: BooterMail
  readonly cpuSet: CpuSet
  readonly reports: KernelReports
  readonly driver: SimulatedDriver | null
  terminateAll(): Promise<void>
}

/** Handles the deaths of CPUs on the booting thread: recovers each, and starts it again or gives it up. */
export class CpuDeaths {
  /** Set when the kernel closes: no CPU is started again. */
  isEnding = false
  /** Set when all CPUs are terminated for good: no task runs again, and there is nothing to recover. */
  isTerminating = false
  /** Why no task can run any more. */
  broken: CrashLoopError | KernelFaultError | null = null
  readonly restarts: Restarts
  private readonly parts: DeathParts
  private readonly givenUp = new Set<number>()
  /** By CPU that is gone, and whose death was not reported yet: the tasks that are lost with it. */
  private readonly released = new Map<number, readonly LostTask[]>()

  constructor(parts: DeathParts) {
    this.parts = parts
    this.restarts = new Restarts(cpu => endedBy(parts.booted.view, cpu))
  }

  /** Repairs the shared data of a dead CPU, handles its tasks, and replaces it. */
  died(death: CpuDeath): void {
    const { booted, collector, cpuSet, mail, reports } = this.parts
    const { machine, view } = booted
    collector.deaths.set(death.cpu, death)
    if (this.isTerminating || this.broken instanceof KernelFaultError) {
      reports.listeners.emit('death', death)
      return
    }
    let recovery: Recovery
    try {
      recovery = recoverCpu(view, collector, death, this.released.get(death.cpu))
    } catch (error) {
      this.givenUp.add(death.cpu)
      cpuSet.giveUp(death.cpu)
      reports.fault(new RecoveryError(death.cpu, error))
      reports.listeners.emit('death', death)
      return
    }
    this.released.delete(death.cpu)
    mail.died(death.cpu)
    this.loseMailedResults(death.cpu)
    machine.recovered(death.cpu)
    awaitRescues(view.thread, view.plan.machine, cpu => machine.isGone?.(cpu) !== false)
    // A job whose task and holder were both lost has ended without a completion.
    view.completions.interrupt()
    const isWanted = cpuSet.died(death.cpu)
    reports.death(death, recovery.lost)
    const wait = this.restarts.died(death, recovery.lost + recovery.crashed)
    if (wait === Infinity) this.giveUp(death)
    else if (isWanted) void this.replace(death.cpu, wait)
  }

  /**
   * Called while this thread blocks and so receives no death: releases the locks of CPUs that are gone, so
   * that no thread waits for them. `died` does the rest.
   */
  releaseUnreported(): void {
    const { machine, view } = this.parts.booted
    for (let cpu = 0; cpu < machine.cpus; cpu++) {
      if (this.released.has(cpu) || machine.isGone?.(cpu) !== true) continue
      const state = cpuRecord(view.plan.machine, cpu) + CpuRecord.state
      if (Atomics.load(view.i32, state) === CPU_ONLINE) this.released.set(cpu, releaseDead(view, cpu))
    }
  }

  /**
   * Whether this thread has left a kernel call half done, with locks held: recovery cannot repair the thread
   * that runs it. Every task fails with that error, and the CPUs, which wait for those locks, are ended.
   */
  isFaulty(): boolean {
    if (this.broken instanceof KernelFaultError) return true
    const { booted, collector, reports } = this.parts
    const { thread } = booted.view
    if (thread.sections === 0) return false
    let cause: unknown
    try {
      throwIfInside(thread, 'the thread that booted the kernel')
    } catch (error) {
      cause = error
    }
    const fault = new KernelFaultError(cause)
    this.broken = fault
    collector.abandon(() => fault, false)
    void this.parts.terminateAll()
    reports.fault(fault)
    return true
  }

  /** Handles jobs that ended on the dead CPU, and whose results it had not sent. */
  private loseMailedResults(dead: number): void {
    const { mail, booted } = this.parts
    const { i32, jobs } = booted.view
    for (let job = jobs.after(i32, 0); job !== 0; job = jobs.after(i32, job)) {
      const control = Atomics.load(i32, job + Job.control)
      if (Atomics.load(i32, job + Job.cpu) !== dead + 1) continue
      if ((control & JOB_RESULT_MAILED) !== 0) mail.loseResult(i32[job + Job.number])
      if ((control & JOB_POSTED) !== 0 && Atomics.load(i32, job + Job.outcome) !== OUTCOME_PENDING)
        mail.heardAll(i32[job + Job.number])
    }
  }

  /** Starts a CPU again, after `wait` milliseconds. */
  private async replace(cpu: number, wait: number): Promise<void> {
    const { cpuSet, driver, reports } = this.parts
    if (wait > 0) await new Promise(resolve => setTimeout(resolve, wait))
    if (this.isEnding || cpuSet.isHere(cpu) || cpuSet.isComing(cpu)) return
    this.restarts.starts(cpu)
    // If the CPU dies again, `died` starts it again.
    if (!(await cpuSet.start(cpu))) return
    driver?.kick()
    reports.listeners.emit('restart', { cpu })
  }

  /** Never starts the CPU again. If it was the last, no task can run any more. */
  private giveUp({ cpu, error }: CpuDeath): void {
    const { booted, collector, cpuSet, reports } = this.parts
    this.givenUp.add(cpu)
    cpuSet.giveUp(cpu)
    const left = booted.machine.cpus - this.givenUp.size
    const loop = new CrashLoopError(cpu, this.restarts.reasonsOf(cpu), left, error)
    if (left === 0) {
      this.broken = loop
      collector.abandon(() => loop)
    }
    reports.fault(loop)
  }
}
