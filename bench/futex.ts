import { Worker } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../src/arena/memory/arena.ts'
import { KernelThread } from '../src/arena/sync/thread.ts'
import { Futexes } from '../src/futex/core/futexes.ts'
import { initializeFutexes, reserveFutexes } from '../src/futex/core/layout.ts'
import { SchedTaskWaiter } from '../src/futex/core/schedtaskwaiter.ts'
import type { FutexLayout } from '../src/futex/core/layout.ts'
import type { FutexWord } from '../src/futex/core/space.ts'
import { FAIR_PRIORITY } from '../src/sched/core/priority.ts'
import { beginSleep } from '../src/sched/core/sleep.ts'
import { SWITCH_SLEEPS } from '../src/sched/core/switch.ts'
import { INTERRUPTIBLE } from '../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../src/sched/core/wakeup.ts'
import {
  ARRIVED,
  type HerdBoot,
  herdSizes,
  LOCK,
  lockContended,
  SEQUENCE,
  STOP,
  unlock,
} from './futex/herd.ts'
import { wakerSizes } from './futex/waker.ts'
import { compare, type Row, timed } from './harness.ts'
import { type Body, Rig } from './sched/rig.ts'

/** The shapes of `perf bench futex`, beside bare `Atomics.wait` and `Atomics.notify`. */
const plan = new ArenaPlan()
const layout = reserveFutexes(plan, { waiters: 20_000 })
const arena = Arena.create(plan)
initializeFutexes(arena, layout)
const fx = new Futexes(new KernelThread(arena, 64), layout, { now: () => performance.now() })
const view = new Int32Array(new SharedArrayBuffer(4096))
fx.map(view.buffer)
const words: FutexWord[] = Array.from({ length: 1024 }, (_, index) => fx.word(view, index))
const [word, other] = words

const TURNS = 500_000

function ourMismatch(turns: number): void {
  for (let i = 0; i < turns; i++) fx.waitSync(word, 1)
}

function bareMismatch(turns: number): void {
  for (let i = 0; i < turns; i++) Atomics.wait(view, 0, 1)
}

function ourWakeNone(turns: number): void {
  for (let i = 0; i < turns; i++) fx.wake(word, 1)
}

function bareWakeNone(turns: number): void {
  for (let i = 0; i < turns; i++) Atomics.notify(view, 0, 1)
}

/** perf bench futex hash: mismatching waits at many words. */
function hash(turns: number): void {
  for (let i = 0; i < turns; i++) fx.waitSync(words[i & 1023], 1)
}

function bareHash(turns: number): void {
  for (let i = 0; i < turns; i++) Atomics.wait(view, i & 1023, 1)
}

/** Nanoseconds per waiter to wake `count` promises, from the wake to the last resolution. */
async function wakePromises(count: number): Promise<number> {
  const waiting = Array.from({ length: count }, () => fx.waitAsync(word, 0))
  const start = performance.now()
  fx.wake(word, count)
  await Promise.all(waiting)
  return ((performance.now() - start) * 1e6) / count
}

async function wakeBare(count: number): Promise<number> {
  const waiting = Array.from({ length: count }, () => Atomics.waitAsync(view, 0, 0).value)
  const start = performance.now()
  Atomics.notify(view, 0, count)
  await Promise.all(waiting)
  return ((performance.now() - start) * 1e6) / count
}

/** Nanoseconds per waiter to move it and wake it where it went: a broadcast without a herd. */
async function requeuePromises(count: number): Promise<number> {
  const waiting = Array.from({ length: count }, () => fx.waitAsync(word, 0))
  const start = performance.now()
  fx.requeue(word, other, { wake: 1 })
  for (let i = 1; i < count; i++) fx.wake(other, 1)
  await Promise.all(waiting)
  return ((performance.now() - start) * 1e6) / count
}

/** Nanoseconds to wait at a vector of `size` words and be woken at the last: perf bench futex waitv. */
async function vector(size: number, turns: number): Promise<number> {
  const entries = words
    .slice(0, size)
    .map(({ index }) => ({ uaddr: { view, index }, val: 0, flags: 2 | 128 }))
  const start = performance.now()
  for (let i = 0; i < turns; i++) {
    const waiting = fx.waitvAsync(entries, 0, null, 1)
    fx.wake(words[size - 1], 1)
    await waiting
  }
  return ((performance.now() - start) * 1e6) / turns
}

