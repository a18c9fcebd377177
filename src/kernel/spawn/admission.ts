import { setAffinity } from '../../sched/balance/affinity.ts'
import { maskOf } from '../../sched/core/cpumask.ts'
import { Entity } from '../../sched/core/entity.ts'
import { startByArrival } from '../../sched/core/arrivals.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import type { CpuSet } from '../boot/cpuset.ts'
import { Job } from './job.ts'
import { priorityOf, type SpawnOptions } from '../boot/options.ts'
import type { Task } from '../join/task.ts'
import type { KernelView } from '../boot/view.ts'

/** A task that waits to be started. */
class Waiting {
  readonly task: Task<any>
  readonly affinity: readonly number[] | undefined
  readonly rank: number
  readonly order: number
  /** It was started out of turn: its line passes over it. */
  isStarted = false

  constructor(task: Task<any>, affinity: readonly number[] | undefined, rank: number, order: number) {
    this.task = task
    this.affinity = affinity
    this.rank = rank
    this.order = order
  }
}

/** The waiting tasks of one rank, oldest first. Those before `head` have left. */
interface RankLine {
  readonly rank: number
  readonly waiting: Waiting[]
  head: number
}

/** So many tasks that have left stay in the list of a line. */
const LEFT_MOST = 1024

/** The waiting tasks with one affinity: one of them that finds no CPU speaks for all. */
class Line {
  readonly affinity: readonly number[] | undefined
  /** Best rank first. */
  private readonly ranks: RankLine[] = []

  constructor(affinity: readonly number[] | undefined) {
    this.affinity = affinity
  }

  add(waiting: Waiting): void {
    const { rank } = waiting
    let at = this.ranks.findIndex(line => line.rank >= rank)
    if (at < 0) at = this.ranks.length
    if (this.ranks[at]?.rank !== rank) this.ranks.splice(at, 0, { rank, waiting: [], head: 0 })
    this.ranks[at].waiting.push(waiting)
  }

  /** The best and oldest. */
  first(): Waiting | undefined {
    for (const line of this.ranks) {
      const { waiting } = line
      while (line.head < waiting.length && waiting[line.head].isStarted) line.head++
      if (line.head >= LEFT_MOST || line.head === waiting.length) waiting.splice(0, line.head)
      if (line.head >= LEFT_MOST || waiting.length === 0) line.head = 0
      if (waiting.length > 0) return waiting[line.head]
    }
    return undefined
  }
}

/**
 * The limit of started tasks for each CPU, on the booting thread. A spawned task gets a CPU with room, and
 * runs only there. Without one it waits, asleep, by priority and then by age, until a task ends. Tasks
 * spawned by tasks do not count: a task that joins its child would wait for itself.
 *
 * The tasks of one affinity wait in one line, so an admission takes no longer when more tasks wait.
 */
export class Admission {
  private readonly view: KernelView
  private readonly cpuSet: CpuSet
  private readonly limit: number
  private readonly used: number[]
  private readonly lines = new Map<string, Line>()
  private order = 0

  constructor(view: KernelView, cpuSet: CpuSet, limit: number) {
    this.view = view
    this.cpuSet = cpuSet
    this.limit = limit
    this.used = Array.from({ length: view.plan.sizes.cpus }, () => 0)
  }

  /** Starts a task that was created and not started, now or when there is room. */
  add(task: Task<any>, { affinity, priority = 'normal', signal }: SpawnOptions): void {
    // A task that is killed before its start ends at its start, so it must start.
    if (signal?.aborted === true) {
      this.start(task, -1)
      return
    }
    const key = affinity === undefined ? '' : [...affinity].sort((a, b) => a - b).join()
    let line = this.lines.get(key)
    if (line === undefined) this.lines.set(key, (line = new Line(affinity)))
    const waiting = new Waiting(task, affinity, priorityOf(priority), this.order++)
    line.add(waiting)
    task.on('kill', () => this.startNow(waiting))
    this.admit()
  }

  /** There may be room: a task has ended, or a CPU has come online. */
  admit(): void {
    for (let best = this.next(); best !== undefined; best = this.next()) {
      best.isStarted = true
      this.start(best.task, this.roomFor(best.affinity))
    }
  }

  /** The best waiting task for which a CPU has room. */
  private next(): Waiting | undefined {
    let best: Waiting | undefined
    for (const line of this.lines.values()) {
      if (this.roomFor(line.affinity) < 0) continue
      const first = line.first()
      if (first === undefined) continue
      if (
        best === undefined ||
        first.rank < best.rank ||
        (first.rank === best.rank && first.order < best.order)
      )
        best = first
    }
    return best
  }

  /** Starts all waiting tasks: the kernel closes, and kills them. */
  open(): void {
    for (const line of this.lines.values())
      for (let first = line.first(); first !== undefined; first = line.first()) this.startNow(first)
  }

  private startNow(waiting: Waiting): void {
    if (waiting.isStarted) return
    waiting.isStarted = true
    this.start(waiting.task, -1)
  }

  private roomFor(affinity: readonly number[] | undefined): number {
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
