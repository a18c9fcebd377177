import { expect, test } from 'vitest'
import { type EjectReason, ejectReport } from './eject.ts'
import { Entity } from '../core/entity.ts'
import { NONE } from './extlayout.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { type Policy, type PolicySource } from './policy.ts'
import fifo from './policies/fifo.ts'
import { FAIR_PRIORITY, makePriority } from '../core/priority.ts'
import { Simulation, type TaskBody } from '../../../testing/sched/simulation.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from '../core/switch.ts'
import { TaskRecord, UNINTERRUPTIBLE } from '../core/taskrecord.ts'
import { Watchdog } from '../core/watchdog.ts'
import { schedulerSleep } from '../../../testing/sched/tasks.ts'

/** Works, yields and sleeps, so that every operation of a policy is called. */
function mixed(done: () => void): TaskBody {
  return function* (context) {
    for (let turn = 0; turn < 30; turn++) {
      context.cpu.charge(0.3)
      yield turn % 5 === 0 ? SWITCH_YIELDS : SWITCH_PREEMPTED
      if (turn % 7 === 0) yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 0.2)
    }
    done()
  }
}

interface Ejected {
  readonly reason: EjectReason
  readonly message: string
  readonly dump: string
  readonly exits: number
}

/** Runs a policy on 8 tasks until it is ejected, and then the tasks to their end: none may be lost. */
function ejected(source: PolicySource, watched = false, cpus = 2, name = 'victim'): Ejected {
  let exits = 0
  const sim = new Simulation({ cpus, seed: 7, slice: 2 })
  const watchdog = new Watchdog(sim.s, 50)
  const policy = typeof source === 'function' ? source() : source
  sim.load({ ...policy, exit: () => void exits++ })
  let done = 0
  for (let n = 0; n < 8; n++)
    sim.fork(
      mixed(() => done++),
      { name: n === 3 ? name : `task ${n}`, nice: n },
    )
  // Time advances, also when no task of the policy runs.
  sim.fork(
    function* (context) {
      for (let turn = 0; turn < 400; turn++) yield* schedulerSleep(context, 0, UNINTERRUPTIBLE, 1)
    },
    { priority: makePriority(9, 0) },
  )
  for (let round = 0; round < 300; round++) {
    sim.run({ steps: 40 })
    if (watched) watchdog.look()
  }
  expect(sim.run()).toBe('idle')
  expect(sim.s.ext.state()).toBe(NONE)
  expect(done).toBe(8)
  checkInvariants(sim.s)
  const { reason, message, dump } = ejectReport(sim.s)
  return { reason, message, dump, exits }
}

const operations = [
  'selectCpu',
  'enqueue',
  'dispatch',
  'running',
  'stopping',
  'tick',
  'dequeue',
  'enable',
] as const

for (const operation of operations) {
  test(`a policy whose ${operation} throws is ejected, and its tasks end in the fair class`, () => {
    let calls = 0
    const policy: Policy = {
      ...fifo,
      [operation](...args: unknown[]) {
        if (operation === 'selectCpu' || ++calls > 20 || operation === 'enable' || operation === 'dequeue') {
          throw new RangeError('a mistake in a policy')
        }
        return (fifo as unknown as Record<string, ((...of: unknown[]) => unknown) | undefined>)[operation]?.(
          ...args,
        )
      },
    }
    if (operation === 'dequeue') {
      // A queued task is stopped: the policy is notified, and throws.
      const sim = new Simulation({ cpus: 1, seed: 1 })
      sim.load({ ...policy, dispatch() {} })
      const task = sim.fork(mixed(() => {}))
      sim.run({ steps: 100 })
      sim.s.i32[task + TaskRecord.stopped] = 0
      sim.s.classes[33].dequeueTask(
        sim.s,
        sim.s.i32[sim.s.i32[task + TaskRecord.entity] + Entity.rq],
        sim.s.i32[task + TaskRecord.entity],
      )
      sim.s.classes[33].enqueueTask(
        sim.s,
        sim.s.i32[sim.s.i32[task + TaskRecord.entity] + Entity.rq],
        sim.s.i32[task + TaskRecord.entity],
      )
      expect(sim.run({ steps: 3000 })).toBe('idle')
      expect(ejectReport(sim.s)).toMatchObject({ reason: 'threw' })
      return
    }
    const { reason, message, exits } = ejected(policy)
    expect(reason).toBe('threw')
    expect(message).toMatch(/threw RangeError: a mistake in a policy/)
    expect(exits).toBe(operation === 'enable' ? 0 : 2)
  })
}

test('a policy that dispatches a task twice is ejected', () => {
  for (const second of ['global', 'local'] as const) {
    const { reason, message, dump } = ejected({
      name: 'twice',
      enqueue(context, task) {
        context.dispatch(task, context.global)
        if (context.name(task) === 'victim') context.dispatch(task, context[second])
      },
    })
    expect(reason).toBe('dispatched twice')
    expect(message).toMatch(/task 'victim' \(\d+\) was dispatched twice/)
    expect(dump).toMatch(/^cpu 0: /)
    expect(dump).toMatch(/'victim' \(\d+\): running/)
  }
})

