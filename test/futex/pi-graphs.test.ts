import { expect, test } from 'vitest'
import { acquire, release } from '../../src/arena/sync/spinlock.ts'
import { finishCall, type PreparedWait } from '../../src/futex/operations/call.ts'
import { EDEADLK, EINTR } from '../../src/futex/core/errno.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { type FutexLayout, initializeFutexes, reserveFutexes } from '../../src/futex/core/layout.ts'
import { FUTEX_TID_MASK, LockOwner, ownerOfTask, ownerPriority } from '../../src/futex/core/owner.ts'
import { lockPi, unlockPi } from '../../src/futex/pi/pi.ts'
import { setOwnerPriority } from '../../src/futex/pi/pichain.ts'
import { Owner, TASK, THREAD, Waiter, QUEUE_WOKEN } from '../../src/futex/core/records.ts'
import { finishWait } from '../../src/futex/core/sleep.ts'
import type { WaiterOptions } from '../../src/futex/operations/waitwake.ts'
import { SeededRandom } from '../../src/machine/simulated/random.ts'
import { createTask } from '../../src/sched/core/fork.ts'
import { makePriority } from '../../src/sched/core/priority.ts'
import { Simulation } from '../../testing/sched/simulation.ts'

/**
 * Random graphs of locks: owners (tasks and threads) lock, unlock, give up and change their priority. A model
 * knows only which owner holds which lock and waits for which lock, and recomputes all priorities after every
 * step.
 */
class Model {
  readonly base: number[]
  readonly holder: number[]
  /** The lock that each owner waits for; -1: none. */
  readonly waits: number[]
  readonly effective: number[]

  constructor(base: number[], locks: number) {
    this.base = base
    this.holder = Array.from({ length: locks }, () => -1)
    this.waits = base.map(() => -1)
    this.effective = [...base]
  }

  /**
   * The effective priority of an owner is the best of its own and those of all direct and indirect waiters
   * for its locks.
   */
  recompute(): void {
    const { base, waits, holder, effective } = this
    for (let at = 0; at < base.length; at++) effective[at] = base[at]
    for (let waiter = 0; waiter < base.length; waiter++) {
      let lock = waits[waiter]
      while (lock >= 0) {
        const owner = holder[lock]
        if (base[waiter] < effective[owner]) effective[owner] = base[waiter]
        lock = waits[owner]
      }
    }
  }

  /** Whether the owner would wait for itself. */
  closesCircle(owner: number, lock: number): boolean {
    let at = lock
    while (at >= 0) {
      if (this.holder[at] === owner) return true
      at = this.waits[this.holder[at]]
    }
    return false
  }
}

class Graph {
  private readonly fx: Futexes
  private readonly layout: FutexLayout
  private readonly view = new Int32Array(new SharedArrayBuffer(1024))
  private readonly owners: LockOwner[] = []
  private readonly whos: WaiterOptions[] = []
  private readonly pending: (PreparedWait | undefined)[]
  readonly model: Model
  private readonly random: SeededRandom
  private readonly locks: number

  constructor(seed: number, owners: number, locks: number) {
    this.random = new SeededRandom(seed)
    this.locks = locks
    let layout: FutexLayout | undefined
    const sim = new Simulation({
      cpus: 2,
      seed,
      tasks: 64,
      start: false,
      debug: false,
      reserve: (plan, scheduler) => {
        layout = reserveFutexes(plan, { waiters: 64, mappings: 4, buckets: 16 }, scheduler.rcu)
      },
    })
    this.layout = layout as unknown as FutexLayout
    const { s } = sim
    initializeFutexes(s.arena, this.layout)
    // No task is asleep in the scheduler: the test reads from the waiter whether it was woken.
    this.fx = new Futexes(s.thread, this.layout, { now: () => 0, scheduler: s, wakeTask: () => undefined })
    this.fx.map(this.view.buffer)
    const base: number[] = []
    for (let at = 0; at < owners; at++) {
      const priority = this.anyPriority()
      base.push(priority)
      if (at % 3 === 2) {
        const owner = this.fx.makeOwner({ priority })
        this.owners.push(owner)
        this.whos.push({ kind: THREAD, task: 0, priority, owner })
      } else {
        const task = createTask(s, { priority })
        const owner = new LockOwner(this.fx.context, ownerOfTask(this.fx.context, task))
        this.owners.push(owner)
        this.whos.push({ kind: TASK, task, priority, owner })
      }
    }
    this.pending = this.owners.map(() => undefined)
    this.model = new Model(base, locks)
  }

  private anyPriority(): number {
    return makePriority(1 + this.random.below(12) * 5, this.random.below(4))
  }

