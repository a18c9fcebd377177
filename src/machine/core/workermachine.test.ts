import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { CPU_OFFLINE, CPU_ONLINE, CpuRecord, cpuRecord, MachineRecord, reserveMachine } from './cpurecord.ts'
import { type RunningCpu, WorkerMachine } from './workermachine.ts'

/** A machine whose threads are what the test says they are. */
class ToldMachine extends WorkerMachine<RunningCpu> {
  readonly now = (): number => 0
  private readonly ends: (() => void)[] = []

  /** The thread of a CPU is gone. */
  end(cpu: number): void {
    this.ended(cpu, 0)
    this.ends[cpu]()
  }

  setState(cpu: number, state: number): void {
    const at = cpuRecord(this.region, cpu) + CpuRecord.state
    Atomics.store(this.arena.i32, at, state)
    Atomics.notify(this.arena.i32, at)
  }

  protected launch(cpu: number): RunningCpu {
    const gone = new Promise<void>(resolve => (this.ends[cpu] = resolve))
    queueMicrotask(() => this.setState(cpu, CPU_ONLINE))
    return { worker: { terminate() {}, postMessage() {} }, gone, terminated: false }
  }

  protected async timekeeperEnd(): Promise<void> {}
}

function makeMachine(): { machine: ToldMachine; deaths: number[] } {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 2)
  const machine = new ToldMachine(Arena.create(plan), region)
  const deaths: number[] = []
  machine.onDeath(({ cpu }) => deaths.push(cpu))
  return { machine, deaths }
}

test('a start that comes before the thread of a stopped CPU is gone is refused, and is no death', async () => {
  const { machine, deaths } = makeMachine()
  await machine.start(0)
  machine.setState(0, CPU_OFFLINE)
  await expect(machine.start(0)).rejects.toThrow(
    /^start\(0\): CPU 0 is running already.*stop or recover it first$/,
  )
  machine.end(0)
  expect(deaths).toEqual([])
  await machine.start(0)
})

test('a CPU that dies while it is the one that spins lets another spin', async () => {
  const { machine, deaths } = makeMachine()
  const { i32 } = machine.arena
  const spinner = machine.region.start + MachineRecord.spinner
  await machine.start(0)
  Atomics.store(i32, spinner, cpuRecord(machine.region, 0))
  machine.end(0)
  expect(deaths).toEqual([0])
  expect(Atomics.load(i32, spinner)).toBe(0)
})
