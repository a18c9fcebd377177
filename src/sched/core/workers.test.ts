import { afterEach, expect, test } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { KernelThread } from '../../arena/sync/thread.ts'
import { NodeMachine } from '../../machine/node/nodemachine.ts'
import { cpuAccount } from './account.ts'
import { createTask, startTask } from './fork.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { FAIR_PRIORITY, makePriority } from './priority.ts'
import { Scheduler } from './scheduler.ts'
import { schedulerContinue } from './stop.ts'
import { Body, expectedChecksum, planStress, type StressSizes } from '../../../testing/sched/stressprogram.ts'
import { TaskRecord } from './taskrecord.ts'
import { wakeupTask } from './wakeup.ts'

const machines: NodeMachine[] = []

afterEach(async () => {
  for (const machine of machines.splice(0)) await machine.close()
})

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 120_000) throw new Error(`gave up waiting until ${what}`)
    await pause(1)
  }
}

async function boot(sizes: StressSizes): Promise<{
  machine: NodeMachine
  s: Scheduler
  plan: ReturnType<typeof planStress>
  deaths: unknown[]
}> {
  const arenaPlan = new ArenaPlan()
  const plan = planStress(arenaPlan, sizes)
  const arena = Arena.create(arenaPlan, { debug: true })
  const machine = new NodeMachine({
    arena,
    region: plan.machine,
    program: new URL('../../../testing/sched/stressprogram.ts', import.meta.url),
    data: sizes,
  })
  machines.push(machine)
  const deaths: unknown[] = []
  machine.onDeath(death => deaths.push(death))
  const s = new Scheduler({
    plan: plan.scheduler,
    machine: plan.machine,
    thread: new KernelThread(arena, 64),
    now: machine.now,
    slice: 1,
  })
  s.initialize()
  for (let cpu = 0; cpu < sizes.cpus; cpu++) await machine.start(cpu)
  return { machine, s, plan, deaths }
}

/** Every task is seeded, started, and known by its slot. */
function spawnAll(
  s: Scheduler,
  plan: ReturnType<typeof planStress>,
  sizes: StressSizes,
): Map<number, number> {
  const seeds = new Map<number, number>()
  const tasks: number[] = []
  for (let number = 0; number < sizes.tasks; number++) {
    const priority = number % 3 === 0 ? makePriority(10 + (number % 4), number & 3) : FAIR_PRIORITY
    const task = createTask(s, { priority, roundRobin: number % 2 === 0, nice: (number % 9) - 4, slice: 0.5 })
    const slot = s.i32[task + TaskRecord.slot]
    const seed = Math.imul(sizes.seed * 31 + number + 1, 0x9e37_79b9) | 0
    s.i32[plan.bodies.start + slot * Body.words + Body.random] = seed
    seeds.set(slot, seed)
    tasks.push(task)
  }
  // Others may do things to a task from when it is in the table: not before it has been started.
  tasks.forEach((task, number) => {
    startTask(s, task)
    Atomics.store(s.i32, plan.table.start + number, task)
  })
  return seeds
}

const runs = Number(process.env.HEDDLE_RUNS ?? 3)

for (let run = 1; run <= runs; run++) {
  test(`on worker threads every turn is run once, by one CPU, under all operations at once: run ${run}`, async () => {
    const sizes: StressSizes = { cpus: 3, tasks: 40, turns: 1500, seed: run }
    const { machine, s, plan, deaths } = await boot(sizes)
    const seeds = spawnAll(s, plan, sizes)
    const ended = plan.table.start + sizes.tasks
    let looks = 0
    await until('all tasks have ended', () => {
      // From a thread that is no CPU: continue what was stopped, wake what sleeps, all the while.
      for (let number = 0; number < sizes.tasks; number++) {
        const task = Atomics.load(s.i32, plan.table.start + number)
        if (!s.tasks.isAllocated(s.i32, task) || Atomics.load(s.i32, ended) === sizes.tasks) continue
        s.rcu.online(s.thread)
        if (s.tasks.isAllocated(s.i32, task)) {
          schedulerContinue(s, task)
          wakeupTask(s, task)
        }
        s.rcu.offline(s.i32, s.thread.id)
      }
      // A CPU goes and comes back while they run.
      looks++
      if (looks === 3) void machine.stop(2)
      return deaths.length > 0 || Atomics.load(s.i32, ended) === sizes.tasks
    })
    expect(deaths).toEqual([])
    await machine.stop(2)
    await machine.start(2)
    await until('their records are free', () => s.tasks.count(s.i32) === sizes.cpus)
    for (let cpu = 0; cpu < sizes.cpus; cpu++) await machine.stop(cpu)
    checkInvariants(s)
    for (const [slot, seed] of seeds) {
      const body = plan.bodies.start + slot * Body.words
      expect(s.i32[body + Body.turns]).toBe(sizes.turns)
      expect(s.i32[body + Body.checksum]).toBe(expectedChecksum(seed, sizes.turns))
    }
    const accounts = Array.from({ length: sizes.cpus }, (_, cpu) => cpuAccount(s.i32, s.queueOf(cpu)))
    expect(accounts.reduce((sum, account) => sum + account.switches, 0)).toBeGreaterThan(sizes.tasks)
  })
}
