/**
 * What becomes of new tasks on their way to a CPU. The races are in races.test.ts, deaths in
 * recovery.test.ts.
 */
import { describe, expect, test } from 'vitest'
import { setAffinity } from '../balance/affinity.ts'
import { startByArrival, takeArrivals } from './arrivals.ts'
import { Entity } from './entity.ts'
import { exitTask } from './exit.ts'
import { createTask, type TaskOptions } from './fork.ts'
import { makePriority } from './priority.ts'
import { Kernel } from '../../../testing/sched/kernel.ts'
import { schedulerContinue, schedulerStop } from './stop.ts'
import { SWITCH_EXITS, SWITCH_PREEMPTED, schedule } from './switch.ts'
import { TaskRecord } from './taskrecord.ts'

/** A kernel whose CPUs take what has arrived when the test says so. */
class Arriving extends Kernel {
  spawn(options: TaskOptions = {}): number {
    const [s] = this.others
    const task = createTask(s, options)
    startByArrival(s, task)
    return task
  }

  take(cpu: number, of = cpu): void {
    takeArrivals(this.cpus[cpu], of)
    this.check()
  }

  cpuOf(task: number): number {
    return this.i32[this.i32[task + TaskRecord.entity] + Entity.cpu]
  }
}

const ids = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

describe('new tasks', () => {
  test('are spread over the CPUs that have nothing to do', () => {
    const kernel = new Arriving(3, 3)
    const tasks = ids(3).map(() => kernel.spawn())
    expect(tasks.some(task => kernel.onRq(task))).toBe(false)
    for (const cpu of ids(3)) kernel.take(cpu)
    expect(tasks.map(task => kernel.cpuOf(task))).toEqual([0, 1, 2])
  })

  test('come in longer and longer runs to CPUs that do not take them, and none goes short', () => {
    const kernel = new Arriving(4, 400)
    const tasks = ids(400).map(() => kernel.spawn())
    for (const cpu of ids(4)) kernel.take(cpu)
    for (const cpu of ids(4)) {
      expect(tasks.filter(task => kernel.cpuOf(task) === cpu).length).toBeGreaterThan(100 - 32)
    }
  })

  test('do not go to a CPU that has enough to do', () => {
    const kernel = new Arriving(2, 6)
    for (let count = 0; count < 4; count++) kernel.queued()
    const tasks = ids(2).map(() => kernel.spawn())
    for (const cpu of ids(2)) kernel.take(cpu)
    expect(tasks.map(task => kernel.cpuOf(task))).toEqual([1, 1])
  })

  test('run in the order in which they came', () => {
    const kernel = new Arriving(1, 5)
    const tasks = ids(5).map(() => kernel.spawn())
    kernel.take(0)
    const ran: number[] = []
    for (let why = SWITCH_PREEMPTED; ran.length < tasks.length; why = SWITCH_EXITS) {
      schedule(kernel.cpus[0], why)
      const task = kernel.current(0)
      ran.push(task)
      exitTask(kernel.cpus[0], task, 0)
    }
    expect(ran).toEqual(tasks)
  })

  test('for a CPU that is stuck are taken by another', () => {
    const kernel = new Arriving(2, 1)
    const task = kernel.spawn()
    const [, idle] = kernel.cpus
    expect(idle.arrivals.elsewhere(1)).toBe(0)
    kernel.take(1, 0)
    expect(idle.arrivals.elsewhere(1)).toBe(-1)
    expect([kernel.onRq(task), kernel.cpuOf(task)]).toEqual([true, 1])
  })

  test('that were stopped on their way wait until they are continued', () => {
    const kernel = new Arriving(1, 1)
    const task = kernel.spawn()
    schedulerStop(kernel.others[0], task)
    kernel.take(0)
    expect(kernel.onRq(task)).toBe(false)
    schedulerContinue(kernel.others[0], task)
    expect(kernel.onRq(task)).toBe(true)
  })

  test('whose mask has changed on their way go where it says', () => {
    const kernel = new Arriving(2, 1)
    const task = kernel.spawn()
    setAffinity(kernel.others[0], task, 1 << 1, 0)
    kernel.take(0)
    expect([kernel.onRq(task), kernel.cpuOf(task)]).toEqual([true, 1])
  })

  test.each<[string, TaskOptions]>([
    ['in a hurry', { priority: makePriority(5, 0) }],
    ['that may not run everywhere', { affinity: [1] }],
  ])('%s are queued at once', (_, options) => {
    const kernel = new Arriving(2, 1)
    expect(kernel.onRq(kernel.spawn(options))).toBe(true)
    kernel.check()
  })

  test('are queued at once where no CPU is active', () => {
    const kernel = new Arriving(1, 1)
    const [s] = kernel.cpus
    s.setActive(0, false)
    expect(kernel.onRq(kernel.spawn())).toBe(true)
  })
})
