import {
  Barrier,
  Channel,
  Condition,
  CpuLostError,
  Event,
  Kernel,
  type KernelOptions,
  Latch,
  type ModuleView,
  Mutex,
  Once,
  RwLock,
  Semaphore,
  SeqLock,
  SharedQueue,
  type Task,
  TaskKilledError,
  WaitGroup,
} from '../../../src/index.ts'
import { Lock } from '../../../src/arena/sync/spinlock.ts'
import { CpuRecord, cpuRecord } from '../../../src/machine/core/cpurecord.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import { isOnline } from '../../../src/sched/balance/hotplug.ts'
import { RunQueue } from '../../../src/sched/core/runqueue.ts'
import { isExpected, type Shared } from './lockwork.ts'
import { WideUse } from './wideuse.ts'
import type { Wide } from './widework.ts'

/**
 * Every primitive, every priority, children, scopes, maps, async tasks, kills and restartable tasks, and a
 * pool, while CPUs are terminated at random, also before they run, as fast as they restart. Kernels have
 * three CPUs, one to three, or `debug: true`. The booting thread uses the same locks. Each task has one
 * outcome. After the last death the kernel serves as before, and `close` with a deadline ends.
 */
export interface LockChaosOptions {
  readonly seed: number
  readonly tasks: number
  /** How many CPUs are terminated. */
  readonly deaths: number
  /** Gets messages about the run. */
  readonly log?: (line: string) => void
}

export interface LockChaosReport {
  readonly deaths: readonly Death[]
  /** How many tasks ended in each way. */
  readonly outcomes: Readonly<Record<string, number>>
  /** Unexpected errors. */
  readonly unexpected: readonly unknown[]
}

export interface Death {
  /** Milliseconds since the start. */
  readonly at: number
  readonly cpu: number
  readonly why: string
  /** The death came after the last termination. */
  readonly late: boolean
}

const CPUS = 3

/** The kinds of kernels; the seed chooses one. */
const kernels: readonly KernelOptions[] = [
  { cpus: CPUS },
  { cpus: { min: 1, max: CPUS, idle: 40 } },
  { cpus: CPUS, debug: true },
  { cpus: { min: 0, max: CPUS, idle: 5 }, debug: true },
]

const AT_ONCE = 600
const PRIORITIES = ['realtime', 'high', 'normal', 'normal', 'low', 'idle', 'idle'] as const
const CLOSE_MS = 3000
/** The longest life of a CPU: about the time that another one takes to start. */
const LIFE_MS = 400

type Work = typeof import('./lockwork.ts')

/**
 * Whether a death or a kill can cause the error. A killed task whose scope has lost a member fails of both:
 * an AggregateError, whose parts have lost their classes on the way.
 */
function mayHappen(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(mayHappen)
  const { name } = error as { name?: string }
  return name === 'CpuLostError' || name === 'TaskKilledError' || isExpected(error)
}

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

class LockChaos {
  readonly deaths: Death[] = []
  readonly outcomes: Record<string, number> = {}
  readonly unexpected: unknown[] = []
  private readonly kernel: Kernel
  private readonly work: ModuleView<Work>
  private readonly options: LockChaosOptions
  private readonly random: SeededRandom
  private readonly living = new Set<Task<number>>()
  private readonly start = performance.now()
  private shared: Shared
  private kills = true

  constructor(kernel: Kernel, work: ModuleView<Work>, options: LockChaosOptions) {
    this.kernel = kernel
    this.work = work
    this.options = options
    this.random = new SeededRandom(options.seed)
    this.shared = makeShared()
    kernel.on('death', ({ cpu, reason, exitCode, error }) => {
      const told = error instanceof Error ? `: ${error.stack}` : ''
      const why = `${reason} (${exitCode})${told}`
      const at = Math.round(performance.now() - this.start)
      this.deaths.push({ at, cpu, why, late: !this.kills })
      options.log?.(`${at} ms: CPU ${cpu} died${this.kills ? '' : ' after the killing'}: ${why}`)
    })
    // The dead CPU, or one more.
    kernel.on('online', ({ cpu }) => void this.killSoon(cpu))
    // A task holds one lock at a time: there is no cycle.
    kernel.on('deadlock', ({ message }) => this.fault(new Error(message)))
    kernel.on('error', error => this.fault(error))
    // A child whose parent was lost.
    kernel.on('failure', ({ error }) => this.fault(error))
  }

