import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { reserveMachine } from '../core/cpurecord.ts'
import { type Cpu, type CpuDeath, type CpuProgram, type CpuRequest, HALT, STEP } from '../core/machine.ts'
import { SeededRandom } from './random.ts'
import { SimulatedMachine, type SimulatedOptions } from './simulatedmachine.ts'

function makeMachine(
  cpus: number,
  program: CpuProgram,
  options: Partial<SimulatedOptions> = {},
): { machine: SimulatedMachine; words: number; i32: Int32Array } {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, cpus)
  const words = plan.reserve('words', 64).start
  const arena = Arena.create(plan, { debug: true })
  const machine = new SimulatedMachine({ arena, region, program, seed: 1, trace: true, ...options })
  return { machine, words, i32: arena.i32 }
}

/** CPUs pass a token around by kicks: each adds one and wakes the next. */
function relay(rounds: number, words: () => number): CpuProgram {
  return function* (cpu: Cpu): Generator<CpuRequest, void, void> {
    const { i32 } = cpu
    const at = words()
    const cpus = 3
    while (Atomics.load(i32, at) < rounds) {
      const turn = Atomics.load(i32, at)
      if (turn % cpus === cpu.id) {
        cpu.charge(0.5)
        Atomics.store(i32, at, turn + 1)
        for (let other = 0; other < cpus; other++) if (other !== cpu.id) cpu.kick(other)
        yield STEP
      } else {
        yield HALT
      }
    }
  }
}

function runRelay(seed: number): SimulatedMachine {
  let at = 0
  const { machine, words } = makeMachine(
    3,
    relay(30, () => at),
    { seed },
  )
  at = words
  machine.startAll()
  expect(machine.run({ steps: 10_000 })).toBe('idle')
  return machine
}

test('the same seed gives the same trace, byte for byte, and another seed another', () => {
  const first = runRelay(7)
  const again = runRelay(7)
  expect(first.trace.length).toBeGreaterThan(500)
  expect(again.trace).toBe(first.trace)
  expect(again.traceHash).toBe(first.traceHash)
  const traces = new Set([1, 2, 3, 4, 5].map(seed => runRelay(seed).trace))
  expect(traces.size).toBe(5)
})

test('time is virtual: work takes the time that it charges, and a sleeper wakes at its deadline', () => {
  const woke: number[] = []
  const { machine } = makeMachine(1, function* (cpu) {
    cpu.charge(3)
    yield STEP
    cpu.haltUntil = 5000
    yield HALT
    woke.push(cpu.now())
  })
  machine.startAll()
  expect(machine.run()).toBe('idle')
  expect(woke).toEqual([5000])
})

test('a CPU that was kicked never runs before the moment of the kick', () => {
  let kicked = 0
  let woke = 0
  const { machine } = makeMachine(2, function* (cpu) {
    if (cpu.id === 0) {
      cpu.charge(40)
      kicked = cpu.now()
      cpu.kick(1)
      return
    }
    yield HALT
    woke = cpu.now()
  })
  machine.startAll()
  machine.run()
  expect(woke).toBeGreaterThanOrEqual(kicked)
})

test('no kick is lost with any seed', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e6 }), seed => {
      const machine = runRelay(seed)
      expect(machine.trace).toMatch(/done/)
    }),
    { numRuns: 200 },
  )
})

test('CPUs run side by side: equal work on each ends at about the same time', () => {
  const ended: number[] = []
  const { machine } = makeMachine(4, function* (cpu) {
    for (let i = 0; i < 100; i++) {
      cpu.charge(1)
      yield STEP
    }
    ended[cpu.id] = cpu.now()
  })
  machine.startAll()
  machine.run()
  expect(Math.max(...ended) - Math.min(...ended)).toBeLessThan(1)
  expect(machine.now()).toBeLessThan(102)
})

test('the tick raises needResched when the slice has ended on the clock of its CPU', () => {
  const raised: number[] = []
  const { machine } = makeMachine(1, function* (cpu) {
    cpu.armTick(10)
    while (raised.length < 3) {
      cpu.charge(1)
      yield STEP
      if (!cpu.needResched) continue
      raised.push(Math.floor(cpu.now()))
      cpu.clearNeedResched()
      cpu.armTick(cpu.now() + 10)
    }
  })
  machine.startAll()
  machine.run({ steps: 1000 })
  expect(raised).toEqual([10, 20, 30])
})

test('a CPU killed at any step runs no more, is reported dead, and can start again', () => {
  for (let step = 0; step < 60; step++) {
    const after: string[] = []
    const deaths: CpuDeath[] = []
    const { machine } = makeMachine(
      2,
      function* (cpu) {
        for (let i = 0; i < 25; i++) {
          if (cpu.id === 1 && deaths.length > 0 && machine.steps < 1000) after.push('ran')
          yield STEP
        }
      },
      { seed: step },
    )
    machine.onDeath(death => deaths.push(death))
    machine.startAll()
    machine.killAt(step, 1)
    expect(machine.run()).toBe('idle')
    if (deaths.length === 0) continue
    expect(deaths).toMatchObject([{ cpu: 1, reason: 'terminated' }])
    expect(after).toEqual([])
    expect(() => machine.start(1)).toThrow(/was not recovered/)
    machine.recovered(1)
    void machine.start(1)
    expect(machine.isActive(1)).toBe(true)
    machine.run()
    expect(after.length).toBe(25)
  }
})

test('a stop request ends a program that polls it', () => {
  const { machine } = makeMachine(1, function* (cpu) {
    while (!cpu.stopRequested) yield HALT
  })
  machine.startAll()
  expect(machine.run()).toBe('idle')
  void machine.stop(0)
  machine.run()
  expect(machine.isActive(0)).toBe(false)
})

test('a run stops at its limits and can continue from there', () => {
  const { machine } = makeMachine(1, function* (cpu) {
    for (;;) {
      cpu.charge(1)
      yield STEP
    }
  })
  machine.startAll()
  expect(machine.run({ steps: 10 })).toBe('steps')
  expect(machine.steps).toBe(10)
  expect(machine.run({ until: 50 })).toBe('time')
  expect(machine.now()).toBeGreaterThanOrEqual(50)
})

test('bad options are refused by name', () => {
  const none = function* (): Generator<CpuRequest, void, void> {}
  for (const cpus of [0, 65, -1, Number.NaN, 1.5, '2', undefined]) {
    expect(() => reserveMachine(new ArenaPlan(), cpus as number)).toThrow(
      `cpus: ${typeof cpus === 'string' ? `'${cpus}'` : cpus} is not a number of CPUs; give an integer from 1 to 64`,
    )
  }
  expect(() => makeMachine(1, none, { seed: 0.5 })).toThrow(/seed: 0\.5/)
  expect(() => makeMachine(1, none, { skew: -1 })).toThrow(/skew: -1/)
  expect(() => makeMachine(1, none, { stepCost: Number.NaN })).toThrow(/stepCost: NaN/)
})

test('the random numbers are spread evenly and depend on the whole seed', () => {
  const random = new SeededRandom(99)
  const counts = new Array<number>(10).fill(0)
  for (let i = 0; i < 100_000; i++) counts[random.below(10)]++
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500)
  const first = [1, 2, 2 ** 32 + 1, 2 ** 40].map(seed => new SeededRandom(seed).bits())
  expect(new Set(first).size).toBe(4)
})
