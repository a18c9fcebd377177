import { Worker } from 'node:worker_threads'
import type { Timespec, Uaddr } from '../../src/futex/call.ts'
import { FutexContext } from '../../src/futex/context.ts'
import { Futexes } from '../../src/futex/futexes.ts'
import {
  type FutexLayout,
  type FutexSizes,
  initializeFutexes,
  reserveFutexes,
} from '../../src/futex/layout.ts'
import { findOwner, type LockOwner, ownerPriority } from '../../src/futex/owner.ts'
import { setOwnerPriority } from '../../src/futex/pichain.ts'
import { recoverFutexes } from '../../src/futex/recover.ts'
import { Owner, Waiter } from '../../src/futex/records.ts'
import type { MappedBuffer } from '../../src/futex/space.ts'
import { SchedulerTask } from '../../src/futex/tasks.ts'
import type { Scheduler } from '../../src/sched/scheduler.ts'
import { Simulation, type SimulatedContext } from '../../src/sched/simulation.ts'
import { beginSleep, endSleep, killTask, signalTask, takePending } from '../../src/sched/sleep.ts'
import { SUSPENDED } from '../../src/sched/switch.ts'
import { UNINTERRUPTIBLE } from '../../src/sched/taskrecord.ts'
import { wakeupTask } from '../../src/sched/wakeup.ts'
import { acquire, release } from '../../src/arena/spinlock.ts'
import type { Kind } from './bench.ts'
import type { WorkerBoot } from './worker.ts'

const WAITERS = 128
export const sizes: FutexSizes = { waiters: WAITERS, mappings: 32, spaces: 8, buckets: 16 }

/** A system call as an actor makes it. */
export interface ActorCall {
  readonly op: number
  readonly word: number
  readonly val?: number
  readonly timeout?: Timespec
  readonly val2?: number
  readonly word2?: number
  readonly val3?: number
  readonly map?: number
  readonly map2?: number
}

export type Order =
  | { readonly do: 'call'; readonly call: ActorCall }
  | { readonly do: 'robust'; readonly index: number | null; readonly bytes: number }
  | { readonly do: 'get'; readonly tid: number }
  | { readonly do: 'priority'; readonly priority: number }
  | { readonly do: 'end' }
  | { readonly do: 'tid' }

/** Someone who can own locks and make one call after the other. */
export interface Actor {
  readonly tid: number
  /** The task, for those that are one. */
  readonly task: number
  /** Starts a call, and returns when it sleeps or has returned. */
  start(call: ActorCall): Promise<Started>
  /** A call that is expected to return. */
  call(call: ActorCall): Promise<number>
  setRobustList(index: number | null, bytes: number): Promise<number>
  getRobustList(tid: number): Promise<unknown>
  setPriority(priority: number): Promise<void>
  /** It ends, and what it holds passes to others. */
  end(): Promise<void>
}

export interface Started {
  readonly result: Promise<number>
  /** Whether it has returned, or its fate is sealed. */
  isDone(): Promise<boolean>
}

interface Given {
  readonly order: Order
  readonly resolve: (answer: unknown) => void
}

interface Hired {
  readonly worker: Worker
  readonly ask: (order: Order) => Promise<unknown>
}

/** One arena with a buffer mapped in it, and as many actors of one kind as a row asks for. */
export class ActorBench {
  readonly kind: Kind
  readonly sim: Simulation
  readonly fx: Futexes
  readonly view: Int32Array<SharedArrayBuffer>
  readonly mapped: MappedBuffer[] = []
  layout!: FutexLayout
  private readonly perCpu = new Map<Scheduler, FutexContext>()
  private readonly workers: Worker[] = []
  private actors: Actor[] = []
  private open: Promise<unknown>[] = []
  private readonly idle: Hired[] = []
  private nextId = 70

  constructor(kind: Kind, cpus = 2) {
    this.kind = kind
    this.sim = new Simulation({
      cpus,
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
      scheduler: s,
    })
    const buffer = new SharedArrayBuffer(1 << 17)
    this.mapped.push(this.fx.map(buffer))
    this.mapped.push(this.fx.map(buffer))
    this.view = this.mapped[0].i32
  }

  at(index: number, map = 0): Uaddr {
    return { view: this.mapped[map].i32, index }
  }