  private fault(error: unknown): void {
    if (mayHappen(error)) return
    this.unexpected.push(error)
    this.options.log?.(`unexpected: ${error instanceof Error ? error.stack : String(error)}`)
  }

  spawn(n: number): void {
    const { random, kernel, work } = this
    const restartable = n % 3 === 0
    const options = { restartable, priority: PRIORITIES[random.below(PRIORITIES.length)] }
    const task =
      n % 7 === 6
        ? kernel.spawn(work.drift, [this.shared.wide, n, random.bits()], options)
        : kernel.spawn(work.roam, [this.shared, n, random.bits()], options)
    this.living.add(task)
    const killed = random.below(10) === 0
    if (killed) setTimeout(() => task.kill('chaos'), random.below(20))
    task.then(
      value => this.ended(task, value === n ? 'returned' : `returned ${value} for ${n}`),
      (error: unknown) => {
        const lost = error instanceof CpuLostError
        if (!(lost && !restartable) && !(error instanceof TaskKilledError && killed)) this.fault(error)
        this.ended(task, lost ? 'lost' : `threw ${(error as Error)?.name}`)
      },
    )
  }

  private ended(task: Task<number>, how: string): void {
    if (!this.living.delete(task)) this.unexpected.push(new Error(`task ${task.id} has two outcomes`))
    this.outcomes[how] = (this.outcomes[how] ?? 0) + 1
  }

  async run(): Promise<void> {
    for (let cpu = 0; cpu < CPUS; cpu++) void this.killSoon(cpu)
    const wide = new WideUse(
      this.kernel,
      this.work,
      this.random,
      () => this.shared.wide,
      error => this.fault(error),
    )
    const uses = Promise.all([this.useLocks(), wide.run(() => this.kills)])
    const usesBlocking = setInterval(() => this.useBlocking(), 7)
    for (let n = 0; n < this.options.tasks; n++) {
      while (this.living.size >= AT_ONCE) await pause(1)
      this.spawn(n)
      // A plain mutex whose holder died stays locked for ever: replace it now and then.
      if (n % 256 === 255) this.shared = makeShared()
      if (n % 16 === 0) await pause(0)
    }
    while (this.kills && this.living.size > 0) await pause(1)
    this.stopKilling()
    clearInterval(usesBlocking)
    await uses
    await this.drained()
  }

  /** Waits for the last task. Reports the state of a kernel that has stopped serving. */
  private async drained(): Promise<void> {
    let least = this.living.size
    for (let rests = 0; this.living.size > 0; rests++) {
      await pause(5)
      if (this.living.size < least) {
        least = this.living.size
        rests = 0
      } else if (rests % 2000 === 1999) {
        this.options.log?.(`${least} tasks live, and none has ended for a while\n${this.describe()}`)
      }
    }
  }

  private describe(): string {
    const { view, machine } = this.kernel['booted']
    const lines: string[] = []
    for (let cpu = 0; cpu < CPUS; cpu++) {
      const queue = view.s.queueOf(cpu)
      const { i32 } = view
      const state = Atomics.load(i32, cpuRecord(view.plan.machine, cpu) + CpuRecord.state)
      lines.push(
        `CPU ${cpu}: state ${state}, active ${machine.isActive(cpu)}, online ${isOnline(view.s, cpu)}, lock ${i32[queue + RunQueue.lock + Lock.word]}, tasks ${i32[queue + RunQueue.taskCount]}, heartbeat ${i32[queue + RunQueue.heartbeat]}`,
      )
    }
    for (const task of [...this.living].slice(0, 10)) lines.push(JSON.stringify(task.status))
    return lines.join('\n')
  }

  /** Terminates a CPU that is back, sometimes before its program runs. */
  private async killSoon(cpu: number): Promise<void> {
    await pause(this.random.below(LIFE_MS))
    this.kill(cpu)
    if (this.random.below(3) !== 0) return
    // By then another CPU may be starting in its place.
    await pause(this.random.below(500))
    this.kill(cpu)
  }

