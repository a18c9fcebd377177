import { expect, test } from 'vitest'
import { EOWNERDEAD } from '../futex/core/errno.ts'
import { exitTaskOwner } from '../futex/recovery/exit.ts'
import { wakeOrphans } from '../futex/recovery/recover.ts'
import { ROBUST } from '../futex/robust/mutex.ts'
import { SeededRandom } from '../machine/simulated/random.ts'
import { bindTask, setAffinity } from '../sched/balance/affinity.ts'
import { ejectReport } from '../sched/ext/eject.ts'
import { unloadPolicy } from '../sched/ext/extload.ts'
import { endLost } from '../sched/recovery/lost.ts'
import { recoverScheduler } from '../sched/recovery/recovery.ts'
import { schedulerContinue, schedulerStop } from '../sched/core/stop.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from '../sched/core/switch.ts'
import { UNINTERRUPTIBLE } from '../sched/core/taskrecord.ts'
import { Watchdog } from '../sched/core/watchdog.ts'
import { Handoff } from './handoff.ts'
import { BUCKET_WORDS, INACTIVE, LockEntry, WaiterSlot } from './layout.ts'
import { LockSim, type LockSimOptions, type LockTask } from '../../testing/handoff/fixtures/locksim.ts'
import handoffPolicy from './policy.ts'
import { schedulerSleep } from '../../testing/sched/tasks.ts'

interface Tally {
  inside: number
  sum: number
  worst: number
}

/** Locks, works inside, unlocks, works outside. */
function* worker(
  { context, parking, locks }: LockTask,
  tally: Tally,
  times: number,
  held: number,
  apart: number,
): Generator<number, void, unknown> {
  for (let time = 0; time < times; time++) {
    const lock = locks[time % locks.length]
    expect(yield* lock.lockTask(parking)).toBe(0)
    tally.inside++
    tally.worst = Math.max(tally.worst, tally.inside)
    const before = tally.sum
    for (let stretch = 0; stretch < 3; stretch++) {
      context.cpu.charge(held / 3)
      yield SWITCH_PREEMPTED
    }
    tally.sum = before + 1
    tally.inside--
    expect(lock.unlock(parking.owner)).toBe(0)
    context.cpu.charge(apart)
    yield time % 5 === 0 ? SWITCH_YIELDS : SWITCH_PREEMPTED
  }
}

function contend(
  options: LockSimOptions,
  tasks: number,
  times: number,
  policy: 'none' | 'loaded' | 'in and out',
): LockSim {
  const locked = new LockSim(options)
  const { sim } = locked
  const tally: Tally = { inside: 0, sum: 0, worst: 0 }
  if (policy !== 'none') sim.load(handoffPolicy)
  for (let task = 0; task < tasks; task++) locked.fork(own => worker(own, tally, times, 0.02, 0.01))
  if (policy === 'in and out') {
    for (let turn = 0; turn < 20; turn++) {
      sim.run({ steps: 100 })
      if (turn % 2 === 0) unloadPolicy(sim.s)
      else if (sim.s.ext.state() === 0) sim.load(handoffPolicy)
    }
  }
  expect(sim.run()).toBe('idle')
  expect(tally).toEqual({ inside: 0, sum: tasks * times, worst: 1 })
  return locked
}

for (const policy of ['none', 'loaded', 'in and out'] as const) {
  for (const cpus of [1, 2, 4]) {
    test(`one task at a time holds the lock, and every task gets it: ${cpus} CPUs, policy ${policy}`, () => {
      for (let seed = 1; seed <= 8; seed++) {
        const counts = contend({ cpus, seed }, 8, 40, policy).counts()
        expect(counts.contended).toBe(counts.handedOff + counts.fallbacks)
        if (policy === 'loaded' && cpus > 1) expect(counts.handedOff).toBeGreaterThan(0)
      }
    })
  }
}

