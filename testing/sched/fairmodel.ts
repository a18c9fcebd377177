import { assert } from '../../src/arena/assert.ts'
import { weightOfNice } from '../../src/sched/core/priority.ts'

/**
 * EEVDF as the papers have it, without any data structure: a set of tasks, and sums over it. It says which
 * choices of a scheduler are right. The slack is how far a choice may be from the exact one; with a slack of
 * 0 only the exact choice is right, and its equals.
 */
export interface ModelTask {
  vruntime: number
  deadline: number
  lag: number
  nice: number
  readonly slice: number
  turns: number
}

/** Rounding errors of sums, in milliseconds. */
const EPSILON = 1e-6

export class FairModel {
  /** The tasks that run or wait here. */
  readonly tasks: Set<ModelTask> = new Set<ModelTask>()
  running: ModelTask | undefined = undefined
  readonly slack: number
  /** V while there are no tasks. */
  private lastAverage = 0

  constructor(slack: number) {
    this.slack = slack
  }

  /** V: the weighted average vruntime. */
  get average(): number {
    let sum = 0
    let weight = 0
    for (const task of this.tasks) {
      sum += weightOfNice(task.nice) * task.vruntime
      weight += weightOfNice(task.nice)
    }
    return weight === 0 ? this.lastAverage : sum / weight
  }

  /** A task becomes runnable, as far from V as it was when it left. */
  enter(task: ModelTask): void {
    const w = weightOfNice(task.nice)
    const average = this.average
    let weight = 0
    for (const other of this.tasks) weight += weightOfNice(other.nice)
    task.vruntime = average - (weight === 0 ? task.lag : (task.lag * (weight + w)) / weight)
    this.request(task, task.turns === 0 ? 0.1 : 1)
    this.tasks.add(task)
    assert(weight === 0 || Math.abs(this.lagOf(task) - task.lag) < EPSILON, 'it comes back with its lag')
  }

  /** It leaves: its lag outlives that, within two slices. */
  leave(task: ModelTask): void {
    const limit = 2 * virtual(task, task.slice)
    task.lag = Math.max(-limit, Math.min(limit, this.lagOf(task)))
    this.lastAverage = this.average
    this.tasks.delete(task)
    if (this.running === task) this.running = undefined
  }

  lagOf(task: ModelTask): number {
    return this.average - task.vruntime
  }

  /** The running task has run for so long. */
  charge(ms: number): void {
    const { running } = this
    if (running === undefined || !(ms > 0)) return
    running.vruntime += virtual(running, ms)
    if (running.vruntime >= running.deadline) this.request(running, 1)
  }

  /** The running task has yielded, and another runs: it keeps what it is owed, within two slices. */
  yielded(task: ModelTask): void {
    task.vruntime = Math.max(task.vruntime, this.average - 2 * virtual(task, task.slice))
    this.request(task, 1)
  }

  /** The scheduler has chosen this one. `yields`: the running one does not compete. Throws if it is wrong. */
  chosen(choice: ModelTask, yields: boolean): void {
    const candidates = [...this.tasks].filter(
      task => !yields || task !== this.running || this.tasks.size === 1,
    )
    assert(candidates.includes(choice), 'chose a task that does not compete')
    if (candidates.length === 1) return
    // Those that are eligible for sure, not only by a rounding error.
    const eligible = candidates.filter(task => this.lagOf(task) >= EPSILON)
    const nearlyEligible = this.lagOf(choice) >= -this.slack - EPSILON
    if (eligible.length === 0 && nearlyEligible) return
    const best = Math.min(...(eligible.length > 0 ? eligible : candidates).map(({ deadline }) => deadline))
    assert(eligible.length === 0 || nearlyEligible, 'chose a task that has had more than its share')
    assert(choice.deadline <= best + this.slack + EPSILON, 'chose a task that has a later deadline')
  }

  switchTo(task: ModelTask): void {
    if (task.vruntime >= task.deadline) this.request(task, 1)
    task.turns++
    this.running = task
  }

  private request(task: ModelTask, slices: number): void {
    task.deadline = task.vruntime + virtual(task, slices * task.slice)
  }
}

function virtual(task: ModelTask, ms: number): number {
  return (ms * 1024) / weightOfNice(task.nice)
}
