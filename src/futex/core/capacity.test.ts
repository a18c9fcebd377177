import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { reserveMachine } from '../../machine/core/cpurecord.ts'
import { HALT } from '../../machine/core/machine.ts'
import { WorkerCpu } from '../../machine/core/workercpu.ts'
import { cpuLoop } from '../../sched/core/cpuloop.ts'
import { exitTask } from '../../sched/core/exit.ts'
import { createTask, startTask } from '../../sched/core/fork.ts'
import { makePriority } from '../../sched/core/priority.ts'
import { planScheduler, Scheduler } from '../../sched/core/scheduler.ts'
import { SWITCH_EXITS } from '../../sched/core/switch.ts'
import { TaskRecord } from '../../sched/core/taskrecord.ts'
import { CLOCK_MONOTONIC, FUTEX2_SIZE_U32 } from '../operations/call.ts'
import { Futexes } from './futexes.ts'
import { initializeFutexes, reserveFutexes } from './layout.ts'
import { SchedTaskWaiter } from './schedtaskwaiter.ts'

const SIZES = { waiters: 4, buckets: 4, mappings: 4, spaces: 2 }

/** One thread waits, while another stays in the middle of a call. */
function pair(): { waits: Futexes; looks: Futexes; view: Int32Array<SharedArrayBuffer> } {
  const plan = new ArenaPlan()
  const layout = reserveFutexes(plan, SIZES)
  const arena = Arena.create(plan, { debug: true })
  initializeFutexes(arena, layout)
  const now = (): number => performance.now()
  const waits = new Futexes(new KernelThread(arena, 64), layout, { now })
  const looks = new Futexes(new KernelThread(arena, 65), reserveFutexes(new ArenaPlan(), SIZES), { now })
  const view = new Int32Array(new SharedArrayBuffer(256))
  waits.map(view.buffer)
  return { waits, looks, view }
}

test('futexes that only wait to be freed make room for the next one', () => {
  const { waits, looks, view } = pair()
  const { layout, i32 } = waits.context
  looks.context.enter()
  for (let at = 0; at < SIZES.waiters; at++)
    expect(waits.waitSync(waits.word(view, at), 0, { timeout: 0 })).toBe('timed-out')
  expect(layout.futexes.count(i32)).toBe(SIZES.waiters)
  looks.context.leave()
  expect(waits.waitSync(waits.word(view, 9), 0, { timeout: 0 })).toBe('timed-out')
})

test('a requeue waits for a slot, too', () => {
  const { waits, looks, view } = pair()
  const { layout, i32 } = waits.context
  const waiting = waits.waitAsync(waits.word(view, 0), 0)
  looks.context.enter()
  for (let at = 1; at < SIZES.waiters; at++)
    expect(waits.waitSync(waits.word(view, at), 0, { timeout: 0 })).toBe('timed-out')
  expect(layout.futexes.count(i32)).toBe(SIZES.waiters)
  looks.context.leave()
  expect(waits.requeue(waits.word(view, 0), waits.word(view, 9), { wake: 0 })).toBe(1)
  expect(waits.wake(waits.word(view, 9))).toBe(1)
  return expect(waiting).resolves.toBe('ok')
})

test('if no futex waits to be freed, the call fails immediately', () => {
  const { waits, view } = pair()
  const { layout, thread } = waits.context
  for (let at = 0; at < SIZES.waiters; at++) layout.futexes.allocate(thread)
  expect(() => waits.waitSync(waits.word(view, 0), 0, { timeout: 0 })).toThrow(/futexes is full/)
})

test('a wait at more words than there are slots leaves no waiter at the first of them', () => {
  const { waits, view } = pair()
  const { layout, i32 } = waits.context
  const entries = Array.from({ length: SIZES.waiters + 1 }, (_, index) => ({
    uaddr: { view, index },
    val: 0,
    flags: FUTEX2_SIZE_U32,
  }))
  expect(() => waits.waitvSync(entries, 0, null, CLOCK_MONOTONIC)).toThrow(/waiters is full/)
  expect(layout.waiters.count(i32)).toBe(0)
  expect(waits.wake(waits.word(view, 0), 1, { shared: true })).toBe(0)
})

test.each([4, 64])(
  'tasks that wake each other on a CPU that is never idle need at most %i slots',
  waiters => {
    const rounds = 2000
    const plan = new ArenaPlan()
    const region = reserveMachine(plan, 1)
    const schedulerPlan = planScheduler(plan, { cpus: 1, tasks: 8 })
    const layout = reserveFutexes(plan, { ...SIZES, waiters }, schedulerPlan.rcu)
    const arena = Arena.create(plan, { debug: true })
    const cpu = new WorkerCpu(arena, region, 0, () => performance.now())
    const s = Scheduler.forCpu(schedulerPlan, cpu)
    s.initialize()
    initializeFutexes(arena, layout)
    const fx = new Futexes(s.thread, layout, { now: s.now, scheduler: s })
    const view = new Int32Array(new SharedArrayBuffer(256))
    fx.map(view.buffer)
    const players: Generator<number, void, unknown>[] = []
    function* player(task: number, self: number): Generator<number, void, unknown> {
      const parking = new SchedTaskWaiter({ s, task }, () => fx.context)
      for (let round = 0; round < rounds; round++) {
        fx.wake(fx.word(view, 1 - self), 1)
        yield* fx.wait(parking, fx.word(view, self), 0)
      }
      fx.wake(fx.word(view, 1 - self), 1)
    }
    let ended = 0
    const loop = cpuLoop(cpu, s, task => {
      const { done, value } = players[s.i32[task + TaskRecord.slot]].next()
      if (!done) return value
      ended++
      exitTask(s, task, 0)
      return SWITCH_EXITS
    })
    for (const self of [0, 1]) {
      const task = createTask(s, { priority: makePriority(8, 0), affinity: [0] })
      players[s.i32[task + TaskRecord.slot]] = player(task, self)
      startTask(s, task)
    }
    for (let halts = 0; halts < 10; ) if (loop.next().value === HALT) halts++
    expect(ended).toBe(2)
    expect(layout.futexes.count(s.i32)).toBe(0)
  },
)