test('hints that are overwritten at random, all the time, cost time and nothing else', () => {
  for (const policy of [true, false]) {
    for (let seed = 1; seed <= 12; seed++) {
      const random = new SeededRandom(seed)
      const locked = new LockSim({ cpus: 3, seed, locks: 3, sizes: { locks: 2, tids: 4 } })
      const { sim, layout } = locked
      const { i32 } = sim.s
      const tally: Tally = { inside: 0, sum: 0, worst: 0 }
      if (policy) sim.load(handoffPolicy)
      let done = 0
      for (let task = 0; task < 6; task++) {
        locked.fork(function* (own) {
          const lock = own.locks[0]
          for (let time = 0; time < 30; time++) {
            yield* lock.lockTask(own.parking)
            tally.inside++
            tally.worst = Math.max(tally.worst, tally.inside)
            own.context.cpu.charge(0.01)
            yield SWITCH_PREEMPTED
            tally.inside--
            lock.unlock(own.parking.owner)
            yield SWITCH_PREEMPTED
          }
          done++
        })
      }
      const from = layout.locks
      const to = layout.sections + (layout.tidMask + 1) * 16
      for (let round = 0; round < 400; round++) {
        for (let word = 0; word < 8; word++) {
          i32[from + random.below(to - from)] =
            random.below(3) === 0 ? random.below(5) - 1 : random.below(0x7fff_ffff)
        }
        if (sim.run({ steps: 20 }) === 'idle') break
      }
      i32.fill(0, from, to)
      expect(sim.run()).toBe('idle')
      expect(done).toBe(6)
      expect(tally.worst).toBe(1)
      if (policy) expect(sim.s.ext.isActive()).toBe(true)
    }
  }
})

/** The turns of each task by name, from a policy that also writes them down. */
function recorded(locked: LockSim): {
  turns: Map<string, number[]>
  cpus: Map<string, Set<number>>
  order: string[]
} {
  const turns = new Map<string, number[]>()
  const cpus = new Map<string, Set<number>>()
  const order: string[] = []
  locked.sim.load(() => {
    const policy = handoffPolicy()
    return {
      ...policy,
      running(context, task) {
        policy.running?.(context, task)
        const name = context.name(task)
        order.push(name)
        const seen = cpus.get(name) ?? new Set()
        cpus.set(name, seen.add(context.cpu))
      },
      stopping(context, task, runnable) {
        policy.stopping?.(context, task, runnable)
        const name = context.name(task)
        turns.set(name, [...(turns.get(name) ?? []), context.ran(task)])
      },
    }
  })
  locked.sim.run()
  return { turns, cpus, order }
}

function* busy({ context }: LockTask, ms: number): Generator<number, void, unknown> {
  for (let left = ms; left > 0; left -= 0.2) {
    context.cpu.charge(0.2)
    yield SWITCH_PREEMPTED
  }
}

test('a holder inside a critical section has a longer slice, a task outside has not', () => {
  const locked = new LockSim({ cpus: 1 })
  const { turns } = recorded(locked)
  locked.fork(
    function* (own) {
      yield* own.locks[0].lockTask(own.parking)
      yield* busy(own, 11)
      own.locks[0].unlock(own.parking.owner)
      yield* busy(own, 11)
    },
    { name: 'owner' },
  )
  locked.fork(own => busy(own, 40), { name: 'other' })
  expect(locked.sim.run()).toBe('idle')
  const [first, second] = turns.get('owner') ?? []
  expect(first).toBeGreaterThan(10.9)
  expect(first).toBeLessThan(16)
  expect(second).toBeLessThan(6)
  for (const turn of (turns.get('other') ?? []).slice(0, 2)) expect(turn).toBeLessThan(6)
})

test('a section that never ends does not keep its CPU: the extension has a bound', () => {
  const locked = new LockSim({ cpus: 1 })
  const { turns } = recorded(locked)
  const others = { done: 0 }
  locked.fork(
    function* (own) {
      yield* own.locks[0].lockTask(own.parking)
      while (others.done < 3) yield* busy(own, 1)
      own.locks[0].unlock(own.parking.owner)
    },
    { name: 'endless' },
  )
  for (let n = 0; n < 3; n++) {
    locked.fork(
      function* (own) {
        yield* busy(own, 10)
        others.done++
      },
      { name: 'other' },
    )
  }
  expect(locked.sim.run({ steps: 20_000 })).toBe('idle')
  expect(others.done).toBe(3)
  for (const turn of turns.get('endless') ?? []) expect(turn).toBeLessThan(17)
})

test('a section that only yields does not keep its CPU either', () => {
  const locked = new LockSim({ cpus: 1 })
  recorded(locked)
  const other = { done: false }
  locked.fork(function* (own) {
    yield* own.locks[0].lockTask(own.parking)
    while (!other.done) yield SWITCH_YIELDS
    own.locks[0].unlock(own.parking.owner)
  })
  locked.fork(function* (own) {
    yield* busy(own, 10)
    other.done = true
  })
  expect(locked.sim.run({ steps: 50_000 })).toBe('idle')
  expect(other.done).toBe(true)
})

