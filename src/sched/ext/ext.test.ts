import { expect, test } from 'vitest'
import { setAffinity } from '../balance/affinity.ts'
import { dumpExt, ejectReport } from './eject.ts'
import { Entity } from '../core/entity.ts'
import { stateOf } from './ext.ts'
import { ACTIVE, HELD, NONE } from './extlayout.ts'
import { allowTask, disallowTask, hasPolicy, loadPolicy, unloadPolicy } from './extload.ts'
import {
  checkPolicy,
  ENQUEUE_CAME,
  ENQUEUE_NEW,
  ENQUEUE_SLICE_ENDED,
  ENQUEUE_YIELDED,
  type Policy,
} from './policy.ts'
import type { PolicyContext } from './policycontext.ts'
import fifo from './policies/fifo.ts'
import { EXT_MAJOR_PRIORITY, FAIR_PRIORITY, makePriority } from '../core/priority.ts'
import { setPriority } from '../core/setpriority.ts'
import { Simulation, type TaskBody } from '../../../testing/sched/simulation.ts'
import { schedulerContinue, schedulerStop } from '../core/stop.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from '../core/switch.ts'
import { INTERRUPTIBLE, TaskRecord } from '../core/taskrecord.ts'
import { wakeupTask } from '../core/wakeup.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

/** Works for `turns` stretches of `ms`. */
function work(turns: number, ms = 0.5, done: () => void = () => {}): TaskBody {
  return function* (context) {
    for (let turn = 0; turn < turns; turn++) {
      context.cpu.charge(ms)
      yield SWITCH_PREEMPTED
    }
    done()
  }
}

function levelOf(sim: Simulation, task: number): number {
  return sim.s.i32[sim.s.i32[task + TaskRecord.entity] + Entity.priority] >> 2
}

test('tasks of the policy run in the order in which the global queue has them', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  sim.load(fifo)
  const order: string[] = []
  for (const name of ['a', 'b', 'c'])
    sim.fork(
      work(3, 0.5, () => order.push(name)),
      { name },
    )
  expect(sim.run()).toBe('idle')
  expect(order).toEqual(['a', 'b', 'c'])
})

test('a queue by virtual time gives the least first, and equals in the order of arrival', () => {
  const sim = new Simulation({ cpus: 1, seed: 1, start: false })
  const vtimes: Record<string, number> = { a: 5, b: 1, c: 3, d: 1 }
  sim.load({
    name: 'by name',
    enqueue: (context, task) =>
      void context.dispatchVtime(task, context.queue(3, 'vtime'), vtimes[context.name(task)]),
    dispatch: context => void context.consume(context.queue(3, 'vtime')),
  })
  const order: string[] = []
  for (const name of Object.keys(vtimes))
    sim.fork(
      work(1, 0.5, () => order.push(name)),
      { name },
    )
  sim.machine.startAll()
  expect(sim.run()).toBe('idle')
  expect(order).toEqual(['b', 'd', 'c', 'a'])
})

test('a task dispatched to the front runs before those that wait', () => {
  const sim = new Simulation({ cpus: 1, seed: 1, start: false })
  sim.load({
    name: 'stack',
    enqueue: (context, task) => void context.dispatch(task, context.global, 0, true),
  })
  const order: string[] = []
  for (const name of ['a', 'b', 'c'])
    sim.fork(
      work(1, 0.5, () => order.push(name)),
      { name },
    )
  sim.machine.startAll()
  sim.run()
  expect(order).toEqual(['c', 'b', 'a'])
})

test('a slice lasts as long as its dispatch said, and an endless slice is never preempted', () => {
  const turns: Record<string, number[]> = { short: [], long: [], endless: [] }
  const slices: Record<string, number> = { short: 1, long: 4, endless: Infinity }
  const sim = new Simulation({ cpus: 1, seed: 1 })
  sim.load({
    name: 'slices',
    enqueue: (context, task) => void context.dispatch(task, context.global, slices[context.name(task)]),
    stopping: (context, task) => void turns[context.name(task)].push(context.ran(task)),
  })
  sim.fork(work(120, 0.1), { name: 'short' })
  sim.fork(work(120, 0.1), { name: 'long' })
  sim.fork(work(120, 0.1), { name: 'endless' })
  expect(sim.run()).toBe('idle')
  for (const ms of turns.short.slice(0, -1)) expect(ms).toBeCloseTo(1, 0)
  for (const ms of turns.long.slice(0, -1)) expect(ms).toBeCloseTo(4, 0)
  expect(turns.short.length).toBeGreaterThan(3)
  expect(turns.endless).toHaveLength(1)
  expect(turns.endless[0]).toBeCloseTo(12, 0)
})