/**
 * Threads that wait for a broadcast and then contend for one lock: all woken together, or one woken and the
 * others moved to the lock.
 */
class Herd {
  private readonly fx: Futexes
  private readonly view: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(64))
  private readonly threads: number
  private readonly workers: Worker[]
  private rounds = 0

  constructor(threads: number) {
    this.threads = threads
    const herdPlan = new ArenaPlan()
    const herdLayout = reserveFutexes(herdPlan, herdSizes)
    const herdArena = Arena.create(herdPlan)
    initializeFutexes(herdArena, herdLayout)
    this.fx = new Futexes(new KernelThread(herdArena, 64), herdLayout, { now: () => performance.now() })
    const { handles } = this.fx.map(this.view.buffer)
    this.workers = Array.from({ length: threads }, (_, id) => {
      const boot: HerdBoot = {
        arena: herdArena.buffer,
        id,
        space: this.fx.space.handle,
        buffer: this.view.buffer,
        handles,
      }
      return new Worker(new URL('./futex/herd.ts', import.meta.url), { workerData: boot })
    })
  }

  /** Microseconds a round. Blocks this thread: the waiting threads do not need it. */
  run(rounds: number, requeues: boolean): number {
    const { fx, view, threads } = this
    const lock = fx.word(view, LOCK)
    const sequence = fx.word(view, SEQUENCE)
    let total = 0
    for (let round = 0; round < rounds; round++) {
      this.rounds++
      this.await(threads * this.rounds)
      const start = performance.now()
      lockContended(fx, lock)
      Atomics.add(view, SEQUENCE, 1)
      if (requeues) fx.requeue(sequence, lock, { wake: 1 })
      else fx.wake(sequence, Infinity)
      unlock(fx, lock)
      this.await(threads * (this.rounds + 1))
      total += performance.now() - start
    }
    return (total * 1e6) / rounds
  }

  private await(arrived: number): void {
    const { view } = this
    for (let seen = Atomics.load(view, ARRIVED); seen < arrived; seen = Atomics.load(view, ARRIVED)) {
      Atomics.wait(view, ARRIVED, seen, 100)
    }
  }

  async close(): Promise<void> {
    Atomics.store(this.view, STOP, 1)
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }
}

/**
 * Wakers on their own threads, at one word where a thousand promises wait: perf bench futex wake-parallel.
 */
class Wakers {
  private readonly fx: Futexes
  private readonly view: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(64))
  private readonly workers: Worker[]

  constructor(threads: number) {
    const wakerPlan = new ArenaPlan()
    const wakerLayout = reserveFutexes(wakerPlan, wakerSizes)
    const wakerArena = Arena.create(wakerPlan)
    initializeFutexes(wakerArena, wakerLayout)
    this.fx = new Futexes(new KernelThread(wakerArena, 64), wakerLayout, { now: () => performance.now() })
    const { handles } = this.fx.map(this.view.buffer)
    this.workers = Array.from({ length: threads }, (_, id) => {
      const boot: HerdBoot = {
        arena: wakerArena.buffer,
        id,
        space: this.fx.space.handle,
        buffer: this.view.buffer,
        handles,
      }
      return new Worker(new URL('./futex/waker.ts', import.meta.url), { workerData: boot })
    })
  }

  /** Nanoseconds of a waker's time for each woken waiter, with `wakers` wakers in parallel. */
  async run(count: number, wakers: number): Promise<number> {
    const waiting = Array.from({ length: count }, () => this.fx.waitAsync(this.fx.word(this.view, 0), 0))
    const share = count / wakers
    const times = this.workers.slice(0, wakers).map(worker => {
      const told = new Promise<number>(resolve => worker.once('message', resolve))
      worker.postMessage(share)
      return told
    })
    const slowest = Math.max(...(await Promise.all(times)))
    await Promise.all(waiting)
    return (slowest * 1e6) / share
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map(worker => worker.terminate()))
  }
}

/**
 * Tasks on one CPU of the real scheduler, asleep at one word: from the wake until the last of them runs. They
 * live as long as the bench, so that start and end are not measured, and the code is warm.
 */
