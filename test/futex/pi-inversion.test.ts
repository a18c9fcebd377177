import { expect, test } from 'vitest'
import { type MutexKind, PI, PLAIN, ROBUST, ROBUST_PI } from '../../src/futex/robust/mutex.ts'
import { makePriority } from '../../src/sched/core/priority.ts'
import { setPriority } from '../../src/sched/core/setpriority.ts'
import { SWITCH_PREEMPTED } from '../../src/sched/core/switch.ts'
import { UNINTERRUPTIBLE } from '../../src/sched/core/taskrecord.ts'
import { type LockingTask, LockSimulation } from './pi-sim.ts'
import { schedulerSleep } from '../../testing/sched/tasks.ts'

const HIGH: number = makePriority(10, 0)
const MIDDLE: number = makePriority(20, 0)
const LOW: number = makePriority(30, 0)
const CRITICAL_MS = 5
const HOG_MS = 100

/** Runs for this many milliseconds, with a safepoint after each tenth of one. */
function* work({ context }: LockingTask, ms: number): Generator<number, void, unknown> {
  for (let tenth = 0; tenth < ms * 10; tenth++) {
    context.cpu.charge(0.1)
    yield SWITCH_PREEMPTED
  }
}

/**
 * Low holds the lock, high waits for it, middle computes. Returns the wait of high, and how much the others
 * ran before it.
 */
function invert(kind: MutexKind, seed: number): { waited: number; hogged: number } {
  const world = new LockSimulation(kind, 1, { cpus: 1, seed })
  let hogged = 0
  let waited = -1
  let hoggedBefore = -1
  world.fork(
    function* (low) {
      expect(yield* low.lock(0)).toBe(0)
      // Both become runnable while low holds the lock.
      world.fork(
        function* (high) {
          const start = high.context.s.now()
          expect(yield* high.lock(0)).toBe(0)
          waited = high.context.s.now() - start
          hoggedBefore = hogged
          high.unlock(0)
        },
        { priority: HIGH },
        low.context.s,
      )
      world.fork(
        function* (middle) {
          for (let ms = 0; ms < HOG_MS; ms++) {
            yield* work(middle, 1)
            hogged++
          }
        },
        { priority: MIDDLE },
        low.context.s,
      )
      yield* work(low, CRITICAL_MS)
      expect(low.unlock(0)).toBe(0)
    },
    { priority: LOW },
  )
  world.sim.run()
  return { waited, hogged: hoggedBefore }
}

for (const seed of [1, 2, 3]) {
  test(`with inheritance high waits for low’s critical section and one switch, seed ${seed}`, () => {
    for (const kind of [PI, ROBUST_PI] as const) {
      const { waited, hogged } = invert(kind, seed)
      expect(hogged).toBe(0)
      // A switch costs a step of the simulated machine: far less than a tenth of the critical section.
      expect(waited).toBeGreaterThan(CRITICAL_MS * 0.9)
      expect(waited).toBeLessThan(CRITICAL_MS + 0.2)
    }
  })

  test(`without inheritance high waits for as long as middle runs, seed ${seed}`, () => {
    for (const kind of [PLAIN, ROBUST] as const) {
      const { waited, hogged } = invert(kind, seed)
      expect(hogged).toBe(HOG_MS)
      expect(waited).toBeGreaterThan(HOG_MS)
    }
  })
}

/**
 * Task i holds lock i and waits for lock i - 1; each task is on the next CPU. Every CPU also has a hog of a
 * better priority. When a task of the best priority waits for the last lock, all tasks of the chain must run
 * at that priority.
 */