  /** One step of a random owner, here and in the model; then all priorities are compared. */
  step(): void {
    const { random, model, pending } = this
    const at = random.below(this.owners.length)
    const kind = random.below(16)
    if (kind === 0) this.changePriority(at)
    else if (pending[at] !== undefined) {
      if (kind < 4) this.giveUp(at)
    } else if (kind < 9) this.lock(at, random.below(this.locks))
    else this.unlock(at)
    model.recompute()
    this.compare()
  }

  private changePriority(at: number): void {
    const priority = this.anyPriority()
    this.model.base[at] = priority
    setOwnerPriority(this.fx.context, this.owners[at].record, priority)
  }

  private lock(at: number, lock: number): void {
    const { model, fx } = this
    const word = fx.word(this.view, lock)
    const result = lockPi(fx.context, this.whos[at], word, false, Infinity, false)
    if (model.holder[lock] < 0) {
      if (result !== 0) throw new Error(`a free lock was not taken: ${JSON.stringify(result)}`)
      model.holder[lock] = at
    } else if (model.closesCircle(at, lock)) {
      if (result !== -EDEADLK) throw new Error('a cycle was not found')
    } else {
      if (typeof result === 'number') throw new Error(`a wait returned ${result}`)
      this.pending[at] = result
      model.waits[at] = lock
    }
  }

  private unlock(at: number): void {
    const { model, fx } = this
    const held: number[] = []
    for (let lock = 0; lock < this.locks; lock++) if (model.holder[lock] === at) held.push(lock)
    if (held.length === 0) return
    const lock = held[this.random.below(held.length)]
    const waiters = model.waits.filter(waitsFor => waitsFor === lock).length
    const best = this.bestWaiter(lock)
    if (unlockPi(fx.context, this.owners[at], fx.word(this.view, lock), false) !== 0)
      throw new Error('an unlock failed')
    const tid = Atomics.load(this.view, lock) & FUTEX_TID_MASK
    const next = tid === 0 ? -1 : this.owners.findIndex(owner => owner.tid === tid)
    if (next < 0 !== (waiters === 0))
      throw new Error('the lock has an owner exactly when it had a waiter: violated')
    model.holder[lock] = next
    if (next < 0) return
    if (model.effective[next] !== best) throw new Error('the lock did not go to the best waiter')
    this.settle(next)
  }

  /** The best priority among the waiters for the lock, before it changes its owner. */
  private bestWaiter(lock: number): number {
    const { waits, effective } = this.model
    let best = Infinity
    for (let at = 0; at < waits.length; at++) if (waits[at] === lock) best = Math.min(best, effective[at])
    return best
  }

  /** Ends the wait of the new owner. */
  private settle(at: number): void {
    const { fx, pending, model } = this
    const wait = pending[at] as PreparedWait
    if (Atomics.load(fx.context.i32, wait.waiters[0] + Waiter.queue) !== QUEUE_WOKEN)
      throw new Error('the new owner was not woken')
    if (finishCall(fx.context, wait, finishWait(fx.context, wait.waiters, -EINTR)) !== 0)
      throw new Error('the new owner got no result')
    pending[at] = undefined
    model.waits[at] = -1
  }

  private giveUp(at: number): void {
    const { fx, pending, model } = this
    const wait = pending[at] as PreparedWait
    const result = finishCall(fx.context, wait, finishWait(fx.context, wait.waiters, -EINTR))
    if (result !== -EINTR) throw new Error(`giving up returned ${String(result)}`)
    pending[at] = undefined
    model.waits[at] = -1
  }

  private compare(): void {
    const { context } = this.fx
    const { effective } = this.model
    for (let at = 0; at < effective.length; at++) {
      const { record } = this.owners[at]
      acquire(context.thread, record + Owner.lock)
      const priority = ownerPriority(context, record)
      release(context.thread, record + Owner.lock)
      if (priority !== effective[at]) {
        throw new Error(`owner ${at} has priority ${priority} and should have ${effective[at]}`)
      }
    }
  }
}

const STEPS = 1_000_000

for (const [owners, locks, share] of [
  [4, 3, 0.3],
  [10, 8, 0.4],
  [16, 24, 0.3],
] as const) {
  test(`${owners} owners and ${locks} locks: after every one of ${STEPS * share} steps the priorities are those of the model`, () => {
    const steps = STEPS * share
    const graph = new Graph(owners * 100 + locks, owners, locks)
    let boosted = 0
    for (let step = 0; step < steps; step++) {
      try {
        graph.step()
      } catch (error) {
        throw new Error(`step ${step}: ${(error as Error).message}`, { cause: error })
      }
      if (step % 64 === 0)
        boosted += graph.model.effective.some((each, at) => each !== graph.model.base[at]) ? 1 : 0
    }
    // The run must contain waits and boosts.
    expect(boosted).toBeGreaterThan(steps / 64 / 10)
  })
}
