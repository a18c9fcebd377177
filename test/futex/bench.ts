import type { Worker } from 'node:worker_threads'
import type { Timespec, Uaddr } from '../../src/futex/operations/call.ts'
import { Waiter } from '../../src/futex/core/records.ts'
import { SchedTaskWaiter } from '../../src/futex/core/schedtaskwaiter.ts'
import type { SimulatedContext } from '../../testing/sched/simulation.ts'
import { type Kind, Stage, type Watched } from './stage.ts'

/**
 * A system call of a waiter. `word` is an index into the bench's buffer; `map` chooses one of its mappings.
 */
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

export interface Pending extends Watched {
  /** The calling task, if the waiter is one. */
  readonly task: number
}

/** A stage with waiters of one kind, each of which makes one call. */
export class Bench extends Stage {
  private readonly idle: Worker[] = []

  constructor(kind: Kind) {
    super(kind, { bytes: 256, settleMs: 0.01, inherits: false })
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

  /** Marks the newest waiter as a waiter for a pi lock. */
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

  /** Starts a call that may sleep. Returns when it sleeps or has returned. */
  async start(call: Call | VectorCall): Promise<Pending> {
    const before = new Set(this.queuedWaiters())
    const { task, result } = this.make(call)
    const watched = await this.watch(before, result, 'waitv' in call ? call.waitv.length : 1)
    return {
      task,
      isDone: watched.isDone,
      get result() {
        return watched.result
      },
    }
  }

  private make(call: Call | VectorCall): { task: number; result: Promise<number> } {
    if (this.kind === 'promise') return { task: 0, result: this.promiseCall(call) }
    if (this.kind === 'thread') return { task: 0, result: this.threadCall(call) }
    const { promise, resolve } = Promise.withResolvers<number>()
    const task = this.sim.fork(
      context => this.taskBody(context, call, resolve),
      'priority' in call && call.priority !== undefined ? { priority: call.priority } : {},
    )
    return { task, result: promise }
  }

  /** Resources that are left when every call has returned. */
  async leftovers(): Promise<{ waiters: number; queued: number }> {
    if (this.kind === 'task') this.sim.run()
    await Promise.all(this.watched)
    return { waiters: this.layout.waiters.count(this.sim.s.i32), queued: this.queued() }
  }

  private *taskBody(
    context: SimulatedContext,
    call: Call | VectorCall,
    resolve: (value: number) => void,
  ): Generator<number, number, unknown> {
    const task = new SchedTaskWaiter(context, ({ s }) => this.contextOn(s))
    const fx = this.futexesOn(context.s)
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
    const worker = this.idle.pop() ?? this.hire('./worker.ts')
    worker.postMessage(call)
    return new Promise((resolve, reject) => {
      worker.once('message', (result: number) => {
        this.idle.push(worker)
        resolve(result)
      })
      worker.once('error', reject)
    })
  }
}