function chain(
  depth: number,
  cpus: number,
  seed: number,
): { during: number[]; order: number[]; hogged: number } {
  const world = new LockSimulation(PI, depth + 1, { cpus, seed, tasks: 128 })
  const { sim } = world
  const order: number[] = []
  let during: number[] = []
  let hogs = 0
  let hogged = -1
  const go = { may: false }
  const links: number[] = []
  for (let at = 0; at < depth; at++) {
    links.push(
      world.fork(
        function* (task) {
          expect(yield* task.lock(at)).toBe(0)
          if (at === 0) while (!go.may) yield* schedulerSleep(task.context, 0, UNINTERRUPTIBLE, 0.5)
          else expect(yield* task.lock(at - 1)).toBe(0)
          yield* work(task, 1)
          order.push(at)
          if (at > 0) expect(task.unlock(at - 1)).toBe(0)
          expect(task.unlock(at)).toBe(0)
          expect(world.priorityOf(task.context.task)).toBe(makePriority(40, 0))
          // Runs until all priorities have been read.
          while (order.length <= depth) yield* schedulerSleep(task.context, 0, UNINTERRUPTIBLE, 1)
        },
        { priority: makePriority(40, 0), affinity: [at % cpus] },
      ),
    )
    sim.run({ until: sim.machine.now() + 0.2 })
  }
  for (let cpu = 0; cpu < cpus; cpu++) {
    world.fork(
      function* (hog) {
        for (let ms = 0; ms < 200; ms++) {
          yield* work(hog, 1)
          hogs++
        }
      },
      { priority: MIDDLE, affinity: [cpu] },
    )
  }
  world.fork(
    function* (high) {
      expect(yield* high.lock(depth - 1)).toBe(0)
      hogged = hogs
      order.push(depth)
      high.unlock(depth - 1)
    },
    { priority: HIGH, affinity: [depth % cpus] },
  )
  sim.run({ until: sim.machine.now() + 0.1 })
  during = links.map(task => world.priorityOf(task))
  go.may = true
  sim.runChecked(400_000, 500)
  return { during, order, hogged }
}

for (const cpus of [1, 2, 4]) {
  test(`chains of 2 to 20 across ${cpus} CPUs: all its tasks run at the priority of the waiter at its end`, () => {
    for (let depth = 2; depth <= 20; depth++) {
      const { during, order, hogged } = chain(depth, cpus, depth)
      expect(during, `depth ${depth}`).toEqual(Array.from({ length: depth }, () => HIGH))
      expect(order, `depth ${depth}`).toEqual(Array.from({ length: depth + 1 }, (_, at) => at))
      // The hogs ran on the other CPUs, and on a CPU of the chain only after it: less than the chain took, on
      // each.
      expect(hogged, `depth ${depth}`).toBeLessThan(cpus * (depth + 4) * 2)
    }
  })
}

test('an inherited priority ends with its cause: unlock, timeout, a lower priority of the waiter', () => {
  const world = new LockSimulation(PI, 2, { cpus: 2, seed: 7 })
  const { sim } = world
  const state = { released: false }
  const owner = world.fork(
    function* (task) {
      yield* task.lock(0)
      while (!state.released) yield* schedulerSleep(task.context, 0, UNINTERRUPTIBLE, 1)
      task.unlock(0)
      while (state.released) yield* schedulerSleep(task.context, 0, UNINTERRUPTIBLE, 1)
    },
    { priority: LOW },
  )
  sim.run({ until: sim.machine.now() + 1 })
  world.fork(
    function* (task) {
      expect(yield* task.lock(0, 10)).toBe(-110)
    },
    { priority: HIGH },
  )
  sim.run({ until: sim.machine.now() + 1 })
  expect(world.priorityOf(owner)).toBe(HIGH)
  sim.run({ until: sim.machine.now() + 15 })
  expect(world.priorityOf(owner)).toBe(LOW)
  const waiter = world.fork(
    function* (task) {
      expect(yield* task.lock(0)).toBe(0)
      task.unlock(0)
    },
    { priority: MIDDLE },
  )
  sim.run({ until: sim.machine.now() + 1 })
  expect(world.priorityOf(owner)).toBe(MIDDLE)
  setPriority(sim.s, waiter, HIGH)
  expect(world.priorityOf(owner)).toBe(HIGH)
  setPriority(sim.s, owner, makePriority(5, 0))
  expect(world.priorityOf(owner)).toBe(makePriority(5, 0))
  setPriority(sim.s, owner, LOW)
  expect(world.priorityOf(owner)).toBe(HIGH)
  setPriority(sim.s, waiter, makePriority(50, 0))
  expect(world.priorityOf(owner)).toBe(LOW)
  setPriority(sim.s, waiter, MIDDLE)
  state.released = true
  sim.run({ until: sim.machine.now() + 5 })
  expect(world.priorityOf(owner)).toBe(LOW)
  state.released = false
  sim.run()
})
