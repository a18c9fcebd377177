import { expect, onTestFinished, test } from 'vitest'
import { Arena, ArenaPlan } from '../../src/arena/memory/arena.ts'
import { CPU_DEAD, CpuRecord, cpuRecord, reserveMachine } from '../../src/machine/core/cpurecord.ts'
import type { CpuDeath } from '../../src/machine/core/machine.ts'
import { NodeMachine, type NodeMachineOptions } from '../../src/machine/node/nodemachine.ts'
import { timekeeperWakeups } from '../../src/machine/timekeeper/timekeeper.ts'
import * as asks from './program.ts'

interface Bench {
  machine: NodeMachine
  i32: Int32Array
  deaths: CpuDeath[]
  ask(cpu: number, what: number): void
  /** Resolves when the word differs from `value`. */
  changed(word: number, value: number): Promise<number>
  looks(cpu: number): number
  told(cpu: number): number
}

async function boot(cpus: number, options: Partial<NodeMachineOptions> = {}): Promise<Bench> {
  const plan = new ArenaPlan()
  const region = reserveMachine(plan, cpus)
  const data: asks.ProgramData = {
    ask: plan.reserve('ask', cpus).start,
    looks: plan.reserve('looks', cpus).start,
    told: plan.reserve('told', cpus).start,
  }
  const arena = Arena.create(plan)
  const { i32 } = arena
  const machine = new NodeMachine({
    arena,
    region,
    program: new URL('./program.ts', import.meta.url),
    data,
    ...options,
  })
  const deaths: CpuDeath[] = []
  machine.onDeath(death => deaths.push(death))
  onTestFinished(() => machine.close())
  await Promise.all(Array.from({ length: cpus }, (_, cpu) => machine.start(cpu)))
  return {
    machine,
    i32,
    deaths,
    ask(cpu, what) {
      Atomics.store(i32, data.ask + cpu, what)
      machine.kick(cpu)
    },
    async changed(word, value) {
      while (Atomics.load(i32, word) === value) {
        const waiting = Atomics.waitAsync(i32, word, value, 20)
        if (waiting.async) await waiting.value
      }
      return Atomics.load(i32, word)
    },
    looks: cpu => data.looks + cpu,
    told: cpu => data.told + cpu,
  }
}

async function deathOf({ machine, deaths }: Bench): Promise<CpuDeath> {
  while (deaths.length === 0) await new Promise(resolve => setTimeout(resolve, 1))
  expect(machine.isActive(deaths[0].cpu)).toBe(false)
  return deaths[0]
}

test('CPUs are active between start and stop, and can start again', async () => {
  const { machine } = await boot(2)
  expect([0, 1].map(cpu => machine.isActive(cpu))).toEqual([true, true])
  await machine.stop(1)
  expect([0, 1].map(cpu => machine.isActive(cpu))).toEqual([true, false])
  await machine.start(1)
  expect(machine.isActive(1)).toBe(true)
  await expect(machine.start(1)).rejects.toThrow(/start\(1\).*running already/)
})

test('a halted CPU polls again after each kick, and the kick of a running CPU needs no system call', async () => {
  const bench = await boot(1)
  const { machine, i32, looks, told } = bench
  let seen = await bench.changed(looks(0), 0)
  for (let i = 0; i < 20; i++) {
    machine.kick(0)
    seen = await bench.changed(looks(0), seen)
  }
  bench.ask(0, asks.SPIN)
  await bench.changed(told(0), 0)
  const at = cpuRecord(machine.region, 0) + CpuRecord.kicks
  const before = Atomics.load(i32, at)
  for (let i = 0; i < 1000; i++) machine.kick(0)
  expect(Atomics.load(i32, at)).toBe(before)
  Atomics.store(i32, told(0), 2)
})

test('a CPU that halts until a deadline wakes by itself', async () => {
  const bench = await boot(1)
  bench.ask(0, asks.SLEEP)
  expect(await bench.changed(bench.told(0), 0)).toBe(2)
})

test('with I/O outstanding a halt runs the event loop, and the callback wakes the CPU', async () => {
  const bench = await boot(1)
  await bench.changed(bench.looks(0), 0)
  bench.ask(0, asks.AWAIT_TIMER)
  expect(await bench.changed(bench.told(0), 0)).toBe(1)
  const looks = Atomics.load(bench.i32, bench.looks(0))
  bench.machine.kick(0)
  await bench.changed(bench.looks(0), looks)
})

test('a message to a halted CPU makes it run its event loop', async () => {
  const bench = await boot(1)
  await bench.changed(bench.looks(0), 0)
  const mail = cpuRecord(bench.machine.region, 0) + CpuRecord.mail
  bench.machine.post(0, 'hello')
  while (Atomics.load(bench.i32, mail) !== 0) await new Promise(resolve => setTimeout(resolve, 1))
  bench.machine.post(0, 'again')
  bench.ask(0, asks.TURN_MAIL)
  expect(await bench.changed(bench.told(0), 0)).toBe(3)
})

test('the death of a CPU that throws is reported with its error', async () => {
  const bench = await boot(2)
  bench.ask(1, asks.THROW)
  const death = await deathOf(bench)
  expect(death).toMatchObject({ cpu: 1, reason: 'uncaught error', error: { message: 'thrown on purpose' } })
  expect(bench.machine.isActive(0)).toBe(true)
})

test('the death of a CPU that calls process.exit is reported with its exit code', async () => {
  const bench = await boot(1)
  bench.ask(0, asks.EXIT)
  expect(await deathOf(bench)).toMatchObject({ cpu: 0, reason: 'exited', exitCode: 7 })
})

test('the death of a CPU that runs out of memory is reported as such, and the process lives', async () => {
  const bench = await boot(1, { worker: { resourceLimits: { maxOldGenerationSizeMb: 16 } } })
  bench.ask(0, asks.EXHAUST)
  expect(await deathOf(bench)).toMatchObject({ cpu: 0, reason: 'out of memory' })
})

test('a stuck CPU can be terminated, is reported as dead, and starts again after recovery', async () => {
  const bench = await boot(2)
  const { machine, i32 } = bench
  bench.ask(1, asks.SPIN)
  await bench.changed(bench.told(1), 0)
  await machine.terminate(1)
  expect(bench.deaths).toMatchObject([{ cpu: 1, reason: 'terminated' }])
  expect(Atomics.load(i32, cpuRecord(machine.region, 1) + CpuRecord.state)).toBe(CPU_DEAD)
  await expect(machine.start(1)).rejects.toThrow(/has died and was not recovered/)
  machine.recovered(1)
  await machine.start(1)
  expect(machine.isActive(1)).toBe(true)
})

test('a program that cannot be loaded is reported immediately', async () => {
  const bench = boot(1, { program: new URL('./no-such-program.ts', import.meta.url) })
  await expect(bench).rejects.toThrow(/CPU 0 died before its program ran/)
})

test('the timekeeper raises needResched when slices end, and never wakes while none is armed', async () => {
  const bench = await boot(2)
  const { machine, i32 } = bench
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(timekeeperWakeups(i32, machine.region)).toBe(0)
  bench.ask(0, asks.COUNT_TICKS)
  let ticks = 0
  while (ticks !== 5) ticks = await bench.changed(bench.told(0), ticks)
  const after = timekeeperWakeups(i32, machine.region)
  expect(after).toBeGreaterThanOrEqual(5)
  await new Promise(resolve => setTimeout(resolve, 50))
  const idle = timekeeperWakeups(i32, machine.region)
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(timekeeperWakeups(i32, machine.region)).toBe(idle)
})
