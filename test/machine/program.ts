import { type Cpu, type CpuRequest, HALT, TURN } from '../../src/machine/core/machine.ts'

/** Words that the test and its CPUs share; `ask` is the request to CPU 0, and CPUs count their actions. */
export interface ProgramData {
  readonly ask: number
  readonly looks: number
  readonly told: number
}

export const WAIT = 0
export const THROW = 1
export const EXIT = 2
export const EXHAUST = 3
export const AWAIT_TIMER = 4
export const SPIN = 5
export const SLEEP = 6
export const COUNT_TICKS = 7
export const TURN_MAIL = 8

export default function* program(cpu: Cpu, data: unknown): Generator<CpuRequest, void, void> {
  const { ask, looks, told } = data as ProgramData
  const { i32 } = cpu
  while (!cpu.stopRequested) {
    Atomics.add(i32, looks + cpu.id, 1)
    Atomics.notify(i32, looks + cpu.id)
    const asked = Atomics.exchange(i32, ask + cpu.id, WAIT)
    if (asked === THROW) throw new RangeError('thrown on purpose')
    if (asked === EXIT) process.exit(7)
    if (asked === EXHAUST) exhaust()
    if (asked === AWAIT_TIMER) {
      cpu.outstanding++
      setTimeout(() => {
        cpu.outstanding--
        Atomics.store(i32, told + cpu.id, 1)
        cpu.kick(cpu.id)
      }, 5)
    }
    if (asked === SPIN) {
      Atomics.store(i32, told + cpu.id, 1)
      Atomics.notify(i32, told + cpu.id)
      while (Atomics.load(i32, told + cpu.id) === 1);
    }
    if (asked === SLEEP) {
      cpu.haltUntil = cpu.now() + 5
      while (cpu.now() < cpu.haltUntil) yield HALT
      Atomics.store(i32, told + cpu.id, 2)
      cpu.haltUntil = Infinity
    }
    if (asked === COUNT_TICKS) {
      for (let tick = 1; tick <= 5; tick++) {
        cpu.armTick(cpu.now() + 2)
        while (!cpu.needResched);
        cpu.clearNeedResched()
        Atomics.store(i32, told + cpu.id, tick)
      }
    }
    if (asked === TURN_MAIL) {
      while (cpu.mailPending) yield TURN
      Atomics.store(i32, told + cpu.id, 3)
    }
    Atomics.notify(i32, told + cpu.id)
    yield HALT
  }
}

function exhaust(): never {
  const hoard: unknown[] = []
  for (;;) hoard.push(new Array(1e5).fill(hoard.length))
}