test('direct dispatch: from selectCpu to the CPU it chose, from enqueue to any CPU that the task may use', () => {
  for (const from of ['selectCpu', 'enqueue'] as const) {
    const told: string[] = []
    const sim = new Simulation({ cpus: 3, seed: 2 })
    const ran = new Set<number>()
    sim.load({
      name: 'direct',
      selectCpu(context, task) {
        if (from === 'selectCpu') context.dispatch(task, context.local)
        return 2
      },
      enqueue(context, task, flags) {
        told.push(`${flags}`)
        context.dispatch(task, context.localOf(2))
      },
      dispatch: () => {},
    })
    sim.run()
    for (let n = 0; n < 3; n++) {
      // From a task, so that the thread that wakes is a CPU, which has the policy.
      sim.fork(function* (context) {
        sim.fork(
          function* (own) {
            ran.add(own.cpu.id)
            yield SWITCH_PREEMPTED
          },
          {},
          context.s,
        )
        yield SWITCH_PREEMPTED
      })
    }
    expect(sim.run({ steps: 5000 })).toBe('idle')
    expect([...ran]).toEqual([2])
    const direct = told.filter(flags => (Number(flags) & ENQUEUE_CAME) !== 0).length
    // Those that the test forks go through enqueue; those that a CPU forks do not, if selectCpu has
    // dispatched them.
    expect(direct).toBe(from === 'selectCpu' ? 3 : 6)
  }
})

test('a kick with preempt makes the task that runs there yield at its next safepoint', () => {
  const sim = new Simulation({ cpus: 2, seed: 1 })
  const order: string[] = []
  sim.load({
    name: 'kick',
    enqueue(context, task) {
      const urgent = context.name(task) === 'urgent'
      context.dispatch(task, context.localOf(1), Infinity, urgent)
      if (urgent) context.kick(1, true)
    },
    running: (context, task) => void order.push(context.name(task)),
  })
  sim.run()
  const hog = sim.fork(work(1000, 0.1), { name: 'hog' })
  sim.run({ steps: 200 })
  sim.fork(work(3), { name: 'urgent' })
  expect(sim.run()).toBe('idle')
  expect(order).toEqual(['hog', 'urgent', 'hog'])
  expect(sim.s.tasks.isAllocated(sim.s.i32, hog)).toBe(false)
})

test('the policy gets every event of a task, in order', () => {
  const told: string[] = []
  const names = (flags: number): string =>
    [
      [ENQUEUE_CAME, 'came'],
      [ENQUEUE_NEW, 'new'],
      [ENQUEUE_YIELDED, 'yielded'],
      [ENQUEUE_SLICE_ENDED, 'slice ended'],
    ]
      .filter(([bit]) => (flags & (bit as number)) !== 0)
      .map(([, name]) => name)
      .join(' ')
  const sim = new Simulation({ cpus: 1, seed: 1 })
  sim.load({
    name: 'diary',
    slice: 2,
    enable: context => void told.push(`enable on ${context.cpu}`),
    enqueue(context, task, flags) {
      told.push(`enqueue: ${names(flags)}`)
      context.dispatch(task, context.global)
    },
    dispatch: context => void context.consume(context.global),
    running: () => void told.push('running'),
    stopping: (_context, _task, runnable) => void told.push(`stopping, ${runnable ? 'runnable' : 'not'}`),
    exit: (_context, report) => void told.push(`exit: ${report.reason}`),
  })
  const task = sim.fork(function* (context) {
    context.cpu.charge(0.5)
    yield SWITCH_YIELDS
    context.cpu.charge(5)
    yield SWITCH_PREEMPTED
    yield* schedulerSleep(context, 0, INTERRUPTIBLE)
  })
  sim.fork(work(4, 1))
  sim.run()
  wakeupTask(sim.s, task)
  sim.run()
  unloadPolicy(sim.s)
  sim.run()
  expect(told.slice(0, 4)).toEqual(['enable on 0', 'enqueue: came new', 'enqueue: came new', 'running'])
  expect(told).toContain('enqueue: yielded')
  expect(told).toContain('enqueue: slice ended')
  expect(told).toContain('enqueue: came')
  expect(told.at(-1)).toBe('exit: unloaded')
  expect(told.filter(line => line === 'running').length).toBe(
    told.filter(line => line.startsWith('stopping')).length,
  )
  expect(told.filter(line => line === 'stopping, not')).toHaveLength(3)
})

