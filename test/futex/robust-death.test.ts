import { Worker } from 'node:worker_threads'
import { afterAll, expect, test } from 'vitest'
import { Arena } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { initializeFutexes } from '../../src/futex/core/layout.ts'
import { recoverFutexes } from '../../src/futex/recovery/recover.ts'
import { Waiter } from '../../src/futex/core/records.ts'
import type { MappedBuffer } from '../../src/futex/core/space.ts'
import { NodeMachine } from '../../src/machine/node/nodemachine.ts'
import { hrtimeMs } from '../../src/machine/node/node-clock.ts'
import { createTask, startTask } from '../../src/sched/core/fork.ts'
import { Scheduler } from '../../src/sched/core/scheduler.ts'
import { TaskRecord } from '../../src/sched/core/taskrecord.ts'
import {
  DEAD,
  type DeathBoot,
  LOCKS,
  PLAINLY,
  type Place,
  planDeaths,
  type Round,
  THREADS,
  WORDS,
} from './robust-death-worker.ts'

/**
 * A worker that holds a hundred robust locks is terminated. A task on a CPU, a promise and a thread, on their
 * own workers, wait for each lock. One of the three gets EOWNERDEAD and makes the lock consistent; the other
 * two acquire it afterwards.
 */
class World {
  readonly machine: NodeMachine
  private readonly s: Scheduler
  private readonly fx: Futexes
  private readonly plan = planDeaths()
  private readonly mapped: MappedBuffer
  private readonly place: Place
  private readonly waiters: Worker[] = []
  private readonly arena: Arena
  private readonly origin: number

  constructor() {
    const { plan } = this
    this.arena = Arena.create(plan.arenaPlan, { debug: true })
    const thread = new KernelThread(this.arena, 64)
    const buffer = new SharedArrayBuffer(WORDS * 4)
    let place: Place | undefined
    // A cycle: the program's data names the address space, the space needs the machine's clock, and the
    // machine needs the data.
    const data = {
      get space() {
        return place?.space
      },
      get buffer() {
        return place?.buffer
      },
      get handles() {
        return place?.handles
      },
    }
    this.machine = new NodeMachine({
      arena: this.arena,
      region: plan.machine,
      program: new URL('./robust-death-cpu.ts', import.meta.url),
      data,
    })
    this.origin = hrtimeMs() - this.machine.now()
    const { now } = this.machine
    this.s = new Scheduler({ plan: plan.scheduler, machine: plan.machine, thread, now })
    this.s.initialize()
    initializeFutexes(this.arena, plan.layout)
    this.fx = new Futexes(thread, plan.layout, { now, scheduler: this.s })
    this.mapped = this.fx.map(buffer)
    this.place = { space: this.fx.space.handle, buffer, handles: this.mapped.handles }
    place = this.place
  }

  async start(): Promise<void> {
    await this.machine.start(0)
    for (let id = 0; id <= THREADS; id++) this.waiters.push(this.hire('waiter', 70 + id))
  }

  private hire(role: DeathBoot['role'], id: number): Worker {
    const { arena, place, origin } = this
    const workerData: DeathBoot = { ...place, role, arena: arena.buffer, id, origin }
    return new Worker(new URL('./robust-death-worker.ts', import.meta.url), { workerData })
  }

  /** One death: how often each lock was acquired with EOWNERDEAD, and without. */
  async round(): Promise<{ dead: number[]; plainly: number[] }> {
    const { s, plan, mapped } = this
    const view = mapped.i32
    view.fill(0, DEAD, DEAD + 2 * LOCKS)
    const holder = this.hire('holder', 80)
    await told(holder)
    const locks = Array.from({ length: LOCKS }, (_, lock) => lock)
    for (const lock of locks) {
      const task = createTask(s, { affinity: [0] })
      s.i32[plan.table + s.i32[task + TaskRecord.slot]] = lock
      startTask(s, task)
    }
    const rounds: Round[] = [{ locks, promises: true }]
    for (let at = 0; at < THREADS; at++)
      rounds.push({ locks: locks.filter(lock => lock % THREADS === at), promises: false })
    const done = this.waiters.map((worker, at) => {
      const answer = told(worker)
      worker.postMessage(rounds[at])
      return answer
    })
    // All are asleep: a task and a promise at each lock, each thread at its first.
    await until(() => this.queued() === 2 * LOCKS + THREADS)
    await holder.terminate()
    recoverFutexes(this.fx.context, 80)
    await Promise.all(done)
    await until(() => total(view, DEAD) + total(view, PLAINLY) === 3 * LOCKS)
    await until(() => plan.layout.waiters.count(s.i32) === 0)
    return {
      dead: [...view.subarray(DEAD, DEAD + LOCKS)],
      plainly: [...view.subarray(PLAINLY, PLAINLY + LOCKS)],
    }
  }

  private queued(): number {
    const { i32 } = this.s
    const { waiters } = this.plan.layout
    let count = 0
    for (let at = 0; at < waiters.capacity; at++) {
      const waiter = waiters.pointerAt(at)
      if (waiters.isAllocated(i32, waiter) && Atomics.load(i32, waiter + Waiter.queue) > 0) count++
    }
    return count
  }

  async close(): Promise<void> {
    await Promise.all(this.waiters.map(worker => worker.terminate()))
    await this.machine.close()
  }
}

function told(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const failed = (error: unknown): void => reject(error)
    worker.once('error', failed)
    worker.once('message', message => {
      worker.off('error', failed)
      resolve(message)
    })
  })
}

function total(view: Int32Array, from: number): number {
  let sum = 0
  for (let lock = 0; lock < LOCKS; lock++) sum += Atomics.load(view, from + lock)
  return sum
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 1))
}

let world: World | undefined
afterAll(() => world?.close())

const RUNS = 100

test(`a worker is terminated with 100 robust locks that tasks, promises and threads wait for: each lock is acquired with EOWNERDEAD once, ${RUNS} times in a row`, async () => {
  world = new World()
  await world.start()
  for (let run = 0; run < RUNS; run++) {
    const { dead, plainly } = await world.round()
    expect(dead, `run ${run}`).toEqual(Array.from({ length: LOCKS }, () => 1))
    expect(plainly, `run ${run}`).toEqual(Array.from({ length: LOCKS }, () => 2))
  }
})
