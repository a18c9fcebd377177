import { Deferred, Effect, Fiber, Queue } from 'effect'
import { Worker } from 'node:worker_threads'
import { Arena, ArenaPlan } from '../src/arena/memory/arena.ts'
import { KernelThread } from '../src/arena/sync/thread.ts'
import { NodeMachine } from '../src/machine/node/nodemachine.ts'
import { createTask, startTask } from '../src/sched/core/fork.ts'
import { FAIR_PRIORITY } from '../src/sched/core/priority.ts'
import { Scheduler } from '../src/sched/core/scheduler.ts'
import { beginSleep } from '../src/sched/core/sleep.ts'
import { SWITCH_SLEEPS, SWITCH_YIELDS } from '../src/sched/core/switch.ts'
import { INTERRUPTIBLE } from '../src/sched/core/taskrecord.ts'
import { wakeupTask } from '../src/sched/core/wakeup.ts'
import { compare, type Row } from './harness.ts'
import { planCross } from './sched/crossprogram.ts'
import { type Body, FIFO, Rig } from './sched/rig.ts'
import { Yielders } from './sched/yielders.ts'

const YIELDS = 1_000_000

/** Nanoseconds a turn, when `run` runs `turns` turns. */
function perTurn(turns: number, run: () => void): number {
  const start = performance.now()
  run()
  return ((performance.now() - start) * 1e6) / turns
}

async function perTurnAsync(turns: number, run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return ((performance.now() - start) * 1e6) / turns
}

// Yield

function* yielding(turns: number): Body {
  for (let turn = 0; turn < turns; turn++) yield SWITCH_YIELDS
}

/** Two generators, resumed in turn: no queue, no lock, no task. */
function generatorResume(): number {
  const pair = [yielding(Infinity), yielding(Infinity)]
  return perTurn(YIELDS, () => {
    for (let turn = 0; turn < YIELDS; turn++) {
      const { done, value } = pair[turn & 1].next()
      if (done || value !== SWITCH_YIELDS) throw new Error('a generator that yields for ever has ended')
    }
  })
}

function yieldMany(rig: Rig, tasks: number, turns: number): number {
  return perTurn(tasks * turns, () => {
    for (let task = 0; task < tasks; task++) rig.spawn(yielding(turns))
    rig.run()
  })
}

async function yieldAwait(tasks: number, turns: number): Promise<number> {
  const body = async (): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await undefined
  }
  return await perTurnAsync(tasks * turns, () => Promise.all(Array.from({ length: tasks }, body)))
}

async function yieldEffect(tasks: number, turns: number): Promise<number> {
  const body = Effect.gen(function* () {
    for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
  })
  const all = Effect.all(
    Array.from({ length: tasks }, () => body),
    { concurrency: 'unbounded', discard: true },
  )
  return await perTurnAsync(tasks * turns, () => Effect.runPromise(all))
}

// Wake, ping-pong

/** Two tasks that wake each other and sleep: two wakeups and two switches a round. */
function pingPongOurs(rig: Rig, rounds: number): void {
  const tasks: number[] = []
  const player = function* (self: number): Body {
    for (let round = 0; round < rounds; round++) {
      beginSleep(rig.s, tasks[self], INTERRUPTIBLE)
      wakeupTask(rig.s, tasks[1 - self])
      yield SWITCH_SLEEPS
    }
    wakeupTask(rig.s, tasks[1 - self])
  }
  tasks.push(rig.spawn(player(0)))
  tasks.push(rig.spawn(player(1)))
  rig.run()
}

/** Two async functions that resolve each other's promise. */
async function pingPongAwait(rounds: number): Promise<void> {
  let resolveOther: (() => void) | undefined
  const player = async (): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const other = resolveOther
      const turn = new Promise<void>(resolve => {
        resolveOther = resolve
      })
      other?.()
      await turn
    }
    resolveOther?.()
  }
  await Promise.all([player(), player()])
}