test('a task that the policy holds, or has queued, and that is stopped or moves to another class is dequeued', () => {
  for (const keeps of [true, false]) {
    const dequeued: number[] = []
    const sim = new Simulation({ cpus: 2, seed: 1 })
    sim.load({
      name: 'keeper',
      enqueue(context, task) {
        if (!keeps || context.name(task) !== 'kept') context.dispatch(task, context.queue(keeps ? 0 : 1))
      },
      dispatch: context => void context.consume(context.queue(0)),
      dequeue: (_context, task) => void dequeued.push(task),
    })
    const kept = sim.fork(work(5), { name: 'kept' })
    const other = sim.fork(work(5), { name: 'kept' })
    sim.run({ steps: 2000 })
    expect(sim.s.i32[kept + TaskRecord.stopped]).toBe(0)
    if (keeps) expect(stateOf(sim.s, sim.s.i32[kept + TaskRecord.entity])).toBe(HELD)
    schedulerStop(sim.s, kept)
    setPriority(sim.s, other, makePriority(9, 0))
    sim.run({ steps: 2000 })
    expect(dequeued.sort()).toEqual([kept, other].sort())
    disallowTask(sim.s, kept)
    schedulerContinue(sim.s, kept)
    expect(sim.run({ steps: 5000 })).toBe('idle')
    expect(sim.s.tasks.isAllocated(sim.s.i32, kept)).toBe(false)
    expect(sim.s.tasks.isAllocated(sim.s.i32, other)).toBe(false)
  }
})

test('a queued task whose affinity changes is placed again, and runs where it may', () => {
  const ran: number[] = []
  const sim = new Simulation({ cpus: 3, seed: 1 })
  sim.load({
    name: 'one queue a CPU',
    selectCpu: () => 1,
    enqueue: (context, task) => void context.dispatch(task, context.queue(context.cpusOf(task)[0])),
    dispatch: (context, cpu) => void context.consume(context.queue(cpu)),
  })
  sim.run()
  sim.fork(work(40, 0.5), { affinity: [1] })
  sim.run({ steps: 30 })
  const task = sim.fork(
    function* (context) {
      ran.push(context.cpu.id)
      yield SWITCH_PREEMPTED
    },
    { affinity: [1] },
  )
  sim.run({ steps: 10 })
  setAffinity(sim.s, task, 0b100, 0)
  expect(sim.run()).toBe('idle')
  expect(ran).toEqual([2])
})

test('only the tasks that are named are the policy’s, and they yield to ordinary ones', () => {
  const seen = new Set<string>()
  const sim = new Simulation({ cpus: 1, seed: 1 })
  sim.load({ ...fifo, running: (context, task) => void seen.add(context.name(task)) }, false)
  const order: string[] = []
  const listed = sim.fork(
    work(5, 1, () => order.push('listed')),
    { name: 'listed' },
  )
  expect(allowTask(sim.s, listed)).toBe(true)
  sim.fork(
    work(5, 1, () => order.push('ordinary')),
    { name: 'ordinary' },
  )
  sim.run()
  expect([...seen]).toEqual(['listed'])
  expect(order).toEqual(['ordinary', 'listed'])
})

test('a CPU that starts while a policy is loaded enables it, and one that goes forgets it', () => {
  const sim = new Simulation({ cpus: 2, seed: 1 })
  const told: string[] = []
  sim.load({
    ...fifo,
    enable: ({ cpu }) => void told.push(`enable ${cpu}`),
    exit: ({ cpu }) => void told.push(`exit ${cpu}`),
  })
  sim.run()
  void sim.machine.stop(1)
  sim.run()
  expect(hasPolicy(sim.s, 1)).toBe(false)
  for (let n = 0; n < 4; n++) sim.fork(work(20))
  sim.run({ steps: 20 })
  void sim.machine.start(1)
  expect(sim.run()).toBe('idle')
  expect(told.slice(0, 2).sort()).toEqual(['enable 0', 'enable 1'])
  expect(told.slice(2)).toEqual(['exit 1', 'enable 1'])
})

