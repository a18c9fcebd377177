import { describe, expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { reserveMachine } from '../../machine/core/cpurecord.ts'
import { type Cpu, type CpuProgram, type CpuRequest, HALT, STEP } from '../../machine/core/machine.ts'
import { SimulatedMachine } from '../../machine/simulated/simulatedmachine.ts'
import { type Coroutine, coroutineOf, needResched, PREEMPTED, SUSPENDED } from './coroutine.ts'
import { CpuRunner } from './cpurunner.ts'
import { preemptionDepth, preemptionOff, preemptionOn } from './safepoint.ts'

function simulate(cpus: number, seed: number, program: CpuProgram): SimulatedMachine {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, cpus)
  const machine = new SimulatedMachine({ arena: Arena.create(plan), region, program, seed })
  machine.startAll()
  return machine
}

function* hog(turns: number, onTurn: () => void): Generator<number, string, unknown> {
  for (let turn = 0; turn < turns; turn++) {
    onTurn()
    if (needResched()) yield PREEMPTED
  }
  return 'end'
}

/** Runs a coroutine on a simulated CPU until its word goes up, or it ends: one slice. */
function* untilResched(
  cpu: Cpu,
  runner: CpuRunner,
  coroutine: Coroutine,
): Generator<CpuRequest, boolean, void> {
  while (!runner.resume(coroutine)) {
    cpu.charge(0.01)
    yield STEP
    if (cpu.needResched) return false
  }
  return true
}

describe('what raises needResched stops the coroutine at its next safepoint:', () => {
  test('the tick', () => {
    const turns: number[] = []
    let turn = 0
    const machine = simulate(1, 7, function* (cpu) {
      const runner = new CpuRunner(cpu)
      const coroutine = coroutineOf(hog, [1000, () => turn++])
      for (let finished = false; !finished; ) {
        cpu.clearNeedResched()
        cpu.armTick(cpu.now() + 1)
        finished = yield* untilResched(cpu, runner, coroutine)
        turns.push(turn)
      }
    })
    machine.run()
    // 1 ms in steps of 0.011 ms: ninety turns a slice.
    const slices = turns.map((at, i) => at - (turns[i - 1] ?? 0))
    expect(turns.at(-1)).toBe(1000)
    for (const slice of slices.slice(0, -1)) expect(slice).toBeGreaterThanOrEqual(89)
    for (const slice of slices) expect(slice).toBeLessThanOrEqual(93)
  })

  test.each([1, 2, 3, 4, 5])('a wakeup on another CPU of a task that goes first, seed %i', seed => {
    const order: string[] = []
    const mailbox: string[] = []
    const machine = simulate(2, seed, function* (cpu) {
      const runner = new CpuRunner(cpu)
      if (cpu.id === 1) {
        for (let i = 0; i < 20; i++) {
          cpu.charge(0.01)
          yield STEP
        }
        mailbox.push('urgent')
        order.push('woken')
        cpu.preempt(0)
        return
      }
      const low = coroutineOf(hog, [10_000, () => {}])
      cpu.clearNeedResched()
      const finished = yield* untilResched(cpu, runner, low)
      expect(finished).toBe(false)
      order.push(`preempted for ${mailbox.pop()}`)
      cpu.clearNeedResched()
      expect(yield* untilResched(cpu, runner, low)).toBe(true)
      order.push(String(low.result))
    })
    machine.run()
    expect(order).toEqual(['woken', 'preempted for urgent', 'end'])
  })

  test('a stop request: the coroutine stays where it is, and continues later', () => {
    const log: string[] = []
    let turns = 0
    const machine = simulate(1, 3, function* (cpu) {
      const runner = new CpuRunner(cpu)
      const coroutine = coroutineOf(hog, [500, () => turns++])
      yield* untilResched(cpu, runner, coroutine)
      log.push(`stopped after ${turns > 0 && turns < 500 ? 'some' : 'no'} turns`)
      cpu.clearNeedResched()
      yield HALT
      log.push('continued')
      yield* untilResched(cpu, runner, coroutine)
      log.push(String(coroutine.result), String(turns))
    })
    machine.run({ steps: 50 })
    machine.cpu(0).preempt(0)
    expect(machine.run()).toBe('idle')
    machine.kick(0)
    expect(machine.run()).toBe('idle')
    expect(log).toEqual(['stopped after some turns', 'continued', 'end', '500'])
  })

  test('a kill: thrown into the coroutine where it is, so that it releases what it holds', () => {
    const log: string[] = []
    const machine = simulate(1, 3, function* (cpu) {
      const runner = new CpuRunner(cpu)
      const coroutine = coroutineOf(function* (): Generator<number, void, unknown> {
        try {
          yield* hog(1e6, () => {})
        } finally {
          log.push('let go')
        }
      }, [])
      cpu.armTick(cpu.now() + 1)
      yield* untilResched(cpu, runner, coroutine)
      expect(runner.raise(coroutine, new Error('killed'))).toBe(true)
      log.push(String(coroutine.result))
    })
    machine.run()
    expect(log).toEqual(['let go', 'Error: killed'])
  })
})

test('how deep preemption is off belongs to the coroutine, not to the CPU', () => {
  const depths: number[] = []
  const machine = simulate(1, 1, function* (cpu) {
    const runner = new CpuRunner(cpu)
    const masked = coroutineOf(function* (): Generator<number, void, unknown> {
      preemptionOff()
      yield SUSPENDED
      depths.push(preemptionDepth())
      preemptionOn()
    }, [])
    const other = coroutineOf(() => void depths.push(preemptionDepth()), [])
    runner.resume(masked)
    runner.resume(other)
    yield STEP
    runner.resume(masked)
    depths.push(preemptionDepth())
  })
  machine.run()
  expect(depths).toEqual([0, 1, 0])
})
