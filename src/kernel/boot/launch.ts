import type { Allowlist } from './allowlist.ts'
import { continueCpus, holdCpus } from '../../sched/ext/extload.ts'
import { isOnline } from '../../sched/balance/hotplug.ts'
import { formatCounts, handoffCounts, LoadedPolicy, policyAddress } from './policy.ts'
import { runDefaults } from './rundefaults.ts'
import type { KernelView } from './view.ts'

/**
 * A boot under the launcher (`heddle run`), which puts the program's kernels under a policy by environment
 * variables, without changing the program.
 *
 *   launcher                                 Kernel.boot in the program
 *   --------                                 --------------------------
 *   sets HEDDLE_POLICY, HEDDLE_PROTOCOL
 *   starts the program
 *                                            [1] the CPUs are started, stopped
 *                                            [2] each loads the policy
 *                                            [3] ordinary tasks move to the policy: the allowlist
 *                                            [4] the CPUs continue; boot resolves
 *                                            [5] at close or process exit: unloaded, counters printed
 */
export const POLICY_VARIABLE = 'HEDDLE_POLICY'
/** The tasks that the policy schedules, as JSON: an allowlist of names and modules. Not set: all. */
export const POLICY_TASKS_VARIABLE = 'HEDDLE_POLICY_TASKS'

interface Globals {
  readonly process?: {
    readonly env?: Readonly<Record<string, string | undefined>>
    once?(event: 'exit', listener: () => void): void
    off?(event: 'exit', listener: () => void): void
  }
}

const { process } = globalThis as unknown as Globals

/** A kernel's boot under the launcher; null: there is no launcher. */
export function launchOf(view: KernelView): Launch | null {
  const policy = process?.env?.[POLICY_VARIABLE]
  return policy === undefined || policy === '' ? null : new Launch(view, policyAddress(policy))
}

export class Launch {
  private readonly view: KernelView
  private readonly href: string
  private policy: LoadedPolicy | null = null
  private readonly atExit: () => void = () => this.print()

  constructor(view: KernelView, href: string) {
    this.view = view
    this.href = href
  }

  /** [1] Before the CPUs are started. */
  hold(): void {
    holdCpus(this.view.s)
  }

  /** [2] to [4], after the CPUs were started. */
  async continue(): Promise<void> {
    try {
      const list = process?.env?.[POLICY_TASKS_VARIABLE]
      const tasks = list === undefined || list === '' ? 'all' : (JSON.parse(list) as Allowlist)
      this.policy = await LoadedPolicy.load(this.view, this.href, { tasks })
    } finally {
      continueCpus(this.view.s)
    }
    const { s } = this.view
    for (let cpu = 0; cpu < s.cpus; cpu++) {
      while (this.view.isCpuActive(cpu) && !isOnline(s, cpu))
        await new Promise(resolve => setTimeout(resolve, 1))
    }
    process?.once?.('exit', this.atExit)
  }

  /** [5] Every task has ended; the CPUs still run. */
  async end(): Promise<void> {
    await this.policy?.unload()
    process?.off?.('exit', this.atExit)
    this.print()
  }

  private print(): void {
    const policy = this.policy?.name ?? ''
    const counts = handoffCounts(this.view)
    const report = runDefaults()?.report
    if (report === undefined) console.error(`heddle: policy ${policy}: ${formatCounts(counts)}`)
    else report({ policy, ...counts })
  }
}
