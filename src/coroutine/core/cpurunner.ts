import { CpuRecord } from '../../machine/core/cpurecord.ts'
import type { Cpu } from '../../machine/core/machine.ts'
import type { Coroutine } from './coroutine.ts'
import { type SafepointLine, safepointLine, setSafepointLine, swapPreemptionDepth } from './safepoint.ts'

/**
 * Coroutines on a CPU of the kernel: their safepoints check the CPU's own `needResched`. The timekeeper
 * raises that word when a slice ends; another CPU raises it for a task that goes first or must stop. The
 * coroutine yields PREEMPTED, and the CPU finds the reason.
 *
 * A simulated CPU stops at every safepoint, because no time passes and no other CPU runs while a coroutine
 * runs. The CPU's program charges the stretch, yields STEP, and continues the same coroutine unless its word
 * is up.
 */
export class CpuRunner {
  readonly #line: SafepointLine

  constructor(cpu: Cpu) {
    this.#line = cpu.stepwise
      ? safepointLine(Int32Array.of(1), 0, null)
      : safepointLine(cpu.i32, cpu.record + CpuRecord.needResched, null)
  }

  /** Starts or continues the coroutine on this CPU until it stops. True: it has finished. */
  resume(coroutine: Coroutine, sent?: unknown): boolean {
    return this.#switchTo(coroutine, false, sent)
  }

  /** Throws into the coroutine on this CPU: a kill or a cancel. True: it has finished. */
  raise(coroutine: Coroutine, error: unknown): boolean {
    return this.#switchTo(coroutine, true, error)
  }

  #switchTo(coroutine: Coroutine, raising: boolean, sent: unknown): boolean {
    const line = setSafepointLine(this.#line)
    const depth = swapPreemptionDepth(coroutine.preemptionDepth)
    try {
      if (raising) return coroutine.raise(sent)
      return coroutine.state === 'ready' ? coroutine.start() : coroutine.resume(sent)
    } finally {
      coroutine.preemptionDepth = swapPreemptionDepth(depth)
      setSafepointLine(line)
    }
  }
}
