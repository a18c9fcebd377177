import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { CPU_OFFLINE, CPU_ONLINE, CpuRecord, cpuRecord, MachineRecord, reserveMachine } from './cpurecord.ts'
import { type RunningCpu, WorkerMachine } from './workermachine.ts'

/** A machine whose threads end when the test says so. */
class FakeMachine extends WorkerMachine<RunningCpu> {
  readonly now = (): number => 0
  private readonly ends: (() => void)[] = []

  /** Reports that the thread of a CPU is gone. */
  end(cpu: number): void {
    this.ended(cpu, 0)
    this.ends[cpu]()
  }

  setState(cpu: number, state: number): void {
    const at = cpuRecord(this.region, cpu) + CpuRecord.state
    Atomics.store(this.arena.i32, at, state)
    Atomics.notify(this.arena.i32, at)
  }

  protected createWorker(cpu: number): RunningCpu {
    const gone = new Promise<void>(resolve => (this.ends[cpu] = resolve))
    queueMicrotask(() => this.setState(cpu, CPU_ONLINE))
    return { worker: { terminate() {}, postMessage() {} }, gone, terminated: false }
  }

  protected async timekeeperEnd(): Promise<void> {}
}

function makeMachine(): { machine: FakeMachine; deaths: number[] } {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, 2)
  const machine = new FakeMachine(Arena.create(plan), region)
  const deaths: number[] = []
  machine.onDeath(({ cpu }) => deaths.push(cpu))
  return { machine, deaths }
}

test('a CPU cannot start before its stopped thread is gone, and the refusal is not a death', async () => {
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

test('another CPU may spin after the spinning CPU died', async () => {
  const { machine, deaths } = makeMachine()
  const { i32 } = machine.arena
  const spinner = machine.region.start + MachineRecord.spinner
  await machine.start(0)
  Atomics.store(i32, spinner, cpuRecord(machine.region, 0))
  machine.end(0)
  expect(deaths).toEqual([0])
  expect(Atomics.load(i32, spinner)).toBe(0)
})
