import type { Worker } from 'node:worker_threads'
import { acquire, release } from '../../src/arena/sync/spinlock.ts'
import type { Timespec, Uaddr } from '../../src/futex/operations/call.ts'
import { findOwner, type LockOwner, ownerPriority } from '../../src/futex/core/owner.ts'
import { setOwnerPriority } from '../../src/futex/pi/pichain.ts'
import { Owner } from '../../src/futex/core/records.ts'
import { recoverFutexes } from '../../src/futex/recovery/recover.ts'
import { SchedTaskWaiter } from '../../src/futex/core/schedtaskwaiter.ts'
import type { SimulatedContext } from '../../testing/sched/simulation.ts'
import { beginSleep, endSleep, takePending } from '../../src/sched/core/sleep.ts'
import { SWITCH_SLEEPS } from '../../src/sched/core/switch.ts'
import { UNINTERRUPTIBLE } from '../../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../../src/sched/core/wakeup.ts'
import { FIRST_THREAD, type Kind, Stage, type Watched } from './stage.ts'

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

/** A lock owner that makes one call after the other. */
export interface Actor {
  readonly tid: number
  /** The task, if the actor is one. */
  readonly task: number
  /** Starts a call. Returns when the call sleeps or has returned. */
  start(call: ActorCall): Promise<Started>
  /** A call that must return. */
  call(call: ActorCall): Promise<number>
  setRobustList(index: number | null, bytes: number): Promise<number>
  getRobustList(tid: number): Promise<unknown>
  setPriority(priority: number): Promise<void>
  /** The actor ends, and its locks pass to others. */
  end(): Promise<void>
}

export type Started = Watched

interface Given {
  readonly order: Order
  readonly resolve: (answer: unknown) => void
}

interface Hired {
  readonly worker: Worker
  readonly ask: (order: Order) => Promise<unknown>
}

/** A stage with two mappings of its buffer, and actors of one kind. */
export class ActorBench extends Stage {
  private actors: Actor[] = []
  private readonly idle: Hired[] = []

  constructor(kind: Kind, cpus = 2) {
    super(kind, { cpus, bytes: 1 << 17, settleMs: 0.05, inherits: true })
    this.mapped.push(this.fx.map(this.mapped[0].buffer))
  }

  /** The current priority of the owner of a TID. */
  priorityOf(tid: number): number {
    const { context } = this.fx
    const record = findOwner(context, tid)
    acquire(context.thread, record + Owner.lock)
    const priority = ownerPriority(context, record)
    release(context.thread, record + Owner.lock)
    return priority
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
        // From outside, because the actor may be asleep; the same for threads and promises.
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
    const parking = new SchedTaskWaiter(context, ({ s }) => this.contextOn(s))
    begun(parking.owner.tid)
    for (;;) {
      while (given.length === 0) {
        if (beginSleep(context.s, context.task, UNINTERRUPTIBLE)) yield SWITCH_SLEEPS
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

  private async threadActor(): Promise<Actor> {
    const { worker, ask } = this.idle.pop() ?? this.hireActor()
    const tid = (await ask({ do: 'tid' })) as number
    return this.wrap(tid, 0, async order => {
      const answer = await ask(order)
      if (order.do === 'end') this.idle.push({ worker, ask })
      return answer
    })
  }

  private hireActor(): Hired {
    const worker = this.hire('./pi-worker.ts')
    const ask = (order: Order): Promise<unknown> =>
      new Promise((resolve, reject) => {
        worker.once('message', resolve)
        worker.once('error', reject)
        worker.postMessage(order)
      })
    return { worker, ask }
  }

  /** Resources that are left when every call has returned and every actor has ended. */
  async leftovers(): Promise<{ waiters: number; queued: number; owners: number }> {
    if (this.kind === 'task') this.sim.run()
    await Promise.all(this.watched)
    for (const actor of this.actors) await actor.end()
    if (this.kind === 'task') this.sim.run()
    const { i32 } = this.sim.s
    this.actors = []
    this.watched = []
    this.view.fill(0)
    return {
      waiters: this.layout.waiters.count(i32),
      queued: this.queued(),
      owners: this.layout.owners.count(i32),
    }
  }

  /** The actor's thread dies without any cleanup. */
  async terminate(which: number): Promise<void> {
    await this.workers[which].terminate()
    recoverFutexes(this.fx.context, FIRST_THREAD + which)
  }
}
