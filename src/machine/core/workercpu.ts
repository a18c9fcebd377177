import type { Arena, Region } from '../../arena/memory/arena.ts'
import { CPU_OFFLINE, CPU_ONLINE, CpuRecord } from './cpurecord.ts'
import { haltAfterSpin, haltTurning, SPIN_MS, spinBeforeHalt } from './halt.ts'
import { Cpu, type CpuProgram, HALT, MICROTASKS, STEP } from './machine.ts'
import { SpinBudget } from './spinbudget.ts'

/**
 * A CPU on its own thread, in Node or in a browser. The entry module passes in the clock and the event-loop
 * turn.
 */
export class WorkerCpu extends Cpu {
  private readonly clock: () => number

  constructor(arena: Arena, region: Region, id: number, clock: () => number) {
    super(arena, region, id, false)
    this.clock = clock
  }

  override now(): number {
    return this.clock()
  }

  override charge(): void {}
}

/**
 * Runs a program until it returns. A halt blocks the thread, unless I/O is outstanding: then the event loop
 * runs. `turn` resolves after one turn of the event loop.
 */
export async function runCpu(
  cpu: WorkerCpu,
  program: CpuProgram,
  data: unknown,
  turn: () => Promise<void>,
): Promise<void> {
  const { i32, record } = cpu
  const now = (): number => cpu.now()
  const budget = new SpinBudget(SPIN_MS)
  cpu.setActive(true)
  Atomics.store(i32, record + CpuRecord.state, CPU_ONLINE)
  Atomics.notify(i32, record + CpuRecord.state)
  const running = program(cpu, data)
  for (;;) {
    const { done, value } = running.next()
    if (done) break
    if (value === STEP) continue
    if (value === HALT && cpu.outstanding === 0 && !cpu.mailPending) {
      if (spinBeforeHalt(i32, cpu.region, record, timeLeft(cpu), now, budget)) continue
      if (cpu.turnsFirst) await turnFirst(cpu, turn)
      haltAfterSpin(i32, record, timeLeft(cpu), now, budget)
      continue
    }
    Atomics.store(i32, record + CpuRecord.turning, 1)
    if (value === MICROTASKS) await microtasks()
    else if (value === HALT && cpu.outstanding > 0) await haltTurning(i32, record, timeLeft(cpu))
    else await turn()
    Atomics.store(i32, record + CpuRecord.turning, 0)
  }
  cpu.setActive(false)
  cpu.disarmTick()
  Atomics.store(i32, record + CpuRecord.state, CPU_OFFLINE)
}

/** The turn that reports promises which ended tasks have left rejected. */
async function turnFirst(cpu: WorkerCpu, turn: () => Promise<void>): Promise<void> {
  cpu.turnsFirst = false
  Atomics.store(cpu.i32, cpu.record + CpuRecord.turning, 1)
  await turn()
  Atomics.store(cpu.i32, cpu.record + CpuRecord.turning, 0)
}

function timeLeft(cpu: WorkerCpu): number {
  return Math.max(0, cpu.haltUntil - cpu.now())
}

/**
 * An `await` of a settled promise resumes after one microtask; through a promise that it was resolved with,
 * after three.
 */
const HOPS = 4

async function microtasks(): Promise<void> {
  for (let hop = 0; hop < HOPS; hop++) await undefined
}
