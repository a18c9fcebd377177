import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { assert } from '../../src/arena/assert.ts'
import { initLock } from '../../src/arena/sync/spinlock.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import type { Always } from '../../src/checker/check.ts'
import { reserveMachine } from '../../src/machine/core/cpurecord.ts'
import { publishQueue } from '../../src/sched/classes/classrq.ts'
import { Entity } from '../../src/sched/core/entity.ts'
import { everyStep } from './everystep.ts'
import { createTask, startTask } from '../../src/sched/core/fork.ts'
import { checkInvariants } from './invariants.ts'
import { makePriority } from '../../src/sched/core/priority.ts'
import { RunQueue } from '../../src/sched/core/runqueue.ts'
import { planScheduler, Scheduler } from '../../src/sched/core/scheduler.ts'
import { SWITCH_PREEMPTED, schedule } from '../../src/sched/core/switch.ts'
import { TaskRecord } from '../../src/sched/core/taskrecord.ts'

/** The smallest kernel, in new memory: CPUs, plain threads, and tasks without bodies. */
export class Kernel {
  readonly cpus: Scheduler[] = []
  /** Plain threads. */
  readonly others: Scheduler[] = []
  readonly i32: Int32Array
  /** A spin lock for the check. */
  readonly lock: number

  /**
   * `parks`: whether threads sleep while they wait for a lock or for the end of a switch. In programs of
   * three threads they spin: spinlock.check.ts explores how a thread parks at a lock, and the programs of two
   * threads how it sleeps until the end of a switch.
   */
  constructor(cpus: number, tasks: number, parks = true) {
    const plan = new ArenaPlan()
    const machine = reserveMachine(plan, cpus)
    const sizes = planScheduler(plan, { cpus, tasks })
    this.lock = plan.reserve('lock', 2).start
    const arena = Arena.create(plan)
    this.i32 = arena.i32
    const scheduler = (id: number): Scheduler =>
      new Scheduler({
        plan: sizes,
        machine,
        thread: new KernelThread(arena, id, parks, 0),
        now: () => 1,
        kick: () => undefined,
      })
    for (let id = 0; id < cpus; id++) this.cpus.push(scheduler(id))
    for (let id = 0; id < 2; id++) this.others.push(scheduler(64 + id))
    this.others[0].initialize()
    initLock(this.i32, this.lock, 0)
    for (const s of this.cpus) {
      this.i32[s.queue + RunQueue.online] = 1
      s.setActive(s.cpu, true)
      publishQueue(s, s.queue)
    }
  }

  /** A task that sleeps. */
  asleep(affinity?: number[]): number {
    return createTask(this.others[0], { priority: makePriority(9, 0), ...(affinity && { affinity }) })
  }

  /** A task that waits on the queue of CPU 0. */
  queued(affinity: number[] = [0]): number {
    const task = this.asleep(affinity)
    startTask(this.others[0], task)
    return task
  }

  /** A task that runs on CPU 0. */
  running(affinity: number[] = [0]): number {
    const task = this.queued(affinity)
    schedule(this.cpus[0], SWITCH_PREEMPTED)
    assert(this.current(0) === task, 'it runs')
    return task
  }

  /** The task that a CPU runs. */
  current(cpu: number): number {
    return this.i32[this.i32[this.cpus[cpu].queue + RunQueue.current] + Entity.task]
  }

  onRq(task: number): boolean {
    return this.i32[this.i32[task + TaskRecord.entity] + Entity.onRq] === 1
  }

  state(task: number): number {
    return this.i32[task + TaskRecord.state]
  }

  /** What holds for these tasks at every step. */
  always(...tasks: number[]): Always {
    return everyStep(this.others[0], tasks)
  }

  check(): void {
    checkInvariants(this.others[0])
  }
}
