import { setAffinity } from '../../sched/balance/affinity.ts'
import { maskOf } from '../../sched/core/cpumask.ts'
import { Entity } from '../../sched/core/entity.ts'
import { startByArrival } from '../../sched/core/arrivals.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { CpuSet } from '../boot/cpuset.ts'
import { Job } from './job.ts'
import { priorityOf } from '../boot/options.ts'
import type { Task } from '../join/task.ts'
import type { KernelView } from '../boot/view.ts'

interface Waiting {
  readonly task: Task<any>
  readonly rank: number
}

/**
 * The limit of started tasks for each CPU, on the booting thread. A spawned task gets a CPU with room, and
 * runs only there. Without one it waits, asleep, by priority and then by age, until a task ends. Tasks
 * spawned by tasks do not count: a task that joins its child would wait for itself.
 */
export class Admission {
  private readonly view: KernelView
  private readonly cpuSet: CpuSet
  private readonly limit: number
  private readonly used: number[]
  private waiting: Waiting[] = []

  constructor(view: KernelView, cpuSet: CpuSet, limit: number) {
    this.view = view
    this.cpuSet = cpuSet
    this.limit = limit
    this.used = Array.from({ length: view.plan.sizes.cpus }, () => 0)
  }

  /** Starts a task that was created and not started, now or when there is room. */
  add(task: Task<any>): void {
    const rank = priorityOf(task.options.priority ?? 'normal')
    let at = this.waiting.length
    while (at > 0 && this.waiting[at - 1].rank > rank) at--
    this.waiting.splice(at, 0, { task, rank })
    // A task that is killed before its start ends at its start, so it must start.
    task.on('kill', () => this.startNow(task))
    this.admit()
  }

  /** There may be room: a task has ended, or a CPU has come online. */
  admit(): void {
    for (let at = 0; at < this.waiting.length; ) {
      const { task } = this.waiting[at]
      const cpu = this.roomFor(task)
      if (cpu < 0) {
        // The next tasks may be allowed on other CPUs.
        at++
        continue
      }
      this.waiting.splice(at, 1)
      this.start(task, cpu)
    }
  }

  /** Starts all waiting tasks: the kernel closes, and kills them. */
  open(): void {
    for (const { task } of this.waiting.splice(0)) this.start(task, -1)
  }

  private startNow(task: Task<any>): void {
    const at = this.waiting.findIndex(one => one.task === task)
    if (at < 0) return
    this.waiting.splice(at, 1)
    this.start(task, -1)
  }

  private roomFor(task: Task<any>): number {
    const { affinity } = task.options
    let best = -1
    for (let cpu = 0; cpu < this.used.length; cpu++) {
      if (!this.cpuSet.isHere(cpu) || this.used[cpu] >= this.limit) continue
      if (affinity !== undefined && !affinity.includes(cpu)) continue
      if (best < 0 || this.used[cpu] < this.used[best]) best = cpu
    }
    return best
  }

  /** `cpu`: where to start it; below 0: anywhere. */
  private start(task: Task<any>, cpu: number): void {
    const { view } = this
    const { i32, s } = view
    if (cpu >= 0) {
      this.used[cpu]++
      task.on('end', () => {
        this.used[cpu]--
        this.admit()
      })
    }
    view.withTask(task.job, record => {
      if (i32[i32[record + TaskRecord.entity] + Entity.woken] !== 0) return
      if (cpu >= 0) {
        const [low, high] = maskOf([cpu])
        i32[task.job + Job.affinity] = low
        i32[task.job + Job.affinity + 1] = high
        setAffinity(s, record, low, high)
      }
      startByArrival(s, record)
    })
  }
}