function pingPongEffect(rounds: number): Effect.Effect<unknown> {
  const slot: { other: Deferred.Deferred<void> | undefined } = { other: undefined }
  const player = Effect.gen(function* () {
    for (let round = 0; round < rounds; round++) {
      const { other } = slot
      const turn = Deferred.makeUnsafe<void>()
      slot.other = turn
      if (other) yield* Deferred.succeed(other, undefined)
      yield* Deferred.await(turn)
    }
    if (slot.other) yield* Deferred.succeed(slot.other, undefined)
  })
  return Effect.all([player, player], { concurrency: 'unbounded', discard: true })
}

// Tokio's shapes: chained spawn, ping-pong, spawn many, yield many

function chainedOurs(rig: Rig, length: number): void {
  const link = function* (left: number): Body {
    if (left > 0) rig.spawn(link(left - 1))
    else yield* nothing()
  }
  rig.spawn(link(length))
  rig.run()
}

async function chainedAwait(length: number): Promise<void> {
  await new Promise<void>(resolve => {
    const link = async (left: number): Promise<void> => {
      await undefined
      if (left > 0) void link(left - 1)
      else resolve()
    }
    void link(length)
  })
}

function chainedEffect(length: number): Effect.Effect<unknown> {
  return Effect.gen(function* () {
    const done = Deferred.makeUnsafe<void>()
    const link = (left: number): Effect.Effect<unknown> =>
      left > 0
        ? Effect.suspend(() => Effect.forkDetach(link(left - 1)))
        : Effect.suspend(() => Deferred.succeed(done, undefined))
    yield* Effect.forkDetach(link(length))
    yield* Deferred.await(done)
  })
}

function* nothing(): Body {
  // A task that ends immediately.
}

function spawnOurs(rig: Rig, count: number): void {
  for (let task = 0; task < count; task++) rig.spawn(nothing())
  rig.run()
}

async function spawnAwait(count: number): Promise<void> {
  const body = async (): Promise<void> => {
    await undefined
  }
  await Promise.all(Array.from({ length: count }, body))
}

function spawnEffect(count: number): Effect.Effect<unknown> {
  return Effect.gen(function* () {
    const fibers: Fiber.Fiber<void>[] = []
    for (let task = 0; task < count; task++) fibers.push(yield* Effect.forkChild(Effect.void))
    yield* Fiber.awaitAll(fibers)
  })
}

// hackbench: groups of 20 senders and 20 receivers; every sender sends to every receiver of its group

const GROUPS = 10
const PAIRS = 20
const MESSAGES = 20

/** A mailbox on one CPU: a receiver sleeps while it is empty. */
interface Mailbox {
  task: number
  count: number
  sleeps: boolean
}

function hackbenchOurs(rig: Rig): void {
  const receiver = function* (box: Mailbox, expected: number): Body {
    for (let got = 0; got < expected; ) {
      if (box.count === 0) {
        box.sleeps = true
        beginSleep(rig.s, box.task, INTERRUPTIBLE)
        yield SWITCH_SLEEPS
        continue
      }
      got += box.count
      box.count = 0
    }
  }
  const sender = function* (boxes: readonly Mailbox[]): Body {
    for (let message = 0; message < MESSAGES; message++) {
      for (const box of boxes) {
        box.count++
        if (!box.sleeps) continue
        box.sleeps = false
        wakeupTask(rig.s, box.task)
      }
      yield SWITCH_YIELDS
    }
  }
  for (let group = 0; group < GROUPS; group++) {
    const boxes: Mailbox[] = []
    for (let pair = 0; pair < PAIRS; pair++) {
      const box: Mailbox = { task: 0, count: 0, sleeps: false }
      boxes.push(box)
      box.task = rig.spawn(receiver(box, PAIRS * MESSAGES))
    }
    for (let pair = 0; pair < PAIRS; pair++) rig.spawn(sender(boxes))
  }
  rig.run()
}