  /** Lets simulated CPUs run, but not time pass: at most a hundredth of a millisecond. */
  settle(): void {
    if (this.kind === 'task') this.sim.run({ until: this.sim.machine.now() + 0.05 })
  }

  /** The priority that the owner of a TID has now. */
  priorityOf(tid: number): number {
    const { context } = this.fx
    const record = findOwner(context, tid)
    acquire(context.thread, record + Owner.lock)
    const priority = ownerPriority(context, record)
    release(context.thread, record + Owner.lock)
    return priority
  }

  signal(actor: Actor): void {
    signalTask(this.sim.s, actor.task)
    this.settle()
  }

  kill(actor: Actor): void {
    killTask(this.sim.s, actor.task)
    this.settle()
  }

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

  queued(): number {
    return this.queuedWaiters().length
  }

  async actor(priority?: number): Promise<Actor> {
    const actor = await this.make(priority)
    this.actors.push(actor)
    return actor
  }

  private async make(priority: number | undefined): Promise<Actor> {
    if (this.kind === 'task') return this.taskActor(priority)
    if (this.kind === 'promise') return this.promiseActor(priority)
    const actor = await this.threadActor()
    if (priority !== undefined) await actor.setPriority(priority)
    return actor
  }

  /** Watches a call that was just started until it sleeps or returns. */
  private async watch(before: ReadonlySet<number>, promise: Promise<number>): Promise<Started> {
    let done = false
    this.open.push(promise)
    void promise.then(() => {
      done = true
    })
    const hasReturned = (): boolean => done
    let mine = 0
    while (mine === 0 && !hasReturned()) {
      this.settle()
      await new Promise(resolve => setImmediate(resolve))
      mine = this.queuedWaiters().find(waiter => !before.has(waiter)) ?? 0
    }
    const isDone = async (): Promise<boolean> => {
      this.settle()
      return mine === 0 || !this.queuedWaiters().includes(mine)
    }
    const drain = async (): Promise<number> => {
      if (this.kind === 'task') this.sim.run()
      return promise
    }
    return {
      isDone,
      get result() {
        return drain()
      },
    }
  }

  private wrap(tid: number, task: number, send: (order: Order) => Promise<unknown>): Actor {
    const ask = async (order: Order): Promise<unknown> => {
      const answer = send(order)
      if (this.kind === 'task') this.sim.run()
      return answer
    }
    let ended = false
    return {
      tid,
      task,
      start: call => {
        const before = new Set(this.queuedWaiters())
        return this.watch(before, send({ do: 'call', call }) as Promise<number>)
      },
      call: async call => (await ask({ do: 'call', call })) as number,
      setRobustList: async (index, bytes) => (await ask({ do: 'robust', index, bytes })) as number,
      getRobustList: tidAsked => ask({ do: 'get', tid: tidAsked }),
      setPriority: async priority => {
        // From outside, as it may be asleep; a thread's and a promise's alike.
        setOwnerPriority(this.fx.context, findOwner(this.fx.context, tid), priority)
        this.settle()
      },
      end: async () => {
        if (ended) return
        ended = true
        await ask({ do: 'end' })
        this.settle()
      },
    }
  }

  private promiseActor(priority: number | undefined): Actor {
    const { fx } = this
    const owner = fx.makeOwner(priority === undefined ? {} : { priority })
    return this.wrap(owner.tid, 0, order => this.obey(order, owner))
  }

  private async obey(order: Order, owner: LockOwner): Promise<unknown> {
    const { fx } = this
    switch (order.do) {
      case 'call': {
        const [uaddr, timeout, uaddr2] = this.argumentsOf(order.call)
        const { op, val = 0, val3 = 0 } = order.call
        return fx.futexAsync(uaddr, op, val, timeout, uaddr2, val3, owner)
      }
      case 'robust':
        return fx.setRobustList(order.index === null ? null : this.at(order.index), order.bytes, owner)
      case 'get':
        return fx.getRobustList(order.tid, owner)
      case 'end':
        return fx.closeOwner(owner)
      default:
        return undefined
    }
  }

  private argumentsOf({
    word,
    timeout,
    val2,
    word2,
    map,
    map2,
  }: ActorCall): [Uaddr, Timespec | number | null, Uaddr] {
    return [this.at(word, map), timeout ?? val2 ?? null, word2 === undefined ? null : this.at(word2, map2)]
  }

