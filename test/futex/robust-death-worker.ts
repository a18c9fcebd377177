import { parentPort, workerData } from 'node:worker_threads'
import { Arena, ArenaPlan, type Region } from '../../src/arena/memory/arena.ts'
import { KernelThread } from '../../src/arena/sync/thread.ts'
import { EOWNERDEAD } from '../../src/futex/core/errno.ts'
import { Futexes } from '../../src/futex/core/futexes.ts'
import { type FutexLayout, reserveFutexes } from '../../src/futex/core/layout.ts'
import { type MutexKind, ROBUST, ROBUST_PI, WordMutex } from '../../src/futex/robust/mutex.ts'
import type { LockOwner } from '../../src/futex/core/owner.ts'
import type { MappedBuffer, MappingHandles } from '../../src/futex/core/space.ts'
import { reserveMachine } from '../../src/machine/core/cpurecord.ts'
import { clockSince } from '../../src/machine/node/node-clock.ts'
import { planScheduler, Scheduler, type SchedulerPlan } from '../../src/sched/core/scheduler.ts'

/** The locks: all are robust, and those with an odd number also inherit priorities. */
export const LOCKS = 100
const STRIDE = 8
/** Words after the locks: how often each lock was acquired with EOWNERDEAD, and how often without. */
export const DEAD: number = LOCKS * STRIDE
export const PLAINLY: number = DEAD + LOCKS
export const WORDS: number = PLAINLY + LOCKS + 2
export const THREADS = 3

export interface DeathPlan {
  readonly arenaPlan: ArenaPlan
  readonly machine: Region
  readonly scheduler: SchedulerPlan
  readonly layout: FutexLayout
  /** The lock of each task, by its slot. */
  readonly table: number
}

/** Computed on every thread with the same result. */
export function planDeaths(): DeathPlan {
  const arenaPlan = new ArenaPlan()
  const machine = reserveMachine(arenaPlan, 1)
  const scheduler = planScheduler(arenaPlan, { cpus: 1, tasks: 512 })
  const layout = reserveFutexes(
    arenaPlan,
    { waiters: 1024, owners: 1024, mappings: 4, spaces: 2, buckets: 64 },
    scheduler.rcu,
  )
  return { arenaPlan, machine, scheduler, layout, table: arenaPlan.reserve('locks of tasks', 1024).start }
}

/** The data that a thread needs. */
export interface Place {
  readonly space: number
  readonly buffer: SharedArrayBuffer
  readonly handles: MappingHandles
}

export interface DeathBoot extends Place {
  readonly role: 'holder' | 'waiter'
  readonly arena: SharedArrayBuffer
  readonly id: number
  /** The time at which the machine's clock began. */
  readonly origin: number
}

/** The locks that a thread waits for: one after the other, blocked, or all together, as promises. */
export interface Round {
  readonly locks: readonly number[]
  readonly promises: boolean
}

export function mutexAt(fx: Futexes, mapped: MappedBuffer, lock: number): WordMutex {
  const kind: MutexKind = lock % 2 === 0 ? ROBUST : ROBUST_PI
  return new WordMutex(fx, mapped.word(fx.context, lock * STRIDE), kind)
}

/** Counts the result of a wait, makes the lock consistent, and unlocks it. */
export function account(
  view: Int32Array,
  mutex: WordMutex,
  lock: number,
  result: number,
  owner: LockOwner,
): void {
  if (result !== 0 && result !== -EOWNERDEAD) throw new Error(`lock ${lock}: ${result}`)
  Atomics.add(view, (result === 0 ? PLAINLY : DEAD) + lock, 1)
  if (result !== 0 && mutex.makeConsistent(owner) !== 0) throw new Error(`lock ${lock} stays inconsistent`)
  if (mutex.unlock(owner) !== 0) throw new Error(`lock ${lock} was not its own`)
}

async function waitFor(fx: Futexes, mapped: MappedBuffer, { locks, promises }: Round): Promise<void> {
  const { i32: view } = mapped
  if (!promises) {
    for (const lock of locks) {
      const mutex = mutexAt(fx, mapped, lock)
      account(view, mutex, lock, mutex.lockSync(fx.self), fx.self)
    }
    return
  }
  await Promise.all(
    locks.map(async lock => {
      const owner = fx.makeOwner()
      const mutex = mutexAt(fx, mapped, lock)
      account(view, mutex, lock, await mutex.lockAsync(owner), owner)
      fx.closeOwner(owner)
    }),
  )
}

if (workerData !== null && typeof workerData === 'object' && 'role' in workerData) {
  const boot = workerData as DeathBoot
  const { layout, scheduler: schedulerPlan, machine } = planDeaths()
  const thread = new KernelThread(Arena.attach(boot.arena), boot.id)
  const now = clockSince(boot.origin)
  // Not a CPU, but a thread that wakes tasks and boosts them.
  const scheduler = new Scheduler({ plan: schedulerPlan, machine, thread, now })
  const fx = new Futexes(thread, layout, { now, space: boot.space, scheduler })
  const mapped = fx.space.adopt(boot.buffer, boot.handles)
  if (boot.role === 'holder') {
    for (let lock = 0; lock < LOCKS; lock++) {
      if (mutexAt(fx, mapped, lock).lockSync(fx.self) !== 0) throw new Error('the locks are free')
    }
    parentPort?.postMessage('holds')
    // Blocks until it is terminated.
    Atomics.wait(mapped.i32, WORDS - 1, 0)
  } else {
    parentPort?.on('message', (round: Round) => {
      void waitFor(fx, mapped, round).then(() => parentPort?.postMessage('done'))
    })
  }
}
