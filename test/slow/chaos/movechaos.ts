import { inspect } from 'node:util'
import {
  CpuLostError,
  Kernel,
  type ModuleView,
  Mutex,
  type Task,
  TaskEndedError,
  TaskKilledError,
  TaskSuspendedError,
} from '../../../src/index.ts'
import { Owner, OWNER_FREE, TASK } from '../../../src/futex/core/records.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import { isOnline } from '../../../src/sched/balance/hotplug.ts'
import { inUse } from '../../../testing/kernel/fixtures/inuse.ts'
import { checkInvariants } from '../../../testing/sched/invariants.ts'
import { expected, type Kind, KINDS } from './movework.ts'

/**
 * Movable tasks of every kind, while they are moved at random (affinity, resize), checkpointed, copied,
 * suspended, stopped and killed, and CPUs are terminated at any instruction. Each task has one outcome: the
 * result that plain code computes, the kill that it got, its suspension, or the loss of its CPU. A task is
 * lost only if it has no checkpoint and is not restartable. Afterwards the arena is as before.
 */
export interface MoveChaosOptions {
  readonly seed: number
  readonly tasks: number
  /** Gets messages about the run. */
  readonly log?: (line: string) => void
}

export interface MoveChaosReport {
  readonly deaths: number
  readonly moves: number
  readonly outcomes: Readonly<Record<string, number>>
  readonly unexpected: readonly unknown[]
  /** What the arena holds that it did not hold before: `{}`. */
  readonly left: Readonly<Record<string, number>>
}

const CPUS = 4
const KILL_EVERY_MS = 20
const ENDED_BETWEEN = 10
const AT_ONCE = 256
/** Of the locks. */
const PROTOCOLS = ['none', 'none', 'none', 'inherit', 'inherit', 'handoff'] as const
const ROUNDS = 12_000
/** If hardly a task ends for so long, the next CPU dies nevertheless. */
const STUCK_MS = 5000
/** What does not happen for so long does not happen. */
const END_MS = 60_000

type Work = typeof import('./movework.ts')

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** Whether the condition holds before too long. */
async function settles(condition: () => boolean): Promise<boolean> {
  const since = performance.now()
  while (!condition() && performance.now() - since < END_MS) await pause(1)
  return condition()
}

interface Living {
  readonly n: number
  readonly kind: Kind
  readonly rounds: number
  readonly task: Task<number>
  isKilled: boolean
}

class MoveChaos {
  readonly outcomes: Record<string, number> = {}
  readonly unexpected: unknown[] = []
  deaths = 0
  moves = 0
  private readonly kernel: Kernel
  private readonly work: ModuleView<Work>
  private readonly options: MoveChaosOptions
  private readonly random: SeededRandom
  private readonly living = new Set<Living>()
  private readonly guards = PROTOCOLS.map(protocol => ({
    mutex: new Mutex({ robust: true, protocol }),
    words: new Int32Array(new SharedArrayBuffer(8)),
  }))
  private readonly requests = new Set<Promise<unknown>>()
  private ended = 0
  private isOver = false

  constructor(kernel: Kernel, work: ModuleView<Work>, options: MoveChaosOptions) {
    this.kernel = kernel
    this.work = work
    this.options = options
    this.random = new SeededRandom(options.seed)
    kernel.on('death', ({ reason, error }) => {
      this.deaths++
      if (reason !== 'terminated') this.fault(new Error(`a CPU died: ${reason}`, { cause: error }))
    })
    kernel.on('error', error => this.fault(error))
    kernel.on('failure', ({ error }) => this.fault(error))
  }

