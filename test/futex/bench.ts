import { Worker } from 'node:worker_threads'
import { FutexContext } from '../../src/futex/context.ts'
import { Futexes } from '../../src/futex/futexes.ts'
import {
  type FutexLayout,
  type FutexSizes,
  initializeFutexes,
  reserveFutexes,
} from '../../src/futex/layout.ts'
import { Waiter } from '../../src/futex/records.ts'
import type { MappedBuffer } from '../../src/futex/space.ts'
import { SchedulerTask } from '../../src/futex/tasks.ts'
import type { Scheduler } from '../../src/sched/scheduler.ts'
import { Simulation, type SimulatedContext } from '../../src/sched/simulation.ts'
import type { Timespec, Uaddr } from '../../src/futex/call.ts'
import { killTask, signalTask } from '../../src/sched/sleep.ts'
import { wakeupTask } from '../../src/sched/wakeup.ts'
import type { WorkerBoot } from './worker.ts'

/** Who waits: each row of the conformance table is run for all three. */
export type Kind = 'thread' | 'promise' | 'task'
export const kinds: readonly Kind[] = ['thread', 'promise', 'task']

export const WAITERS = 256
export const sizes: FutexSizes = { waiters: WAITERS, mappings: 32, spaces: 8, buckets: 16 }

/** A system call as a waiter makes it. `word` is an index into the bench's buffer; `map` chooses one of its mappings. */
export interface Call {
  readonly op: number
  readonly word: number
  readonly val: number
  readonly timeout?: Timespec
  readonly word2?: number
  readonly val3?: number
  readonly priority?: number
  readonly map?: number
}

export interface VectorCall {
  readonly waitv: readonly { word: number; val: number; flags: number }[]
  readonly timeout?: Timespec
}

export interface Pending {
  /** What the call returned; resolves when it has. */
  readonly result: Promise<number>
  /** Whether it has returned, as far as this moment shows. */
  isDone(): Promise<boolean>
  readonly task: number
}

/** One arena with a buffer mapped in it, waiters of one kind, and this thread to make calls from. */
export class Bench {
  readonly kind: Kind
  readonly sim: Simulation
  readonly fx: Futexes
  readonly view: Int32Array<SharedArrayBuffer>
  readonly mapped: MappedBuffer[] = []
  layout!: FutexLayout
  private readonly perCpu = new Map<Scheduler, FutexContext>()
  private readonly workers: Worker[] = []
  private free: { worker: Worker; id: number }[] = []
  private nextId = 70
  private readonly started: Promise<number>[] = []

  constructor(kind: Kind) {
    this.kind = kind
    this.sim = new Simulation({
      cpus: 2,
      seed: 1,
      tasks: 64,
      reserve: (plan, scheduler) => {
        this.layout = reserveFutexes(plan, sizes, scheduler.rcu)
      },
    })
    const { s } = this.sim
    initializeFutexes(s.arena, this.layout)
    this.fx = new Futexes(s.thread, this.layout, {
      now: kind === 'task' ? () => s.now() : () => performance.now(),
      wakeTask: task => void wakeupTask(s, task),
      rcu: s.rcu,
    })
    const buffer = new SharedArrayBuffer(256)
    this.mapped.push(this.fx.map(buffer))
    this.view = this.mapped[0].i32
  }

  at(index: number, map = 0): Uaddr {
    return { view: this.mapped[map].i32, index }
  }

  /** A call from this thread, which must not sleep. */
  call(
    op: number,
    word: number,
    val: number,
    val2: Timespec | number | null = null,
    word2?: number,
    val3 = 0,
  ): number {
    const result = this.fx.futexSync(
      this.at(word),
      op,
      val,
      val2,
      word2 === undefined ? null : this.at(word2),
      val3,
    )
    this.settle()
    return result
  }

  /** Lets simulated CPUs run, but not time pass: at most a hundredth of a millisecond. */
  settle(): void {
    if (this.kind === 'task') this.sim.run({ until: this.sim.machine.now() + 0.01 })
  }

  /** The waiters that are on queues right now, by handle. */
  private queuedWaiters(): number[] {
    const { i32 } = this.sim.s
    const { waiters } = this.layout
    const found: number[] = []
    for (let at = 0; at < WAITERS; at++) {
      const waiter = waiters.pointerAt(at)
      if (waiters.isAllocated(i32, waiter) && Atomics.load(i32, waiter + Waiter.queue) > 0) {
        found.push(waiters.handleOf(i32, waiter))
      }
    }
    return found
  }

  /** The waiter that came last is one for a pi lock, as far as anyone can see. */
  markPi(): void {
    const { i32 } = this.sim.s
    const last = this.queuedWaiters()
      .map(handle => this.layout.waiters.resolve(i32, handle))
      .sort((a, b) => i32[a + Waiter.order] - i32[b + Waiter.order])
      .at(-1) as number
    i32[last + Waiter.pi] = 1
  }

  unmarkPi(): void {
    const { i32 } = this.sim.s
    for (const handle of this.queuedWaiters()) i32[this.layout.waiters.resolve(i32, handle) + Waiter.pi] = 0
  }