test('a policy that dispatches to a CPU that the task may not use, or that does not exist, is ejected', () => {
  for (const cpu of [1, 2]) {
    let done = 0
    const sim = new Simulation({ cpus: 2, seed: 1 })
    sim.load({
      name: 'anywhere',
      enqueue: (context, task) => void context.dispatch(task, context.localOf(cpu)),
    })
    for (let n = 0; n < 3; n++)
      sim.fork(
        mixed(() => done++),
        { affinity: [0] },
      )
    expect(sim.run()).toBe('idle')
    expect(done).toBe(3)
    const report = ejectReport(sim.s)
    expect(report.reason).toBe('forbidden CPU')
    expect(report.message).toMatch(/may not run on CPU [12]/)
  }
})

test('a policy that loses a task is ejected by the watchdog', () => {
  const { reason, message, dump } = ejected(
    {
      name: 'loser',
      enqueue(context, task) {
        if (context.name(task) !== 'victim') context.dispatch(task, context.global)
      },
    },
    true,
  )
  expect(reason).toBe('lost a task')
  expect(message).toMatch(/task 'victim' \(\d+\) was given to the policy and put on no queue for \d/)
  expect(dump).toMatch(/'victim' \(\d+\): running, held/)
})

test('a policy that never serves a queue is ejected by the watchdog', () => {
  const { reason, message, dump } = ejected(
    {
      name: 'starver',
      enqueue(context, task) {
        context.dispatch(task, context.name(task) === 'victim' ? context.queue(1) : context.global)
      },
    },
    true,
  )
  expect(reason).toBe('starved a task')
  expect(message).toMatch(/task 'victim' \(\d+\) has waited for a CPU for \d/)
  expect(dump).toMatch(/queue 2: 1 tasks/)
})

test('a policy is not blamed for tasks that wait because others outrank them', () => {
  const sim = new Simulation({ cpus: 1, seed: 1 })
  const watchdog = new Watchdog(sim.s, 10)
  sim.load(fifo)
  sim.fork(mixed(() => {}))
  sim.fork(
    function* (context) {
      for (let turn = 0; turn < 400; turn++) {
        context.cpu.charge(0.5)
        yield SWITCH_PREEMPTED
      }
    },
    { priority: makePriority(9, 0) },
  )
  for (let round = 0; round < 50; round++) {
    sim.run({ steps: 5 })
    watchdog.look()
  }
  expect(sim.s.ext.isActive()).toBe(true)
  expect(sim.run()).toBe('idle')
  expect(sim.s.ext.isActive()).toBe(true)
})

const misuses: Record<string, Policy['enqueue']> = {
  'a number that is no task': context => void context.dispatch(17, context.global),
  'the virtual time of a number that is no task': context => void context.setVtime(17, 1),
  'the slice of a number that is no task': context => void context.setSlice(17, 1),
  'a number that is no queue': (context, task) => void context.dispatch(task, 123),
  'a queue that nobody has made': (context, task) => void context.dispatch(task, context.queue(0) + 32),
  'a slice below 0': (context, task) => void context.dispatch(task, context.global, -1),
  'a kick of a CPU that does not exist': context => context.kick(99),
}

for (const [what, enqueue] of Object.entries(misuses)) {
  test(`a policy that uses ${what} is ejected`, () => {
    const { reason } = ejected({ name: 'misuser', enqueue })
    expect(reason).toBe('misused')
  })
}

test('selectCpu may dispatch its own task to local, and nothing else', () => {
  let other = 0
  const { reason, message } = ejected({
    ...fifo,
    selectCpu(context, task) {
      if (other !== 0 && other !== task) context.dispatch(other, context.global)
      other = task
      return -1
    },
  })
  expect(reason).toBe('misused')
  expect(message).toMatch(/selectCpu can dispatch only its own task/)
})

test('a task that joins while its policy is ejected goes back to the fair class', () => {
  const sim = new Simulation({ cpus: 2, seed: 3 })
  sim.load({
    name: 'fails at the third',
    enqueue(context, task) {
      if (context.name(task) === 'third') throw new Error('no')
      context.dispatch(task, context.global)
    },
  })
  let done = 0
  const tasks = ['first', 'second', 'third', 'fourth'].map(name =>
    sim.fork(
      mixed(() => done++),
      { name },
    ),
  )
  sim.run({ steps: 400 })
  const late = sim.fork(mixed(() => done++))
  for (const task of [...tasks, late]) {
    const se = sim.s.i32[task + TaskRecord.entity]
    if (sim.s.tasks.isAllocated(sim.s.i32, task)) expect(sim.s.i32[se + Entity.priority]).toBe(FAIR_PRIORITY)
  }
  expect(sim.run()).toBe('idle')
  expect(done).toBe(5)
})
