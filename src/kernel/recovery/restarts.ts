import type { CpuDeath } from '../../machine/core/machine.ts'
import { describe } from '../join/errors.ts'

/** After so many deaths in a row a CPU is not started again. */
export const DEATHS_MAX = 6

/** A CPU that has taken tasks for so many milliseconds works: its next death is the first of a row. */
const RUNS_WELL_MS = 5000

/** Milliseconds before the second start in a row; each further start waits twice as long. */
const BACK_OFF_MS = 50

interface Row {
  readonly reasons: string[]
  /**
   * When the CPU began to take tasks; Infinity: it has not since its last start, however long it has been
   * loading.
   */
  ready: number
  /** How many jobs it had ended when it was started. */
  ended: number
}

/**
 * The deaths of each CPU that nothing came of: it died by itself (of an error, out of memory, by
 * `process.exit`), soon after its start, had ended no job, and no job was lost with it. Tasks that kill their
 * CPU are lost with it, and come to an end; but what kills a CPU without them (a module that cannot be loaded
 * again, a fault of the kernel) meets the next one as well. So each start of a row waits longer, and after
 * the last there is none. A CPU that was terminated does not count.
 */
export class Restarts {
  private readonly rows = new Map<number, Row>()
  private readonly endedBy: (cpu: number) => number
  private readonly now: () => number

  /** `endedBy`: how many jobs a CPU has ended. */
  constructor(endedBy: (cpu: number) => number, now: () => number = () => performance.now()) {
    this.endedBy = endedBy
    this.now = now
  }

  /**
   * A CPU has died, and so many jobs with it. Returns how many milliseconds to wait before it is started
   * again; Infinity: it is not.
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

  /** Why the CPU died, for each death of the row. */
  reasonsOf(cpu: number): readonly string[] {
    return this.rows.get(cpu)?.reasons ?? []
  }
}

export function deathInWords({ reason, exitCode, error }: CpuDeath): string {
  if (error !== undefined) return `${reason}: ${describe(error)}`
  return reason === 'terminated' ? reason : `${reason} with code ${exitCode}`
}