test('a waiter is dispatched to the CPU of the holder, and runs before other tasks there', () => {
  const locked = new LockSim({ cpus: 2, fallbackUs: 1e6, yieldBudget: 1e6 })
  const { cpus, order } = recorded(locked)
  locked.fork(
    function* (own) {
      yield* own.locks[0].lockTask(own.parking)
      yield* busy(own, 9)
      own.locks[0].unlock(own.parking.owner)
      yield SWITCH_YIELDS
      yield* busy(own, 3)
    },
    { name: 'owner', affinity: [1] },
  )
  for (let n = 0; n < 3; n++) locked.fork(own => busy(own, 8), { name: 'other', affinity: [1] })
  locked.fork(
    function* (own) {
      yield* schedulerSleep(own.context, 0, UNINTERRUPTIBLE, 1)
      yield* own.locks[0].lockTask(own.parking)
      order.push('got it')
      own.locks[0].unlock(own.parking.owner)
    },
    { name: 'waiter', affinity: [0, 1] },
  )
  expect(locked.sim.run()).toBe('idle')
  // It is on the holder's CPU, although the other CPU was idle.
  expect([...(cpus.get('waiter') ?? [])]).toContain(1)
  const firstOwner = order.indexOf('owner')
  const got = order.indexOf('got it')
  expect(firstOwner).toBeGreaterThanOrEqual(0)
  expect(order.slice(firstOwner, got).filter(name => name === 'other').length).toBeLessThanOrEqual(3)
  expect(order[got - 1]).toBe('waiter')
})

test('an unlock does not yield to a waiter that can run only on another CPU', () => {
  const ownersTurns = (waiters: number, affinity: number[]): number => {
    const locked = new LockSim({ cpus: 2, fallbackUs: 1e6, yieldBudget: 1e6 })
    const { turns } = recorded(locked)
    const owner = { done: false }
    locked.fork(
      function* (own) {
        for (let time = 0; time < 20; time++) {
          yield* own.locks[0].lockTask(own.parking)
          yield* busy(own, 0.4)
          own.locks[0].unlock(own.parking.owner)
          yield* busy(own, 0.2)
        }
        owner.done = true
      },
      { name: 'owner', affinity: [0] },
    )
    locked.fork(own => busy(own, 30), { name: 'other', affinity: [0] })
    for (let n = 0; n < waiters; n++) {
      locked.fork(
        function* (own) {
          while (!owner.done) {
            yield* own.locks[0].lockTask(own.parking)
            own.locks[0].unlock(own.parking.owner)
            own.context.cpu.charge(0.01)
            yield SWITCH_PREEMPTED
          }
        },
        { name: 'waiter', affinity },
      )
    }
    expect(locked.sim.run()).toBe('idle')
    if (waiters > 0) expect(locked.counts().handedOff).toBeGreaterThan(3)
    return turns.get('owner')?.length ?? 0
  }
  const alone = ownersTurns(0, [])
  expect(ownersTurns(1, [1])).toBe(alone)
  expect(ownersTurns(1, [0, 1])).toBeGreaterThan(alone + 10)
})

test('a holder that is preempted inside its section does not migrate, although another CPU is idle', () => {
  for (const inside of [true, false]) {
    const locked = new LockSim({ cpus: 2, seed: 3 })
    const { cpus } = recorded(locked)
    locked.fork(
      function* (own) {
        if (inside) yield* own.locks[0].lockTask(own.parking)
        for (let turn = 0; turn < 60; turn++) {
          own.context.cpu.charge(0.5)
          // Yields its CPU again and again, and may run on any CPU.
          yield turn % 20 === 19 ? SWITCH_PREEMPTED : turn % 4 === 0 ? SWITCH_YIELDS : SWITCH_PREEMPTED
        }
        if (inside) own.locks[0].unlock(own.parking.owner)
      },
      { name: 'owner' },
    )
    for (let n = 0; n < 3; n++) {
      locked.fork(
        function* (own) {
          for (let turn = 0; turn < 40; turn++) {
            own.context.cpu.charge(0.1)
            yield* schedulerSleep(own.context, 0, UNINTERRUPTIBLE, 0.3)
          }
        },
        { name: 'others' },
      )
    }
    expect(locked.sim.run()).toBe('idle')
    const seen = cpus.get('owner')?.size ?? 0
    if (inside) expect(seen).toBe(1)
    else expect(seen).toBeGreaterThan(1)
  }
})