test('tasks that wait on a CPU that goes are given to the policy again, on another', () => {
  const sim = new Simulation({ cpus: 2, seed: 4 })
  let done = 0
  sim.load({
    name: 'one queue a CPU',
    enqueue: (context, task) => void context.dispatch(task, context.queue(context.cpuOf(task))),
    dispatch: (context, cpu) => void context.consume(context.queue(cpu)),
  })
  for (let n = 0; n < 12; n++) sim.fork(work(10, 1, () => done++))
  sim.run({ steps: 100 })
  void sim.machine.stop(1)
  expect(sim.run()).toBe('idle')
  expect(done).toBe(12)
})

test('one policy at a time; after it is unloaded, another can be loaded', () => {
  const sim = new Simulation({ cpus: 2, seed: 1 })
  expect(sim.s.ext.state()).toBe(NONE)
  sim.load(fifo)
  expect(() => loadPolicy(sim.s, { name: 'second' })).toThrow(/a policy is loaded already \(active\)/)
  const task = sim.fork(work(100))
  expect(levelOf(sim, task)).toBe(EXT_MAJOR_PRIORITY)
  sim.run({ steps: 50 })
  expect(unloadPolicy(sim.s)).toBe(true)
  expect(unloadPolicy(sim.s)).toBe(false)
  expect(sim.s.i32[sim.s.i32[task + TaskRecord.entity] + Entity.priority]).toBe(FAIR_PRIORITY)
  sim.run({ steps: 50 })
  expect(sim.s.ext.state()).toBe(NONE)
  sim.load({ ...fifo, name: 'second' })
  expect(sim.s.ext.state()).toBe(ACTIVE)
  expect(sim.run()).toBe('idle')
  expect(ejectReport(sim.s)).toMatchObject({ policy: 'second' })
})

test('what CPUs share is zeroed for each policy, and what a policy keeps of a task for each task', () => {
  const sim = new Simulation({ cpus: 2, seed: 1 })
  const seen: number[] = []
  const counts: Policy = {
    name: 'counts',
    enqueue(context, task, flags) {
      if ((flags & ENQUEUE_NEW) !== 0) seen.push(context.taskWords[context.taskAt(task)])
      context.taskWords[context.taskAt(task)] += 7
      Atomics.add(context.words, 0, 1)
      context.dispatch(task, context.global)
    },
    exit: context => void seen.push(Math.sign(context.words[0])),
  }
  for (let load = 0; load < 2; load++) {
    sim.load(counts)
    sim.fork(work(30))
    sim.run()
    unloadPolicy(sim.s)
    sim.run()
  }
  expect(seen).toEqual([0, 1, 1, 0, 1, 1])
  sim.load({
    ...counts,
    enable: context => void seen.push(100 + context.words[0]),
  })
  sim.run()
  expect(seen.slice(-2)).toEqual([100, 100])
})

test('a dump names every CPU, every queue with tasks and every task of the policy', () => {
  const sim = new Simulation({ cpus: 2, seed: 1 })
  sim.load({
    name: 'hoarder',
    enqueue: (context, task) => void context.dispatch(task, context.queue(2)),
    dispatch() {},
  })
  sim.fork(work(1), { name: 'first' })
  sim.fork(work(1), { name: 'second' })
  sim.run({ steps: 500 })
  const dump = dumpExt(sim.s)
  expect(dump).toMatch(/^cpu 0: idle, \d queued\ncpu 1: idle, \d queued\nqueue 3: 2 tasks\n/)
  expect(dump).toMatch(/'first' \(\d+\): running, queued on queue 3, cpu \d, 0 turns, waits since/)
  expect(dump).toMatch(/'second'/)
})

test('a module that is no policy is refused with a reason', () => {
  const enqueue = (_context: PolicyContext): void => {}
  expect(() => checkPolicy(5)).toThrow(/a policy or a function that makes one, not 5/)
  expect(() => checkPolicy({ enqueue })).toThrow(/has a `name`/)
  expect(() => checkPolicy({ name: 'x' })).toThrow(/policy 'x': it has no `enqueue/)
  expect(() => checkPolicy({ name: 'x', enqueue, tick: 4 })).toThrow(/`tick` is not a function/)
  expect(() => checkPolicy({ name: 'x', enqueue, slice: -1 })).toThrow(/`slice` is -1/)
  expect(checkPolicy(() => ({ name: 'x', enqueue })).name).toBe('x')
})
