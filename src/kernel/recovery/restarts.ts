import type { CpuDeath } from '../../machine/core/machine.ts'
import { describe } from '../join/errors.ts'

/** After this many deaths in a row a CPU is not started again. */
export const DEATHS_MAX = 6

/** If a CPU has taken tasks for this many milliseconds, its next death is the first of a new row. */
const RUNS_WELL_MS = 5000

/** Milliseconds before the second start in a row; each further start waits twice as long. */
const BACK_OFF_MS = 50

interface Row {
  readonly reasons: string[]
  /** When the CPU began to take tasks; Infinity: not since its last start. */
  ready: number
  /** How many jobs it had ended when it was started. */
  ended: number
}

/**
 * Counts the useless deaths of each CPU: it died by itself (an error, out of memory, `process.exit`) soon
 * after its start, without ending a job and without losing one. A task that kills its CPU is lost with it,
 * which ends the row. But a cause outside of tasks (a module that cannot be loaded, a defect of the kernel)
 * kills the next CPU as well. So each start of a row waits longer, and the row has a limit. A terminated CPU
 * does not count.
 */
export class Restarts {
  private readonly rows = new Map<number, Row>()
  private readonly endedBy: (cpu: number) => number
  private readonly now: () => number

  /** `endedBy` returns how many jobs a CPU has ended. */
  constructor(endedBy: (cpu: number) => number, now: () => number = () => performance.now()) {
    this.endedBy = endedBy
    this.now = now
  }

  /**
   * A CPU has died, and `lost` jobs with it. Returns the milliseconds to wait before it is started again;
   * Infinity: never.
   */
  died(death: CpuDeath, lost: number): number {
    const { cpu } = death
    if (death.reason === 'terminated') return 0
    const row = this.rows.get(cpu) ?? { reasons: [], ready: -Infinity, ended: 0 }
    this.rows.set(cpu, row)
    const works = this.now() - row.ready >= RUNS_WELL_MS || this.endedBy(cpu) !== row.ended
    if (lost > 0 || works) row.reasons.length = 0
    if (lost > 0) return 0
    row.reasons.push(deathInWords(death))
    const deaths = row.reasons.length
    if (deaths >= DEATHS_MAX) return Infinity
    return deaths === 1 ? 0 : BACK_OFF_MS * 2 ** (deaths - 2)
  }

  /** The CPU is being started. */
  starts(cpu: number): void {
    const row = this.rows.get(cpu)
    if (row === undefined) return
    row.ready = Infinity
    row.ended = this.endedBy(cpu)
  }

  /** The CPU takes tasks. */
  isReady(cpu: number): void {
    const row = this.rows.get(cpu)
    if (row !== undefined) row.ready = this.now()
  }

  /** The reasons of each death of the row. */
  reasonsOf(cpu: number): readonly string[] {
    return this.rows.get(cpu)?.reasons ?? []
  }
}

export function deathInWords({ reason, exitCode, error }: CpuDeath): string {
  if (error !== undefined) return `${reason}: ${describe(error)}`
  return reason === 'terminated' ? reason : `${reason} with code ${exitCode}`
}