async function hackbenchAwait(): Promise<void> {
  const all: Promise<void>[] = []
  for (let group = 0; group < GROUPS; group++) {
    const boxes = Array.from({ length: PAIRS }, () => ({
      count: 0,
      wake: undefined as (() => void) | undefined,
    }))
    for (const box of boxes) {
      all.push(
        (async () => {
          for (let got = 0; got < PAIRS * MESSAGES; ) {
            if (box.count === 0) {
              await new Promise<void>(resolve => {
                box.wake = resolve
              })
            }
            got += box.count
            box.count = 0
          }
        })(),
      )
    }
    for (let pair = 0; pair < PAIRS; pair++) {
      all.push(
        (async () => {
          for (let message = 0; message < MESSAGES; message++) {
            for (const box of boxes) {
              box.count++
              box.wake?.()
              box.wake = undefined
            }
            await undefined
          }
        })(),
      )
    }
  }
  await Promise.all(all)
}

function hackbenchEffect(): Effect.Effect<unknown> {
  return Effect.gen(function* () {
    const all: Effect.Effect<unknown>[] = []
    for (let group = 0; group < GROUPS; group++) {
      const boxes: Queue.Queue<number>[] = []
      for (let pair = 0; pair < PAIRS; pair++) boxes.push(yield* Queue.unbounded<number>())
      for (const box of boxes) {
        all.push(
          Effect.gen(function* () {
            for (let got = 0; got < PAIRS * MESSAGES; got++) yield* Queue.take(box)
          }),
        )
      }
      for (let pair = 0; pair < PAIRS; pair++) {
        all.push(
          Effect.gen(function* () {
            for (let message = 0; message < MESSAGES; message++) {
              for (const box of boxes) yield* Queue.offer(box, message)
              yield* Effect.yieldNow
            }
          }),
        )
      }
    }
    yield* Effect.all(all, { concurrency: 'unbounded', discard: true })
  })
}

// Across CPUs

interface Cross {
  wake(rounds: number): Promise<number>
  bare(rounds: number): Promise<number>
  close(): Promise<void>
}

async function bootCross(): Promise<Cross> {
  const arenaPlan = new ArenaPlan()
  const plan = planCross(arenaPlan)
  const arena = Arena.create(arenaPlan)
  const machine = new NodeMachine({
    arena,
    region: plan.machine,
    program: new URL('./sched/crossprogram.ts', import.meta.url),
  })
  const s = new Scheduler({
    plan: plan.scheduler,
    machine: plan.machine,
    thread: new KernelThread(arena, 64),
    now: machine.now,
  })
  s.initialize()
  await machine.start(0)
  await machine.start(1)
  const { i32 } = arena
  const at = plan.words.start
  const wait = new Int32Array(new SharedArrayBuffer(8))
  const echo = new Worker(
    `const { workerData: w } = require('node:worker_threads')
     for (;;) { Atomics.wait(w, 0, 0); Atomics.store(w, 0, 0); Atomics.store(w, 1, 1); Atomics.notify(w, 1) }`,
    { eval: true, workerData: wait },
  )
  echo.unref()
  return {
    async wake(rounds) {
      i32[at] = rounds * 2
      i32[at + 3] = 0
      const tasks = [0, 1].map(cpu => createTask(s, { priority: FIFO, affinity: [cpu] }))
      i32[at + 1] = tasks[0]
      i32[at + 2] = tasks[1]
      const start = performance.now()
      // The first task wakes the second one for the first time.
      startTask(s, tasks[0])
      for (let done = 0; done < 2; done = Atomics.load(i32, at + 3)) Atomics.wait(i32, at + 3, done, 1)
      return ((performance.now() - start) * 1e6) / (rounds * 2)
    },
    bare(rounds) {
      const start = performance.now()
      for (let round = 0; round < rounds; round++) {
        Atomics.store(wait, 0, 1)
        Atomics.notify(wait, 0)
        Atomics.wait(wait, 1, 0)
        Atomics.store(wait, 1, 0)
      }
      return Promise.resolve(((performance.now() - start) * 1e6) / (rounds * 2))
    },
    async close() {
      await echo.terminate()
      await machine.close()
    },
  }
}

