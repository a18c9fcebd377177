import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { CHAIN_MAX } from './waitcycle.ts'
import { EDEADLK } from '../core/errno.ts'
import { Futexes } from '../core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../core/layout.ts'
import { PI, WordMutex } from '../robust/mutex.ts'
import type { LockOwner } from '../core/owner.ts'
import { lockPi } from './pi.ts'
import { Owner } from '../core/records.ts'
import { promiseWaiter } from '../core/sleep.ts'

const BEST = 10
const WORST = 100

/** Owners with one lock each. Each owner but the first waits for the lock of the one before it. */
class Chain {
  readonly owners: LockOwner[]
  private readonly fx: Futexes
  private readonly mutexes: WordMutex[]

  constructor(length: number) {
    const plan = new ArenaPlan()
    const room = length + 8
    const layout = reserveFutexes(plan, { waiters: room, owners: room, buckets: 64, mappings: 2, spaces: 2 })
    const arena = Arena.create(plan)
    initializeFutexes(arena, layout)
    this.fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
    const view = new Int32Array(new SharedArrayBuffer(4 * room))
    this.fx.map(view.buffer)
    this.owners = Array.from({ length }, () => this.fx.makeOwner({ priority: WORST }))
    this.mutexes = this.owners.map((_, at) => new WordMutex(this.fx, this.fx.word(view, at), PI))
    this.owners.forEach((owner, at) => this.mutexes[at].tryLock(owner))
    for (let at = 1; at < length; at++) this.comes(this.owners[at], at - 1)
  }

  /** Another owner, the best, locks the last lock. Returns the result of LOCK_PI, or 1 if it waits. */
  bestComes(): number {
    return this.comes(this.fx.makeOwner({ priority: BEST }), this.owners.length - 1)
  }

  comes(owner: LockOwner, lock: number): number {
    const { context } = this.fx
    const { word } = this.mutexes[lock]
    const result = lockPi(context, promiseWaiter(undefined, owner), word, true, Infinity, false)
    return typeof result === 'number' ? result : 1
  }

  priorityOf(at: number): number {
    return this.fx.context.i32[this.owners[at].record + Owner.priority]
  }
}

test('a priority is carried to the end of a chain of the greatest length', () => {
  const chain = new Chain(CHAIN_MAX)
  expect(chain.bestComes()).toBe(1)
  for (const at of [0, 1, 500, CHAIN_MAX - 1]) expect(chain.priorityOf(at)).toBe(BEST)
})

test('a longer chain counts as a deadlock, and no owner inherits from the refused locker', () => {
  const chain = new Chain(CHAIN_MAX + 1)
  expect(chain.bestComes()).toBe(-EDEADLK)
  for (const at of [0, 1, 500, CHAIN_MAX]) expect(chain.priorityOf(at)).toBe(WORST)
})

test('the first owner of a chain gets EDEADLK at its last lock', () => {
  const chain = new Chain(20)
  expect(chain.comes(chain.owners[0], 19)).toBe(-EDEADLK)
  expect(chain.bestComes()).toBe(1)
  expect(chain.priorityOf(0)).toBe(BEST)
})
