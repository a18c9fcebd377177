import { show } from '../../coroutine/core/knownoptions.ts'
import type { Known } from '../../coroutine/core/knownoptions.ts'
import type { HandoffCounts } from '../../handoff/handoff.ts'
import { type EjectReport, ejectReport } from '../../sched/ext/eject.ts'
import { importByUrl } from '../../machine/core/moduleimport.ts'
import { providePolicy } from '../../sched/ext/extimport.ts'
import { ExtRecord, NONE } from '../../sched/ext/extlayout.ts'
import {
  allowTask,
  disallowTask,
  hasPolicy,
  joinAsListed,
  loadPolicy,
  takeAllTasks,
  takeListedTasks,
  unloadPolicy,
} from '../../sched/ext/extload.ts'
import { checkPolicy, type PolicySource } from '../../sched/ext/policy.ts'
import { type Allowlist, writeAllowlist } from './allowlist.ts'
import type { ChildTask } from '../join/childtask.ts'
import { Job } from '../spawn/job.ts'
import { warn } from './kernelevents.ts'

import type { Task } from '../join/task.ts'
import { TaskHandle } from '../join/taskhandle.ts'
import type { KernelView } from './view.ts'

/** Policies of the package, by name. */
const builtIn: Readonly<Record<string, () => string>> = {
  handoff: () => new URL('../../handoff/policy.ts', import.meta.url).href,
  fifo: () => new URL('../../sched/ext/policies/fifo.ts', import.meta.url).href,
  vtime: () => new URL('../../sched/ext/policies/vtime.ts', import.meta.url).href,
  latency: () => new URL('../../sched/ext/policies/latency.ts', import.meta.url).href,
}

export const policyNames: readonly string[] = Object.keys(builtIn)

/** Whether this names a policy of the package, or is an address. */
export function isPolicy(policy: string): boolean {
  return builtIn[policy] !== undefined || URL.canParse(policy)
}

export interface PolicyOptions {
  /**
   * 'all': the policy schedules every ordinary task, new ones too. 'listed': only those given to `allow`. An
   * allowlist: those whose name or module it has, new ones too, and those given to `allow`.
   */
  readonly tasks?: 'all' | 'listed' | Allowlist
}

export const policyOptions: Known<PolicyOptions> = { tasks: true }

/** The address of a policy module: one of the package by name, else a file or URL. */
export function policyAddress(policy: URL | string): string {
  if (typeof policy !== 'string') return policy.href
  const known = builtIn[policy]
  if (known !== undefined) return known()
  if (URL.canParse(policy)) return new URL(policy).href
  throw new TypeError(
    `policy: '${policy}' is not one of ${policyNames.join(', ')}, and not a URL; give new URL('./mine.ts', import.meta.url)`,
  )
}

const POLL_MS = 20

/** A policy that schedules a kernel's tasks, from `kernel.loadPolicy` until it is unloaded or ejected. */
export class LoadedPolicy {
  readonly name: string
  /** Resolves when it has ended: unloaded, or ejected with a reason. */
  readonly ended: Promise<EjectReport>
  private readonly view: KernelView
  private readonly generation: number
  private timer: ReturnType<typeof setInterval> | undefined

  private constructor(view: KernelView, name: string, generation: number) {
    this.view = view
    this.name = name
    this.generation = generation
    this.ended = new Promise(resolve => {
      this.timer = setInterval(() => this.poll(resolve), POLL_MS)
      // The tasks themselves keep the program alive.
      ;(this.timer as { unref?(): void }).unref?.()
    })
  }

  /** Loads it on every running CPU, and moves its tasks to it. Throws if the module is invalid. */
  static async load(
    view: KernelView,
    href: string,
    options: PolicyOptions = {},
    nameOf: (job: number) => string = () => '',
  ): Promise<LoadedPolicy> {
    const { tasks = 'all' } = options
    const list = tasks === 'all' || tasks === 'listed' ? null : writeAllowlist(tasks)
    const { i32, s } = view
    let source: PolicySource
    let name: string
    try {
      source = ((await importByUrl(href)) as { readonly default: PolicySource }).default
      ;({ name } = checkPolicy(source))
    } catch (error) {
      throw new Error(
        `policy: cannot load ${href}: ${error instanceof Error ? error.message : String(error)}`,
        {
          cause: error,
        },
      )
    }
    // For the CPUs of a simulated machine, which share this thread.
    providePolicy(href, source)
    loadPolicy(s, { name, href })
    const loaded = new LoadedPolicy(view, name, Atomics.load(i32, s.ext.record + ExtRecord.generation))
    while (loaded.isActive && !loaded.isEverywhere) await new Promise(resolve => setTimeout(resolve, 1))
    // Do not wait for its end: held CPUs call its `exit` only after they continue.
    if (!loaded.isActive) throw new Error(`policy '${name}': ${ejectReport(s).message}`)
    if (tasks === 'all') takeAllTasks(s)
    if (list !== null) {
      takeListedTasks(s, list)
      moveListed(view, nameOf)
    }
    return loaded
  }

