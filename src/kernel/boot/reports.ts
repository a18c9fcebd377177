import type { CpuDeath } from '../../machine/core/machine.ts'
import { RunQueue } from '../../sched/core/runqueue.ts'
import type { UnjoinedFailure } from '../join/collector.ts'
import type { Deadlock } from '../recovery/deadlock.ts'
import type { BootedKernel } from './boot.ts'
import { type KernelEvents, KernelListeners, type StuckTask, warn } from './kernelevents.ts'

/** Reports a kernel's events to its listeners; without a listener, to the program. Booting thread only. */
export class KernelReports {
  readonly listeners: KernelListeners = new KernelListeners()
  /** The booting thread blocks, so that its event loop cannot print a warning. */
  isBlocked = false
  private readonly booted: BootedKernel

  constructor(booted: BootedKernel) {
    this.booted = booted
  }

  failure(failure: UnjoinedFailure): void {
    // Like an unhandled rejection: the program handles it, or ends.
    if (!this.listeners.emit('failure', failure)) void Promise.reject(failure.error)
  }

  /** `lost`: the tasks that fail because of the death; their errors name its reason. */
  death(death: CpuDeath, lost: number): void {
    if (this.listeners.emit('death', death) || lost > 0 || death.reason !== 'uncaught error') return
    const { error } = death
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    warn(
      `CPU ${death.cpu} died of an error that no task caught: of a rejected promise, a timer or a listener ` +
        `that a task left there. The CPU is replaced; kernel.on('death') receives the error: ${text}`,
      'HEDDLE_CPU_DIED',
    )
  }

  deadlock(deadlock: Deadlock): void {
    if (this.listeners.emit('deadlock', deadlock)) return
    // The event loop prints warnings, and this thread may be part of the deadlock.
    if (this.isBlocked) console.error(deadlock.message)
    else warn(deadlock.message, 'HEDDLE_DEADLOCK')
  }

  fault(error: KernelEvents['error']): void {
    if (!this.listeners.emit('error', error)) warn(error.message, error.code)
  }

  /** Reports a stuck task; calls `evict` unless the CPU answers meanwhile. Resolves with whether it did. */
  async stuck(report: Omit<StuckTask, 'stack' | 'evicted'>, evict: (() => void) | null): Promise<boolean> {
    const { name, id, cpu, where, ms } = report
    const { machine, view } = this.booted
    const heartbeat = view.s.queueOf(cpu) + RunQueue.heartbeat
    const before = Atomics.load(view.i32, heartbeat)
    const frames = await machine.stackOf?.(cpu).catch(() => null)
    const stack = frames == null ? null : frames.join('\n')
    const evicted = evict !== null && Atomics.load(view.i32, heartbeat) === before
    if (evicted) evict()
    this.listeners.emit('stuck', { ...report, evicted, stack })
    const how =
      where === 'task'
        ? 'without a safepoint'
        : "in its event loop (promises that settle at once, or a long callback; begin the async function with 'use task')"
    const lost = evicted ? '; its CPU is taken from it' : ''
    const place = stack ? `\n${stack}` : ''
    warn(
      `task ${name} #${id} has kept CPU ${cpu} for ${Math.round(ms)} ms ${how}: others wait behind it${lost}${place}`,
      'HEDDLE_STUCK_TASK',
    )
    return evicted
  }
}
