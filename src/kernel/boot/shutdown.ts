import { endsWithin } from '../../machine/timekeeper/alarm.ts'
import type { Collector } from '../join/collector.ts'
import { turn } from '../cpu/eventloopturn.ts'
import { closedError } from '../join/cancel.ts'
import { RecoveryError, ThreadLeftError } from '../join/errors.ts'
import type { Admission } from '../spawn/admission.ts'
import type { BootedKernel } from './boot.ts'
import { KillRounds } from './close.ts'
import type { CloseDeadline } from './closedeadline.ts'
import type { KernelReports } from './reports.ts'

/** Milliseconds between two passes of kills while a kernel closes, and of one round of a pass. */
const KILL_AGAIN_MS = 50
const KILL_MS = 20

/** Milliseconds for evictions and their recovery while a kernel closes; then its CPUs are terminated. */
const EVICTIONS_MS = 1000

/** Milliseconds more for as long as tasks go on ending. */
const MANY_MS = 1000

/** Milliseconds that idle CPUs may take to stop, and terminated ones to end. */
export const STOP_MS = 5000

/** The end of a kernel's tasks and CPUs. */
export class Shutdown {
  /** Called before CPUs are terminated: none is started again. */
  onTerminate: () => void = () => undefined
  private readonly booted: BootedKernel
  private readonly collector: Collector
  private readonly reports: KernelReports
  private readonly deadline: CloseDeadline
  /** CPUs whose threads did not end. */
  private readonly abandoned = new Set<number>()

  constructor(booted: BootedKernel, collector: Collector, reports: KernelReports, deadline: CloseDeadline) {
    this.booted = booted
    this.collector = collector
    this.reports = reports
    this.deadline = deadline
  }

  /**
   * Ends all tasks. With a deadline it always ends: no step waits for a CPU, or for data in the arena,
   * without a limit.
   *
   *   1  the tasks end by themselves            until the deadline
   *   2  they are killed repeatedly             for a grace period and EVICTIONS_MS
   *   3  the CPUs are terminated, and the remaining handles get an error, without the arena
   */
  async endTasks(admission: Admission | null, isSimulated: boolean): Promise<void> {
    const { collector, deadline } = this
    const drained = collector.drained()
    const isDrained = await Promise.race([drained.then(() => true), deadline.over.then(() => false)])
    deadline.stop()
    if (isDrained || (await this.killUntil(drained, admission, isSimulated))) return
    await this.terminateAll()
    collector.abandon((name, started) => {
      const how = started ? 'evicted' : 'unstarted'
      return closedError(name, how, deadline.reason)
    })
  }

  /** Terminates every CPU. A thread that does not end is reported, and no longer waited for. */
  async terminateAll(): Promise<void> {
    const { machine } = this.booted
    this.onTerminate()
    await Promise.all(
      Array.from({ length: machine.cpus }, async (_, cpu) => {
        if (await endsWithin(machine.terminate(cpu), STOP_MS)) return
        machine.abandon?.(cpu)
        if (this.abandoned.has(cpu)) return
        this.abandoned.add(cpu)
        this.reports.fault(new ThreadLeftError(cpu))
      }),
    )
  }

  async endMachine(): Promise<void> {
    const closed = this.booted.machine.close()
    if (await endsWithin(closed, STOP_MS)) return
    await this.terminateAll()
    await endsWithin(closed, 2 * STOP_MS)
  }

  /** Kills every task until no task is left. False: some did not end in time. */
  private async killUntil(
    drained: Promise<void>,
    admission: Admission | null,
    isSimulated: boolean,
  ): Promise<boolean> {
    const { settings, view } = this.booted
    const grace = settings.grace === Infinity ? 0 : settings.grace
    const end = performance.now() + grace + EVICTIONS_MS
    const kills = new KillRounds(view)
    let isPassed = true
    let left = Infinity
    while (this.collector.isBusy) {
      const { active } = this.collector
      // A million tasks take their time, even if each ends at once.
      const more = active < left ? MANY_MS : 0
      left = active
      if (performance.now() >= end + more && !isSimulated) return false
      try {
        // Tasks that have not ended may spawn others, which are killed too.
        isPassed = kills.round(KILL_MS, this.deadline.reason)
        admission?.open()
      } catch (error) {
        this.reports.fault(new RecoveryError(-1, error))
        return false
      }
      if (isPassed) await endsWithin(drained, KILL_AGAIN_MS)
      else await turn()
    }
    return true
  }
}