  async run(): Promise<void> {
    const acting = [this.kill(), this.act(), this.resize()]
    for (let n = 0; n < this.options.tasks && (await this.comesTo(AT_ONCE - 1)); n++) {
      this.spawn(n)
      if (n % 32 === 0) await pause(0)
    }
    await this.comesTo(AT_ONCE / 4)
    this.isOver = true
    let isCalm = false
    const calm = Promise.all(acting).then(() => this.kernel.resize(CPUS))
    calm.then(
      () => (isCalm = true),
      (error: unknown) => this.fault(error),
    )
    if (!(await settles(() => isCalm))) this.fault(new Error('a resize does not resolve'))
    for (const { task } of this.living) {
      task.setAffinity([0, 1, 2, 3])
      task.resume()
    }
    await this.comesTo(0)
    for (const { n, kind, task } of this.living)
      this.fault(new Error(`task ${n}, ${kind}, does not end: ${JSON.stringify(task.status)}`))
    // A request to a task that has ended must settle.
    if (this.living.size === 0 && !(await settles(() => this.requests.size === 0)))
      this.fault(new Error(`${this.requests.size} requests to tasks that have ended do not settle`))
    if (this.guards.some(({ words }) => Atomics.load(words, 1) !== 0))
      this.fault(new Error('two tasks were in one critical section'))
  }

  /** Waits until so few tasks are left. False: none has ended for a long time. */
  private async comesTo(count: number): Promise<boolean> {
    while (this.living.size > count) {
      const { ended } = this
      if (!(await settles(() => this.living.size <= count || this.ended > ended))) return false
    }
    return true
  }

  private fault(error: unknown): void {
    this.unexpected.push(error)
    this.options.log?.(`unexpected: ${inspect(error)}`)
  }

  private spawn(n: number): void {
    const { random, work } = this
    const kind = KINDS[random.below(KINDS.length)]
    const rounds = 8 * (1 + random.below(ROUNDS / 8))
    const restartable = random.below(3) === 0
    const options = {
      movable: true,
      restartable,
      ...(random.below(3) > 0 && { checkpoint: 1 + random.below(12) }),
      ...(random.below(4) === 0 && { affinity: this.mask() }),
    }
    const guard = this.guards[n % this.guards.length]
    const task =
      kind === 'guarded'
        ? this.kernel.spawn(work.guarded, [n, rounds, guard.mutex, guard.words], options)
        : this.kernel.spawn(work[kind], [n, rounds], options)
    this.watch({ n, kind, rounds, task: task as Task<number>, isKilled: false }, restartable)
  }

  private watch(living: Living, restartable: boolean): void {
    const { n, kind, rounds, task } = living
    this.living.add(living)
    let ends = 0
    const end = (outcome: string): void => {
      if (++ends > 1) this.fault(new Error(`task ${n} has two outcomes`))
      this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1
      this.moves += task.status.moves
      this.living.delete(living)
      this.ended++
    }
    task.then(
      value => {
        end('returned')
        if (value !== expected(kind, n, rounds))
          this.fault(new Error(`task ${n}, ${kind}, returned ${value} after ${JSON.stringify(task.status)}`))
      },
      (error: unknown) => {
        if (error instanceof TaskKilledError && living.isKilled) return end('killed')
        if (error instanceof TaskSuspendedError) return end('suspended')
        if (!(error instanceof CpuLostError)) {
          end('threw')
          return this.fault(new Error(`task ${n}, ${kind}`, { cause: error }))
        }
        end('lost')
        const { checkpoint } = task.status
        if (!living.isKilled && (restartable || checkpoint !== null))
          this.fault(
            new Error(`task ${n}, ${kind}, is lost: restartable ${restartable}, checkpoint ${checkpoint}`),
          )
      },
    )
  }

  private mask(): number[] {
    const bits = 1 + this.random.below(2 ** CPUS - 1)
    return [0, 1, 2, 3].filter(cpu => (bits & (1 << cpu)) !== 0)
  }

  /** Every millisecond something happens to some tasks. */
  private async act(): Promise<void> {
    const { random } = this
    while (!this.isOver) {
      const all = [...this.living]
      for (let times = Math.min(all.length, 12); times > 0; times--) this.actOn(all[random.below(all.length)])
      await pause(1)
      for (const { task } of all) task.resume()
    }
  }