/** One shape against `await` and against Effect: two rows. */
async function* beside(
  name: string,
  turns: number,
  ours: () => void,
  awaits: () => Promise<void>,
  effect: () => Effect.Effect<unknown>,
): AsyncIterable<Row> {
  const measureOurs = (): number => perTurn(turns, ours)
  yield await compare({
    row: `sched/${name}`,
    against: 'await',
    ours: measureOurs,
    base: () => perTurnAsync(turns, awaits),
  })
  yield await compare({
    row: `sched/${name}-effect`,
    against: "Effect's fibers",
    ours: measureOurs,
    base: () => perTurnAsync(turns, () => Effect.runPromise(effect())),
  })
}

export async function* rows(): AsyncIterable<Row> {
  for (const tasks of [2, 1000, 100_000]) {
    const yielders = new Yielders(new Rig(tasks), tasks)
    yield await compare({
      row: `sched/yield-${tasks}`,
      against: 'generator-resume',
      ours: () => yielders.measure(),
      base: generatorResume,
      target: { most: 5 },
    })
  }
  const rig = new Rig(10_001)
  for (const tasks of [2, 1000]) {
    const yielders = new Yielders(new Rig(tasks), tasks, FAIR_PRIORITY)
    yield await compare({
      row: `sched/fair-yield-${tasks}`,
      against: 'generator-resume',
      ours: () => yielders.measure(200_000),
      base: generatorResume,
      target: { most: tasks === 2 ? 9 : 13 },
    })
  }
  const pair = new Yielders(new Rig(2), 2)
  yield await compare({
    row: 'sched/effect-yield',
    against: "Effect's yieldNow",
    ours: () => pair.measure(200_000),
    base: () => yieldEffect(2, 10_000),
    target: { least: 10 },
  })
  yield await compare({
    row: 'sched/await-yield',
    against: 'await',
    ours: () => pair.measure(200_000),
    base: () => yieldAwait(2, 100_000),
  })
  const wakeups = 100_000
  yield* beside(
    'wake-same-cpu',
    wakeups,
    () => pingPongOurs(rig, wakeups / 2),
    () => pingPongAwait(wakeups / 2),
    () => pingPongEffect(wakeups / 2),
  )
  const cross = await bootCross()
  yield await compare({
    row: 'sched/wake-cross-cpu',
    against: 'a bare wait/notify pair',
    ours: () => cross.wake(2000),
    base: () => cross.bare(2000),
  })
  await cross.close()
  yield* beside(
    'chained-spawn-1000',
    1000,
    () => chainedOurs(rig, 1000),
    () => chainedAwait(1000),
    () => chainedEffect(1000),
  )
  yield* beside(
    'ping-pong-1000',
    1000,
    () => pingPongOurs(rig, 1000),
    () => pingPongAwait(1000),
    () => pingPongEffect(1000),
  )
  yield* beside(
    'spawn-10000',
    10_000,
    () => spawnOurs(rig, 10_000),
    () => spawnAwait(10_000),
    () => spawnEffect(10_000),
  )
  // As in Tokio's benchmark, the start and end of the 200 tasks are included.
  yield await compare({
    row: 'sched/yield-200x1000',
    against: 'await',
    ours: () => yieldMany(rig, 200, 1000),
    base: () => yieldAwait(200, 1000),
  })
  yield await compare({
    row: 'sched/yield-200x1000-effect',
    against: "Effect's fibers",
    ours: () => yieldMany(rig, 200, 1000),
    base: () => yieldEffect(200, 1000),
  })
  yield* beside(
    'hackbench-10x40',
    GROUPS * PAIRS * PAIRS * MESSAGES,
    () => hackbenchOurs(rig),
    hackbenchAwait,
    hackbenchEffect,
  )
}