test('past the yield budget, or past its time, a waiter waits at the futex', () => {
  for (const [yieldBudget, fallbackUs] of [
    [3, 1e6],
    [1e6, 200],
  ]) {
    const locked = new LockSim({ cpus: 2, yieldBudget, fallbackUs })
    const { sim } = locked
    sim.load(handoffPolicy)
    sim.run()
    let yields = 0
    let waited = 0
    locked.fork(function* (own) {
      yield* own.locks[0].lockTask(own.parking)
      yield* schedulerSleep(own.context, 0, UNINTERRUPTIBLE, 5)
      own.locks[0].unlock(own.parking.owner)
    })
    locked.fork(function* (own) {
      yield* schedulerSleep(own.context, 0, UNINTERRUPTIBLE, 1)
      const begun = own.context.cpu.now()
      const lock = own.locks[0].lockTask(own.parking)
      for (let step = lock.next(); !step.done; step = lock.next()) {
        if (step.value === SWITCH_YIELDS) yields++
        else waited = own.context.cpu.now() - begun
        yield step.value
      }
      own.locks[0].unlock(own.parking.owner)
    })
    expect(sim.run()).toBe('idle')
    const counts = locked.counts()
    expect(counts).toMatchObject({ contended: 1, handedOff: 0, fallbacks: 1 })
    if (yieldBudget === 3) expect(yields).toBe(3)
    else {
      expect(yields).toBeGreaterThan(3)
      expect(waited).toBeGreaterThanOrEqual(0.2)
      expect(waited).toBeLessThan(0.5)
    }
  }
})

test('nested sections and many locks: the depth is 0 again when all are unlocked, and lost hints are counted', () => {
  const locked = new LockSim({ cpus: 2, locks: 12, sizes: { locks: 2, tids: 16 } })
  const { sim, layout } = locked
  sim.load(handoffPolicy)
  let done = 0
  for (let n = 0; n < 5; n++) {
    locked.fork(function* (own) {
      for (let time = 0; time < 20; time++) {
        // In one order, so that there is no deadlock.
        for (const lock of own.locks) yield* lock.lockTask(own.parking)
        own.context.cpu.charge(0.05)
        yield SWITCH_PREEMPTED
        for (const lock of own.locks.toReversed()) lock.unlock(own.parking.owner)
        yield SWITCH_PREEMPTED
      }
      done++
    })
  }
  expect(sim.run()).toBe('idle')
  expect(done).toBe(5)
  const counts = locked.counts()
  expect(counts.acquisitions).toBe(5 * 20 * 12)
  expect(counts.hintMisses).toBeGreaterThan(0)
  for (let slot = 0; slot <= layout.tidMask; slot++) expect(sim.s.i32[layout.sections + slot * 16]).toBe(0)
  expect(sim.s.ext.isActive()).toBe(true)
  expect(ejectReport(sim.s).message).toBe('')
})

test('a pinned task whose mask changes while it waits is not left on a queue that no CPU serves', () => {
  const locked = new LockSim({ cpus: 3 })
  const { sim } = locked
  const watchdog = new Watchdog(sim.s, 50)
  sim.load(handoffPolicy)
  sim.run()
  locked.fork(own => busy(own, 8), { affinity: [1] })
  let ran = -1
  const task = locked.fork(
    function* (own) {
      ran = own.context.cpu.id
      yield SWITCH_PREEMPTED
    },
    { affinity: [1] },
  )
  sim.run({ steps: 20 })
  setAffinity(sim.s, task, 0b100, 0)
  expect(sim.run()).toBe('idle')
  expect(ran).toBe(2)
  expect(watchdog.look()).toEqual([])
})

test('a holder that is stopped inside its section keeps the lock and no CPU; continued, it goes on', () => {
  const locked = new LockSim({ cpus: 2 })
  const { sim } = locked
  sim.load(handoffPolicy)
  sim.run()
  const order: string[] = []
  const owner = locked.fork(function* (own) {
    yield* own.locks[0].lockTask(own.parking)
    order.push('locked')
    for (let turn = 0; turn < 20; turn++) {
      own.context.cpu.charge(0.1)
      yield SWITCH_PREEMPTED
    }
    order.push('unlocks')
    own.locks[0].unlock(own.parking.owner)
  })
  locked.fork(function* (own) {
    yield* schedulerSleep(own.context, 0, UNINTERRUPTIBLE, 0.5)
    yield* own.locks[0].lockTask(own.parking)
    order.push('second has it')
    own.locks[0].unlock(own.parking.owner)
  })
  let others = 0
  for (let n = 0; n < 4; n++) {
    locked.fork(function* (own) {
      yield* busy(own, 5)
      others++
    })
  }
  sim.run({ until: 0.8 })
  schedulerStop(sim.s, owner)
  expect(sim.run()).toBe('idle')
  expect(others).toBe(4)
  expect(order).toEqual(['locked'])
  schedulerContinue(sim.s, owner)
  expect(sim.run()).toBe('idle')
  expect(order).toEqual(['locked', 'unlocks', 'second has it'])
})