  private taskActor(priority: number | undefined): Actor {
    const given: Given[] = []
    let tid = 0
    const task = this.sim.fork(
      context =>
        this.taskBody(context, given, own => {
          tid = own
        }),
      priority === undefined ? {} : { priority },
    )
    this.settle()
    return this.wrap(tid, task, order => {
      const answer = new Promise(resolve => given.push({ order, resolve }))
      wakeupTask(this.sim.s, task)
      return answer
    })
  }

  private *taskBody(
    context: SimulatedContext,
    given: Given[],
    begun: (tid: number) => void,
  ): Generator<number, number, unknown> {
    const parking = new SchedulerTask(context, ({ s }) => this.contextOn(s))
    begun(parking.tid)
    for (;;) {
      while (given.length === 0) {
        if (beginSleep(context.s, context.task, UNINTERRUPTIBLE)) yield SUSPENDED
        endSleep(context.s, context.task)
      }
      const { order, resolve } = given.shift() as Given
      const fx = this.futexesOn(context.s)
      if (order.do === 'call') {
        const [uaddr, timeout, uaddr2] = this.argumentsOf(order.call)
        const { op, val = 0, val3 = 0 } = order.call
        const result: number = yield* fx.futex(parking, uaddr, op, val, timeout, uaddr2, val3)
        takePending(context.s.i32, context.task)
        resolve(result)
      } else if (order.do === 'robust') {
        const head = order.index === null ? null : this.at(order.index)
        resolve(fx.setRobustList(head, order.bytes, parking.owner))
      } else if (order.do === 'get') {
        resolve(fx.getRobustList(order.tid, parking.owner))
      } else {
        resolve(undefined)
        return 0
      }
    }
  }

  /** The calls that a task makes run on the CPU that it is on. */
  private futexesOn(s: Scheduler): Futexes {
    return Object.assign(Object.create(Futexes.prototype) as Futexes, {
      context: this.contextOn(s),
      space: this.fx.space,
    })
  }

  private contextOn(s: Scheduler): FutexContext {
    let context = this.perCpu.get(s)
    if (context === undefined) {
      context = new FutexContext(s.thread, this.layout, () => s.now(), undefined, undefined, s)
      for (const [key, mapped] of this.fx.context.buffers) context.buffers.set(key, mapped)
      this.perCpu.set(s, context)
    }
    return context
  }

  private async threadActor(): Promise<Actor> {
    const { worker, ask } = this.idle.pop() ?? this.hire()
    const tid = (await ask({ do: 'tid' })) as number
    return this.wrap(tid, 0, async order => {
      const answer = await ask(order)
      if (order.do === 'end') this.idle.push({ worker, ask })
      return answer
    })
  }

  private hire(): Hired {
    const boot: WorkerBoot = {
      arena: this.sim.s.arena.buffer,
      id: this.nextId++,
      cpus: 2,
      tasks: 64,
      space: this.fx.space.handle,
      mappings: this.mapped.map(({ buffer, handles }) => ({ buffer, handles })),
    }
    const worker = new Worker(new URL('./pi-worker.ts', import.meta.url), { workerData: boot })
    this.workers.push(worker)
    worker.setMaxListeners(0)
    const ask = (order: Order): Promise<unknown> =>
      new Promise((resolve, reject) => {
        worker.once('message', resolve)
        worker.once('error', reject)
        worker.postMessage(order)
      })
    return { worker, ask }
  }

  /** What is left once every call has returned and every actor has ended. */
  async leftovers(): Promise<{ waiters: number; queued: number; owners: number }> {
    if (this.kind === 'task') this.sim.run()
    await Promise.all(this.open)
    for (const actor of this.actors) await actor.end()
    if (this.kind === 'task') this.sim.run()
    const { i32 } = this.sim.s
    this.actors = []
    this.open = []
    this.view.fill(0)
    return {
      waiters: this.layout.waiters.count(i32),
      queued: this.queued(),
      owners: this.layout.owners.count(i32),
    }
  }

  /** The thread of an actor dies, without a word. */
  async terminate(which: number): Promise<void> {
    await this.workers[which].terminate()
    recoverFutexes(this.fx.context, 70 + which)
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }
}