  private kill(cpu: number): void {
    if (!this.kills) return
    void this.kernel['booted'].machine.terminate(cpu)
    if (this.deaths.length >= this.options.deaths) this.stopKilling()
  }

  private stopKilling(): void {
    if (!this.kills) return
    this.kills = false
    const at = Math.round(performance.now() - this.start)
    this.options.log?.(`${at} ms: the killing is over, ${this.living.size} tasks live`)
  }

  /** The booting thread uses the locks, and its event loop continues. */
  private async useLocks(): Promise<void> {
    const { random } = this
    const timed = { timeout: 20 }
    while (this.kills) {
      const { mutexes, rwlock, semaphore, channels, guard, condition } = this.shared
      try {
        switch (random.below(6)) {
          case 0: {
            const mutex = mutexes[random.below(mutexes.length)]
            const token = await mutex.lockAsync(timed)
            if (mutex.robust && mutex.ownerDied) mutex.makeConsistent()
            token.unlock()
            break
          }
          case 1: {
            const writing = await rwlock.lockWriteAsync(timed)
            writing.unlock()
            break
          }
          case 2: {
            const permits = await semaphore.acquireAsync(1, timed)
            permits.release()
            break
          }
          case 3:
            await channels[random.below(channels.length)].sendAsync({ text: 'y'.repeat(300) }, timed)
            break
          case 4:
            await channels[random.below(channels.length)].receiveAsync(timed)
            break
          default: {
            const token = await guard.lockAsync(timed)
            if (guard.ownerDied) guard.makeConsistent()
            condition.notify()
            token.unlock()
          }
        }
      } catch (error) {
        this.fault(error)
      }
      await pause(0)
    }
  }

  /** The booting thread blocks. */
  private useBlocking(): void {
    const { random } = this
    const { mutexes, rwlock, semaphore, channels } = this.shared
    const timed = { timeout: 5 }
    try {
      switch (random.below(4)) {
        case 0: {
          const mutex = mutexes[random.below(mutexes.length)]
          mutex.lockSync(timed)
          if (mutex.robust && mutex.ownerDied) mutex.makeConsistent()
          mutex.unlock()
          break
        }
        case 1:
          rwlock.lockReadSync(timed).unlock()
          break
        case 2:
          semaphore.acquireSync(1, timed).release()
          break
        default:
          channels[random.below(channels.length)].tryReceive()
      }
    } catch (error) {
      this.fault(error)
    }
  }
}

function makeShared(): Shared {
  return {
    mutexes: [
      new Mutex(),
      new Mutex({ robust: true }),
      new Mutex({ protocol: 'inherit', robust: true }),
      new Mutex({ protocol: 'handoff', robust: true }),
      new Mutex({ protocol: 'inherit' }),
      new Mutex({ protocol: 'handoff' }),
    ],
    rwlock: new RwLock(),
    semaphore: new Semaphore(4),
    channels: [new Channel(0), new Channel(2), new Channel(16)],
    condition: new Condition(),
    guard: new Mutex({ robust: true }),
    wide: makeWide(),
  }
}

function makeWide(): Wide {
  return {
    seqlock: new SeqLock({ fields: 40 }),
    once: new Once(),
    barrier: new Barrier(2),
    latch: new Latch(20),
    group: new WaitGroup(),
    events: [new Event(), new Event({ auto: true })],
    queue: new SharedQueue({ capacity: 4 }),
    channel: new Channel(1),
    rwlock: new RwLock(),
    words: new Int32Array(new SharedArrayBuffer(32)),
    small: new Uint8Array(new SharedArrayBuffer(8)),
    middle: new Uint16Array(new SharedArrayBuffer(8)),
    large: new BigInt64Array(new SharedArrayBuffer(16)),
  }
}

/** Runs the chaos to its end, and closes the kernel. A kernel that stops serving never reaches this end. */
export async function lockChaos(options: LockChaosOptions): Promise<LockChaosReport> {
  const kind = kernels[options.seed % kernels.length]
  const kernel = await Kernel.boot({ ...kind, grace: 500, control: false })
  const work = await kernel.import<Work>(new URL('./lockwork.ts', import.meta.url))
  const chaos = new LockChaos(kernel, work, options)
  await chaos.run()
  await kernel.close({ deadline: CLOSE_MS })
  return chaos
}