test('a task that is killed while it yields leaves no hint and no claim on the lock', () => {
  const locked = new LockSim({ cpus: 2, yieldBudget: 1000, fallbackUs: 1e6 })
  const { sim, layout } = locked
  sim.load(handoffPolicy)
  sim.run()
  let tid = 0
  let got = false
  locked.fork(function* (own) {
    yield* own.locks[0].lockTask(own.parking)
    yield* busy(own, 4)
    own.locks[0].unlock(own.parking.owner)
  })
  locked.fork(function* (own) {
    yield* schedulerSleep(own.context, 0, UNINTERRUPTIBLE, 0.5)
    ;({ tid } = own.parking.owner)
    const lock = own.locks[0].lockTask(own.parking)
    yield lock.next().value as number
    expect(() => lock.throw(new Error('killed'))).toThrow('killed')
  })
  locked.fork(function* (own) {
    yield* schedulerSleep(own.context, 0, UNINTERRUPTIBLE, 1)
    yield* own.locks[0].lockTask(own.parking)
    got = true
    own.locks[0].unlock(own.parking.owner)
  })
  expect(sim.run()).toBe('idle')
  expect(got).toBe(true)
  const slot = layout.waiters + (tid & layout.tidMask) * WaiterSlot.words
  expect(sim.s.i32[slot + WaiterSlot.flags]).toBe(INACTIVE)
  const { i32 } = sim.s
  for (let bucket = 0; bucket <= layout.lockMask; bucket++)
    expect(i32[layout.locks + bucket * BUCKET_WORDS + LockEntry.waiters]).toBe(0)
})

test('when the CPU of a holder dies, its robust lock passes on, and its hints do not harm later tasks with its TID', () => {
  for (let death = 3; death < 60; death += 3) {
    const locked = new LockSim({ cpus: 3, seed: death, kind: ROBUST, sizes: { locks: 2, tids: 2 } })
    const { sim, fx, layout } = locked
    const hints = new Handoff(sim.s.arena, layout, { scheduler: sim.s })
    sim.load(handoffPolicy)
    sim.run()
    sim.machine.onDeath(({ cpu }) => {
      const lost = recoverScheduler(sim.s, cpu).map(({ task }) => task)
      for (const task of lost) {
        hints.forgetTask(task)
        exitTaskOwner(fx.context, task)
      }
      wakeOrphans(fx.context)
      endLost(sim.s, lost)
      sim.machine.recovered(cpu)
    })
    let done = 0
    let dead = 0
    const body = function* (own: LockTask): Generator<number, void, unknown> {
      // A started JavaScript task stays where it is, and is lost with its CPU.
      bindTask(own.context.s, own.context.task)
      for (let time = 0; time < 10; time++) {
        const result = yield* own.locks[0].lockTask(own.parking)
        if (result === -EOWNERDEAD) {
          dead++
          expect(own.locks[0].makeConsistent(own.parking.owner)).toBe(0)
        } else expect(result).toBe(0)
        own.context.cpu.charge(0.05)
        yield SWITCH_PREEMPTED
        expect(own.locks[0].unlock(own.parking.owner)).toBe(0)
        yield SWITCH_PREEMPTED
      }
      done++
    }
    for (let n = 0; n < 9; n++) locked.fork(body)
    sim.machine.killAt(sim.machine.steps + death, 2)
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    // Tasks of later lives, with TIDs that fall on the dead ones' slots.
    for (let n = 0; n < 6; n++) locked.fork(body)
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    expect(done).toBeGreaterThanOrEqual(9)
    expect(dead).toBeLessThanOrEqual(1)
    expect(sim.s.ext.isActive()).toBe(true)
    // A holder does not yield for ever to a waiter that died: at most once more, if another TID has its slot.
    locked.fork(function* (own) {
      yield* own.locks[0].lockTask(own.parking)
      own.locks[0].unlock(own.parking.owner)
    })
    expect(sim.run({ steps: 100_000 })).toBe('idle')
    for (let bucket = 0; bucket <= layout.lockMask; bucket++)
      expect(sim.s.i32[layout.locks + bucket * BUCKET_WORDS + LockEntry.waiters]).toBe(0)
  }
})