  private actOn(living: Living): void {
    const { random } = this
    const { task } = living
    const what = random.below(64)
    if (what < 40) task.setAffinity(this.mask())
    else if (what < 48) this.request(task.checkpoint())
    else if (what < 52) this.request(this.copy(living))
    else if (what < 54) this.request(this.suspend(living))
    else if (what < 58) task.stop()
    else if (what < 63) task.setNice(random.below(20))
    else if (task.kill('chaos')) living.isKilled = true
  }

  /** A request is answered, or the task ends, or a value of it cannot leave the kernel. */
  private request(request: Promise<unknown>): void {
    const watched = request
      .catch((error: unknown) => {
        if (error instanceof TaskEndedError) return
        if (error instanceof TypeError && /goes on where it is/.test(error.message)) return
        this.fault(error)
      })
      .finally(() => this.requests.delete(watched))
    this.requests.add(watched)
  }

  /** A task that was killed, and cleans up, does so after it is resumed too. */
  private async copy(living: Living): Promise<void> {
    const image = await living.task.copyToBytes()
    this.watch({ ...living, task: this.kernel.resume(image) }, false)
  }

  private async suspend(living: Living): Promise<void> {
    const image = await living.task.suspendToBytes()
    this.watch({ ...living, task: this.kernel.resume(image, { checkpoint: 3 }) }, false)
  }

  private async resize(): Promise<void> {
    while (!this.isOver) {
      await pause(this.random.unit() * 200)
      if (!this.isOver) await this.kernel.resize(2 + this.random.below(CPUS - 1))
    }
  }

  /** Every 20 ms on average, but not before some tasks have ended since the last death. */
  private async kill(): Promise<void> {
    const { machine, view } = this.kernel['booted']
    while (!this.isOver) {
      const { ended } = this
      await pause(this.random.unit() * 2 * KILL_EVERY_MS)
      const since = performance.now()
      while (!this.isOver && this.ended < ended + ENDED_BETWEEN && performance.now() - since < STUCK_MS)
        await pause(1)
      const online = Array.from({ length: CPUS }, (_, cpu) => cpu).filter(cpu => isOnline(view.s, cpu))
      if (!this.isOver && online.length > 0) void machine.terminate(online[this.random.below(online.length)])
    }
  }
}

/** As `inUse`, without the owners of threads: each thread keeps one from its first lock on. */
function inUseByTasks(kernel: Kernel): Record<string, number> {
  const { view } = kernel['booted']
  const { i32 } = view
  const { owners } = view.plan.futexes
  let ofTasks = 0
  for (let owner = owners.after(i32, 0); owner !== 0; owner = owners.after(i32, owner)) {
    if (i32[owner + Owner.kind] === TASK && i32[owner + Owner.state] !== OWNER_FREE) ofTasks++
  }
  return { ...inUse(kernel), owners: ofTasks }
}

/** Runs the chaos to its end, and closes the kernel. */
export async function moveChaos(options: MoveChaosOptions): Promise<MoveChaosReport> {
  const kernel = await Kernel.boot({ cpus: CPUS, slice: 2, watchdog: false, grace: 5000, control: false })
  await using _kernel = kernel
  const work = await kernel.import<Work>(new URL('./movework.ts', import.meta.url))
  await settles(() => inUse(kernel).tasks === CPUS)
  const before = inUseByTasks(kernel)
  const chaos = new MoveChaos(kernel, work, options)
  await chaos.run()
  const left = (): Record<string, number> => {
    const more = Object.entries(inUseByTasks(kernel)).map(
      ([name, count]) => [name, count - before[name]] as const,
    )
    return Object.fromEntries(more.filter(([, count]) => count > 0))
  }
  await settles(() => Object.keys(left()).length === 0)
  const leftOver = left()
  const { machine, view } = kernel['booted']
  for (let cpu = 0; cpu < CPUS; cpu++) await machine.stop(cpu)
  checkInvariants(view.s)
  const { deaths, moves, outcomes, unexpected } = chaos
  return { deaths, moves, outcomes, unexpected, left: leftOver }
}