class TaskBench {
  private readonly rig: Rig
  private readonly fx: Futexes
  private readonly at: FutexWord
  private readonly tasks: number[] = []
  private woken = 0
  private end = 0

  constructor(count: number) {
    let layout!: FutexLayout
    this.rig = new Rig(count, 0, (plan, scheduler) => {
      layout = reserveFutexes(plan, { waiters: count }, scheduler.rcu)
    })
    const { s } = this.rig
    initializeFutexes(s.arena, layout)
    this.fx = new Futexes(s.thread, layout, { now: s.now, scheduler: s })
    const words = new Int32Array(new SharedArrayBuffer(64))
    this.fx.map(words.buffer)
    this.at = this.fx.word(words, 0)
    for (let index = 0; index < count; index++) {
      this.tasks.push(this.rig.spawn(this.body(index), FAIR_PRIORITY))
    }
    this.rig.run()
  }

  /** Nanoseconds a task. */
  measure(): number {
    const count = this.tasks.length
    for (const task of this.tasks) wakeupTask(this.rig.s, task)
    this.rig.run()
    this.woken = 0
    const start = performance.now()
    this.fx.wake(this.at, count)
    this.rig.run()
    if (this.woken !== count) throw new Error(`${this.woken} of ${count} tasks were woken`)
    return ((this.end - start) * 1e6) / count
  }

  private *body(index: number): Body {
    const { s } = this.rig
    // It runs for the first time when it is in the list.
    const waiter = new SchedTaskWaiter({ s, task: this.tasks[index] }, () => this.fx.context)
    for (;;) {
      beginSleep(s, this.tasks[index], INTERRUPTIBLE)
      yield SWITCH_SLEEPS
      yield* this.fx.wait(waiter, this.at, 0)
      this.woken++
      if (this.woken === this.tasks.length) this.end = performance.now()
    }
  }
}

export async function* rows(): AsyncIterable<Row> {
  yield await compare({
    row: 'futex/wait-mismatch',
    against: 'Atomics.wait',
    ours: () => timed(TURNS, ourMismatch),
    base: () => timed(TURNS, bareMismatch),
    target: { most: 3 },
  })
  yield await compare({
    row: 'futex/wake-none',
    against: 'Atomics.notify',
    ours: () => timed(TURNS, ourWakeNone),
    base: () => timed(TURNS, bareWakeNone),
    target: { most: 1 },
  })
  yield await compare({
    row: 'futex/hash-1024',
    against: 'Atomics.wait',
    ours: () => timed(TURNS, hash),
    base: () => timed(TURNS, bareHash),
  })
  yield await compare({
    row: 'futex/wake-1000-promises',
    against: 'waitAsync-notify',
    ours: () => averageOf(20, () => wakePromises(1000)),
    base: () => averageOf(20, () => wakeBare(1000)),
    target: { most: 4 },
  })
  yield await compare({
    row: 'futex/requeue-1000-promises',
    against: 'wake-all-at-once',
    ours: () => requeuePromises(1000),
    base: () => wakePromises(1000),
  })
  yield await compare({
    row: 'futex/waitv-16',
    against: 'a vector of one',
    ours: () => vector(16, 500),
    base: () => vector(1, 500),
  })
  const wakers = new Wakers(2)
  yield await compare({
    row: 'futex/wake-parallel-2',
    against: 'one-waker',
    ours: () => wakers.run(1000, 2),
    base: () => wakers.run(1000, 1),
  })
  await wakers.close()
  const herd = new Herd(8)
  yield await compare({
    row: 'futex/broadcast-8-threads',
    against: 'wake-all-at-once',
    ours: () => herd.run(40, true),
    base: () => herd.run(40, false),
  })
  await herd.close()
  const tasks = new TaskBench(1000)
  yield await compare({
    row: 'futex/wake-1000-tasks',
    against: 'waitAsync-notify',
    ours: () => averageOf(20, () => tasks.measure()),
    base: () => averageOf(20, () => wakeBare(1000)),
  })
}

/** The mean of many batches: one alone is over before its code is compiled. */
async function averageOf(times: number, measure: () => number | Promise<number>): Promise<number> {
  let sum = 0
  for (let time = 0; time < times; time++) sum += await measure()
  return sum / times
}