  queued(): number {
    return this.queuedWaiters().length
  }

  /** Starts a call that may sleep, and returns when it sleeps or has returned. */
  async start(call: Call | VectorCall): Promise<Pending> {
    const before = new Set(this.queuedWaiters())
    const wanted = 'waitv' in call ? call.waitv.length : 1
    let mine: number[] = []
    let done = false
    let task = 0
    let result: Promise<number>
    if (this.kind === 'task') {
      let resolve: (value: number) => void = () => undefined
      result = new Promise(resolved => {
        resolve = resolved
      })
      task = this.sim.fork(
        context => this.taskBody(context, call, resolve),
        'priority' in call && call.priority !== undefined ? { priority: call.priority } : {},
      )
    } else if (this.kind === 'promise') {
      result = this.promiseCall(call)
    } else {
      result = this.threadCall(call)
    }
    this.started.push(result)
    void result.then(() => {
      done = true
    })
    const hasReturned = (): boolean => done
    // Its fate is decided when it is on no queue any more: that shows at once, however long its thread takes to notice.
    const isDone = async (): Promise<boolean> => {
      this.settle()
      const queued = this.queuedWaiters()
      return !mine.some(waiter => queued.includes(waiter))
    }
    while (mine.length < wanted && !hasReturned()) {
      this.settle()
      await new Promise(resolve => setImmediate(resolve))
      mine = this.queuedWaiters().filter(waiter => !before.has(waiter))
    }
    const drain = async (): Promise<number> => {
      // Virtual time passes only when someone runs the machine.
      if (this.kind === 'task') this.sim.run()
      return result
    }
    return {
      task,
      isDone,
      get result() {
        return drain()
      },
    }
  }

  /** A signal, where the waiter is one that can get any. */
  signal(pending: Pending): void {
    signalTask(this.sim.s, pending.task)
    this.settle()
  }

  kill(pending: Pending): void {
    killTask(this.sim.s, pending.task)
    this.settle()
  }

  /** What is left once every call has returned. */
  async leftovers(): Promise<{ waiters: number; queued: number }> {
    if (this.kind === 'task') this.sim.run()
    await Promise.all(this.started)
    return { waiters: this.layout.waiters.count(this.sim.s.i32), queued: this.queued() }
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }

  private *taskBody(
    context: SimulatedContext,
    call: Call | VectorCall,
    resolve: (value: number) => void,
  ): Generator<number, number, unknown> {
    const task = new SchedulerTask(context, ({ s }) => this.contextOn(s))
    // The calls that prepare the wait run on the CPU that the task is on.
    const fx = Object.assign(Object.create(Futexes.prototype) as Futexes, {
      context: this.contextOn(context.s),
      space: this.fx.space,
    })
    const result =
      'waitv' in call
        ? yield* fx.waitv(task, this.entries(call), 0, call.timeout ?? null, 1)
        : yield* fx.futex(
            task,
            this.at(call.word, call.map),
            call.op,
            call.val,
            call.timeout ?? null,
            null,
            call.val3 ?? 0,
          )
    resolve(result)
    return 0
  }

  private contextOn(s: Scheduler): FutexContext {
    let context = this.perCpu.get(s)
    if (context === undefined) {
      context = new FutexContext(
        s.thread,
        this.layout,
        () => s.now(),
        task => void wakeupTask(s, task),
        s.rcu,
      )
      this.perCpu.set(s, context)
    }
    return context
  }

  private entries(call: VectorCall): { uaddr: Uaddr; val: number; flags: number }[] {
    return call.waitv.map(({ word, val, flags }) => ({ uaddr: this.at(word), val, flags }))
  }

  private promiseCall(call: Call | VectorCall): Promise<number> {
    if ('waitv' in call) return this.fx.waitvAsync(this.entries(call), 0, call.timeout ?? null, 1)
    if (call.priority !== undefined) {
      return this.fx
        .waitAsync(this.fx.word(this.mapped[call.map ?? 0].i32, call.word), call.val, {
          priority: call.priority,
          shared: true,
        })
        .then(() => 0)
    }
    return this.fx.futexAsync(
      this.at(call.word, call.map),
      call.op,
      call.val,
      call.timeout ?? null,
      null,
      call.val3 ?? 0,
    )
  }

  private threadCall(call: Call | VectorCall): Promise<number> {
    const { worker, id } = this.free.pop() ?? this.hire()
    worker.postMessage(call)
    return new Promise((resolve, reject) => {
      worker.once('message', (result: number) => {
        this.free.push({ worker, id })
        resolve(result)
      })
      worker.once('error', reject)
    })
  }

  private hire(): { worker: Worker; id: number } {
    const id = this.nextId++
    const boot: WorkerBoot = {
      arena: this.sim.s.arena.buffer,
      id,
      cpus: 2,
      tasks: 64,
      space: this.fx.space.handle,
      mappings: this.mapped
        .filter(mapped => mapped.isMapped(this.sim.s.i32, false))
        .map(({ buffer, handles }) => ({ buffer, handles })),
    }
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: boot })
    worker.setMaxListeners(0)
    this.workers.push(worker)
    return { worker, id }
  }
}