  /** Whether it schedules tasks now. */
  get isActive(): boolean {
    const { i32, s } = this.view
    return s.ext.isActive() && Atomics.load(i32, s.ext.record + ExtRecord.generation) === this.generation
  }

  private get isEverywhere(): boolean {
    const { s, plan } = this.view
    for (let cpu = 0; cpu < plan.sizes.cpus; cpu++) {
      if (this.isRunning(cpu) && !hasPolicy(s, cpu)) return false
    }
    return true
  }

  private isRunning(cpu: number): boolean {
    return this.view.isCpuActive(cpu)
  }

  /** Ends it. When this resolves, its tasks are ordinary ones again, and every CPU has unloaded it. */
  async unload(): Promise<EjectReport> {
    if (this.isActive)
      unloadPolicy(this.view.s)
      // A caller waits for the end: the timer must keep the program alive.
    ;(this.timer as { ref?(): void }).ref?.()
    return await this.ended
  }

  /** Moves one task to the policy. False: the policy or the task has ended. */
  allow(task: Task | ChildTask): boolean {
    const { s } = this.view
    let allowed = false
    this.withTask('allow', task, record => {
      allowed = this.isActive && allowTask(s, record)
    })
    return allowed
  }

  /** Moves one task back: it is an ordinary one again. False: the task has ended. */
  disallow(task: Task | ChildTask): boolean {
    return this.withTask('disallow', task, record => disallowTask(this.view.s, record))
  }

  private withTask(what: string, task: unknown, act: (record: number) => void): boolean {
    if (!(task instanceof TaskHandle)) {
      throw new TypeError(`${what}(${show(task)}): not a task; give the result of spawn`)
    }
    if (task.view.arena.buffer !== this.view.arena.buffer) {
      throw new TypeError(`${what}(task): task ${task.name} belongs to another kernel than the policy`)
    }
    return task.job !== 0 && this.view.withTask(task.job, act)
  }

  private poll(resolve: (report: EjectReport) => void): void {
    const { i32, s } = this.view
    const another = Atomics.load(i32, s.ext.record + ExtRecord.generation) !== this.generation
    const state = s.ext.state()
    // Every CPU has called its `exit` by then.
    if (!another && state !== NONE) return
    clearInterval(this.timer)
    const report = ejectReport(s)
    if (report.reason !== 'unloaded') {
      const details = report.dump === '' ? report.message : `${report.message}\n${report.dump}`
      warn(`policy '${report.policy}' was ejected (${report.reason}): ${details}`, 'HEDDLE_POLICY_EJECTED')
    }
    resolve(report)
  }
}

/** Moves the listed tasks that exist already. */
function moveListed(view: KernelView, nameOf: (job: number) => string): void {
  const { i32, jobs, s } = view
  for (let job = jobs.after(i32, 0); job !== 0; job = jobs.after(i32, job)) {
    const handle = jobs.tryHandleOf(i32, job)
    if (handle === 0 || !view.allowlist.names(nameOf(job), i32[job + Job.fn])) continue
    view.withTask(job, task => {
      if (jobs.resolve(i32, handle) === job) joinAsListed(s, task)
    })
  }
}

/** The counts of this kernel's hand-off locks so far. */
export function handoffCounts(view: KernelView): HandoffCounts {
  return view.handoff.counts()
}

/** Formats the counts in one line. */
export function formatCounts(counts: HandoffCounts): string {
  return [
    `${counts.acquisitions} acquisitions`,
    `${counts.contended} contended`,
    `${counts.handedOff} handed off`,
    `${counts.spun} acquired by spinning`,
    `${counts.fallbacks} fallbacks`,
    `${counts.hintMisses} hint misses`,
  ].join(', ')
}
