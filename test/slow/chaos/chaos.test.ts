import { expect, test } from 'vitest'
import { CpuLostError, Kernel, type ModuleView, type Task } from '../../../src/index.ts'
import { inUse, leftSince } from '../../../testing/kernel/fixtures/inuse.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import { isOnline } from '../../../src/sched/balance/hotplug.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'

/**
 * Tasks of every kind while CPUs are terminated at random times, at any instruction. Each task has one
 * outcome: its result, or the loss of its CPU. Every restartable task gets its result. Afterwards the arena
 * is as before.
 */
const TASKS = Number(process.env.HEDDLE_CHAOS ?? (process.env.HEDDLE_LONG ? 50_000 : 10_000))
const CPUS = 4
const KILL_EVERY_MS = 20
const TASKS_BETWEEN = 100
const AT_ONCE = 4096

const RETURNED = 1
const LOST = 2

type Work = typeof import('./work.ts')

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

class Chaos {
  readonly random: SeededRandom
  readonly kernel: Kernel
  readonly work: ModuleView<Work>
  readonly marks = new Int32Array(new SharedArrayBuffer(8 * TASKS))
  readonly outcomes = new Uint8Array(TASKS)
  returned = 0
  lost = 0
  deaths = 0
  readonly unexpected: unknown[] = []
  private pending = 0
  private isOver = false

  constructor(kernel: Kernel, work: ModuleView<Work>, seed: number) {
    this.kernel = kernel
    this.work = work
    this.random = new SeededRandom(seed)
    kernel.on('death', () => this.deaths++)
    // A child that is lost after its parent was lost.
    kernel.on('failure', ({ name, error }) => {
      if (name !== 'half' || !(error instanceof CpuLostError)) this.unexpected.push(error)
    })
  }

  /** Spawns task number n. Every second task is restartable. */
  spawn(n: number): void {
    const { marks, work, kernel } = this
    const options = { restartable: isRestartable(n) }
    let task: Task<number | string>
    let expected: unknown
    switch (n % 10) {
      case 0:
      case 1:
        task = kernel.spawn(work.turns, [marks, n, 3], options)
        break
      case 2:
      case 3:
        task = kernel.spawn(work.text, [marks, n, n % 300], options)
        expected = 'x'.repeat(n % 300)
        break
      case 4:
        task = kernel.spawn(work.family, [marks, n], options)
        expected = n
        break
      case 5:
        task = kernel.spawn(work.later, [marks, n], options)
        expected = n
        break
      default:
        task = kernel.spawn(work.add, [marks, n, n, 1], options)
        expected = n + 1
    }
    this.pending++
    task.then(
      value => {
        if (expected !== undefined && value !== expected) throw new Error(`task ${n} returned ${value}`)
        this.end(n, RETURNED)
        this.returned++
      },
      (error: unknown) => {
        if (!(error instanceof CpuLostError)) throw error
        if (isRestartable(n)) throw new Error(`task ${n} was lost, and is restartable`, { cause: error })
        this.end(n, LOST)
        this.lost++
      },
    )
  }

  private end(n: number, outcome: number): void {
    if (this.outcomes[n] !== 0) this.unexpected.push(new Error(`task ${n} has two outcomes`))
    this.outcomes[n] = outcome
    this.pending--
  }

  async run(): Promise<void> {
    const killing = this.kill()
    try {
      for (let n = 0; n < TASKS; n++) {
        while (this.pending >= AT_ONCE) await pause(1)
        this.spawn(n)
        if (n % 64 === 0) await pause(0)
      }
      while (this.pending > 0) await pause(1)
    } finally {
      this.isOver = true
      await killing
    }
  }

  /**
   * Every 20 ms on average. On a busy machine, where hardly a task has ended since the last death, the next
   * one is delayed: a CPU that always dies before it has done anything tests nothing.
   */
  private async kill(): Promise<void> {
    const { machine, view } = this.kernel['booted']
    let ended = 0
    while (!this.isOver) {
      await pause(this.random.unit() * 2 * KILL_EVERY_MS)
      while (!this.isOver && this.returned + this.lost < ended + TASKS_BETWEEN) await pause(1)
      ended = this.returned + this.lost
      const online = Array.from({ length: CPUS }, (_, cpu) => cpu).filter(cpu => isOnline(view.s, cpu))
      if (online.length > 0) void machine.terminate(online[this.random.below(online.length)])
    }
  }
}

const isRestartable = (n: number): boolean => n % 2 === 0

test(`${TASKS} tasks on ${CPUS} CPUs, of which one is terminated every ${KILL_EVERY_MS} ms`, async () => {
  const seed = Number(process.env.HEDDLE_SEED ?? Date.now() % 1_000_000)
  const kernel = await Kernel.boot({ cpus: CPUS, watchdog: false })
  await using _kernel = kernel
  const work = await kernel.import<Work>(new URL('./work.ts', import.meta.url))
  await expect.poll(() => inUse(kernel).tasks).toBe(CPUS)
  const before = inUse(kernel)
  const chaos = new Chaos(kernel, work, seed)
  try {
    await chaos.run()
    expect(chaos.unexpected).toEqual([])
    expect(chaos.returned + chaos.lost).toBe(TASKS)
    expect(chaos.outcomes.includes(0)).toBe(false)
    for (let n = 0; n < TASKS; n++) {
      const [begun, ended] = [chaos.marks[2 * n], chaos.marks[2 * n + 1]]
      // A lost task may have died before its first line, or after its last.
      const [least, most] = isRestartable(n) ? [1, Infinity] : [chaos.outcomes[n] === RETURNED ? 1 : 0, 1]
      if (begun < least || begun > most || ended < least || ended > begun) {
        throw new Error(`task ${n} began ${begun} times and ended ${ended} times`)
      }
    }
    expect(chaos.deaths).toBeGreaterThan(TASKS / 5000)
    await expect.poll(() => leftSince(kernel, before)).toEqual({})
    const { machine, view } = kernel['booted']
    for (let cpu = 0; cpu < CPUS; cpu++) await machine.stop(cpu)
    checkInvariants(view.s)
  } catch (error) {
    throw new Error(`chaos, seed ${seed}, ${chaos.deaths} deaths`, { cause: error })
  }
}, 600_000)
