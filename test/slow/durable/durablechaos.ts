import { type ChildProcess, spawn } from 'node:child_process'
import pg from 'pg'
import { BOSS_SCHEMA, SCHEMA } from '../../../src/durable/database/database.ts'
import { Durable } from '../../../src/durable/index.ts'
import { decodeValue } from '../../../src/durable/outcome.ts'
import { Kernel } from '../../../src/index.ts'
import { SeededRandom } from '../../../src/machine/simulated/random.ts'
import { type Postgres, startPostgres } from '../../../testing/durable/postgres.ts'
import type { WorkerSettings } from './chaosworker.ts'
import { compute, EFFECTS } from './chaoswork.ts'
import {
  type History,
  type Mistake,
  mistakesIn,
  type Plan,
  type Result,
  type Started,
  type Step,
} from './history.ts'

/**
 * Worker processes that are killed, paused and drained at random, at a database that is restarted and cuts
 * connections, while their runs compute, sleep, call `once` and receive. The choices are the seed's; when
 * they take effect is not. After the last of them every run has to end.
 */
export interface DurableChaosOptions {
  readonly seed: number
  readonly runs: number
  /** Milliseconds of chaos. */
  readonly time: number
  /** Milliseconds without any progress of any run, after the chaos, before the rest counts as stuck. */
  readonly patience?: number
  /** Gets a line for each thing that happens. */
  readonly log?: (line: string) => void
}

export interface DurableChaosReport {
  readonly mistakes: readonly Mistake[]
  /** How often each thing was done to the workers and to the database. */
  readonly done: Readonly<Record<string, number>>
  /** How many runs ended in each state. */
  readonly states: Readonly<Record<string, number>>
  /** Claims after the first one of each run. */
  readonly takeovers: number
  /** Effects of `once` that were done more than once. */
  readonly repeated: number
}

const WORKERS = 5
/** Each turn does all of these, in random order. */
const DEEDS = [
  ...(['kill', 'kill', 'kill', 'pause', 'pause', 'long pause'] as const),
  ...(['cut', 'cut', 'restart', 'drain', 'change'] as const),
]
type Deed = (typeof DEEDS)[number]
/** The lease is 10 s: shorter, and longer. */
const SHORT_PAUSE = [100, 4000] as const
const LONG_PAUSE = [11_000, 15_000] as const
/** A worker that drains ends on its own within this. */
const DRAIN_MS = 60_000

export async function durableChaos(options: DurableChaosOptions): Promise<DurableChaosReport> {
  const postgres = await startPostgres()
  const chaos = new Chaos(postgres, options)
  try {
    return await chaos.run()
  } finally {
    await chaos.close()
    await postgres.close()
  }
}

class Chaos {
  private readonly postgres: Postgres
  private readonly options: DurableChaosOptions
  private readonly random: SeededRandom
  private readonly begun = performance.now()
  private readonly pool: pg.Pool
  private readonly workers = new Set<WorkerProcess>()
  private readonly done: Record<string, number> = {}
  private readonly mistakes: Mistake[] = []
  private readonly pauses = new Set<Promise<void>>()
  private workerNumber = 0
  private isOver = false

  constructor(postgres: Postgres, options: DurableChaosOptions) {
    this.postgres = postgres
    this.options = options
    this.random = new SeededRandom(options.seed)
    this.pool = new pg.Pool({ connectionString: postgres.url, max: 3, application_name: 'chaos' })
    this.pool.on('error', () => undefined)
  }

  async run(): Promise<DurableChaosReport> {
    await this.query(EFFECTS)
    const kernel = await Kernel.boot({ cpus: 1, control: false })
    const durable = await Durable.open({ kernel, concurrency: 0, database: this.postgres.url })
    durable.onWarning(({ message }) => this.log(`starter: ${message}`))
    try {
      const work = await kernel.import<typeof import('./chaoswork.ts')>(
        new URL('./chaoswork.ts', import.meta.url),
      )
      const plans = Array.from({ length: this.options.runs }, (_, at) => this.plan(at))
      const sums = plans.map(sumOf)
      for (let at = 0; at < WORKERS; at++) this.addWorker()
      const users = this.use(durable, work, plans, sums)
      await this.disturb()
      const started = await users
      await this.untilIdle(plans.length)
      const history = await this.history(started)
      this.mistakes.push(...mistakesIn(history))
      await Promise.all([...this.workers].map(worker => this.drain(worker)))
      return {
        mistakes: this.mistakes,
        done: this.done,
        states: counted(history.runs.map(({ state }) => state)),
        takeovers: history.runs.reduce((sum, { epoch }) => sum + Math.max(0, epoch - 1), 0),
        repeated:
          history.effects.length - new Set(history.effects.map(({ run, key }) => `${run} ${key}`)).size,
      }
    } finally {
      await durable.close()
      await kernel.close()
    }
  }

  async close(): Promise<void> {
    this.isOver = true
    for (const worker of this.workers) worker.kill()
    await Promise.all([...this.workers].map(({ exited }) => exited))
    await this.pool.end()
  }

  private plan(at: number): Plan {
    const { random } = this
    const steps = Array.from({ length: 3 + random.below(6) }, (_, step): Step => {
      const kind = random.below(10)
      if (kind < 4) return { kind: 'compute', turns: 10 << random.below(random.below(10) === 0 ? 10 : 5) }
      if (kind < 6) return { kind: 'sleep', ms: random.below(random.below(2) === 0 ? 200 : 3000) }
      if (kind < 8) return { kind: 'once', key: `k${step}` }
      return { kind: 'receive', name: random.below(2) === 0 ? 'left' : 'right' }
    })
    return {
      id: `run-${at}`,
      start: random.below(1_000_003),
      steps,
      fails: random.below(30) === 0,
      retries: random.below(3),
    }
  }

  /** The users of the runs: they start them over the whole time, send their messages, and cancel a few. */
  private async use(
    durable: Durable,
    work: { readonly follow: any },
    plans: readonly Plan[],
    sums: readonly number[],
  ): Promise<readonly Started[]> {
    const span = this.options.time * 0.8
    return await Promise.all(
      plans.map(async (plan, at) => {
        const random = new SeededRandom(this.options.seed * 1_000_003 + at)
        // A quarter of them at once, as a backlog.
        await pause(at % 4 === 0 ? 0 : (span * at) / plans.length)
        const { id, retries, steps } = plan
        await durable.start(work.follow, [plan, this.postgres.url], {
          id,
          retries,
          checkpoint: random.below(4) === 0 ? 2000 : 500,
          backoff: { initial: 200 },
        })
        const isCancelled = !plan.fails && random.below(40) === 0
        const sent: { name: string; value: unknown }[] = []
        const sending = (async () => {
          for (const step of steps) {
            if (step.kind !== 'receive') continue
            await pause(random.below(2000))
            const message = { name: step.name, value: { number: sent.length, of: id } }
            sent.push(message)
            await durable.send(id, message.name, message.value)
          }
        })()
        let cancel: string | null = null
        if (isCancelled) {
          await pause(random.below(5000))
          cancel = await patiently(() => durable.run(id).cancel('by the chaos'))
        }
        await sending
        return { plan, sum: sums[at]!, sent, cancel }
      }),
    )
  }

  private async disturb(): Promise<void> {
    const until = performance.now() + this.options.time
    const deeds: Readonly<Record<Deed, () => Promise<void> | void>> = {
      kill: () => this.replace(this.someWorker()),
      pause: () => this.pauseWorker(this.someWorker(), SHORT_PAUSE),
      'long pause': () => this.pauseWorker(this.someWorker(), LONG_PAUSE),
      cut: () => this.cutConnections(),
      restart: () => this.postgres.restart(),
      drain: () => this.exchange(this.someWorker()),
      change: () => this.changeCount(),
    }
    let stack: Deed[] = []
    while (performance.now() < until) {
      await pause(300 + this.random.below(1000))
      if (stack.length === 0) stack = [...DEEDS]
      const [deed] = stack.splice(this.random.below(stack.length), 1) as [Deed]
      this.done[deed] = (this.done[deed] ?? 0) + 1
      this.log(deed)
      await deeds[deed]()
    }
    await Promise.all(this.pauses)
    this.log('the chaos is over')
  }

  private someWorker(): WorkerProcess {
    const workers = [...this.workers]
    return workers[this.random.below(workers.length)]!
  }

  private addWorker(): void {
    if (this.isOver) return
    const worker = new WorkerProcess({
      database: this.postgres.url,
      name: `worker-${++this.workerNumber}`,
      cpus: 1 + this.random.below(2),
      concurrency: 4 + this.random.below(12),
    })
    this.workers.add(worker)
    void worker.exited.then(code => {
      this.workers.delete(worker)
      if (worker.isMeantToEnd || this.isOver) return
      if (worker.said.includes('ready')) {
        this.mistakes.push({
          run: '',
          what: `${worker.name} ended on its own, code ${code}: ${worker.errors}`,
        })
      } else
        this.log(
          `${worker.name} did not start: ${worker.errors.split('\n').find(line => /Error/.test(line))}`,
        )
      // As whatever starts worker processes does.
      setTimeout(() => this.addWorker(), 500)
    })
  }

  private replace(worker: WorkerProcess): void {
    worker.kill()
    this.addWorker()
  }

  private pauseWorker(worker: WorkerProcess, [least, most]: readonly [number, number]): void {
    const ms = least + this.random.below(most - least)
    worker.pause()
    const over = pause(ms).then(() => {
      worker.continue()
      this.pauses.delete(over)
    })
    this.pauses.add(over)
  }

  private async exchange(worker: WorkerProcess): Promise<void> {
    this.addWorker()
    const over = this.drain(worker).then(() => void this.pauses.delete(over))
    this.pauses.add(over)
  }

  private async drain(worker: WorkerProcess): Promise<void> {
    if (worker.isMeantToEnd) return
    worker.continue()
    worker.drain()
    const late = setTimeout(() => {
      this.mistakes.push({ run: '', what: `${worker.name} does not drain: ${worker.errors}` })
      worker.kill()
    }, DRAIN_MS)
    await worker.exited
    clearTimeout(late)
  }

  private async changeCount(): Promise<void> {
    if (this.workers.size <= WORKERS) this.addWorker()
    else await this.drain(this.someWorker())
  }

  /** Ends some of the connections, of workers, of their effects and of the starter. */
  private async cutConnections(): Promise<void> {
    const rows = await this.query(
      `select pid from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() order by backend_start, pid`,
    )
    const part = 1 + this.random.below(4)
    const pids = rows.filter(() => this.random.below(part) === 0).map(({ pid }) => pid as number)
    await this.query('select pg_terminate_backend(pid) from unnest($1::int[]) as p (pid)', [pids])
  }

  /** Until all runs have ended, or nothing has happened for a while. */
  private async untilIdle(count: number): Promise<void> {
    const { patience = 60_000 } = this.options
    let last = ''
    let since = performance.now()
    for (;;) {
      const [row] = await this.query(
        `select (select count(*)::int from ${SCHEMA}.run where ended_at is not null) as ended,
                (select max(id)::text from ${SCHEMA}.event) as event`,
      )
      if (row!.ended === count) return
      const now = `${row!.ended} of ${count}, event ${row!.event}`
      if (now !== last) since = performance.now()
      if (now !== last) this.log(now)
      else if (performance.now() - since > patience) return this.log(`stuck: ${now}`)
      last = now
      await pause(250)
    }
  }

  private async history(started: readonly Started[]): Promise<History> {
    const runs = await this.query(
      `select r.*, (select (e.detail ->> 'name') || ': ' || (e.detail ->> 'message') from ${SCHEMA}.event e
                    where e.run = r.id and e.kind = 'error' order by e.id desc limit 1) as last_error
       from ${SCHEMA}.run r`,
    )
    const journal = await this.query(`select * from ${SCHEMA}.journal where key like 'once:%'`)
    const images = await this.query(`select run from ${SCHEMA}.image`)
    const messages = await this.query(`select * from ${SCHEMA}.message order by id`)
    const jobs = await this.query(
      `select data ->> 'run' as run from ${BOSS_SCHEMA}.job where name = 'default' and state < 'completed'`,
    )
    return {
      started,
      runs: runs.map(row => ({
        id: row.id,
        state: row.state,
        epoch: row.epoch,
        attempts: row.attempts,
        failures: row.failures,
        result:
          row.outcome === null || row.state === 'failed'
            ? null
            : (decodeValue(row.outcome, row.id) as Result),
        error: row.error?.message ?? row.last_error,
      })),
      events: (await this.query(`select run, kind, epoch from ${SCHEMA}.event order by id`)) as never,
      effects: (await this.query('select run, key, value, saw from effect order by id')) as never,
      journal: journal.map(({ run, key, value }) => ({
        run,
        key: key.slice('once:'.length),
        value: decodeValue(value, key),
      })),
      images: images.map(({ run }) => run),
      jobs: jobs.map(({ run }) => run),
      messages: messages.map(row => ({ run: row.run, isTaken: row.is_taken })),
    }
  }

  private query(text: string, values: unknown[] = []): Promise<Record<string, any>[]> {
    return patiently(async () => (await this.pool.query(text, values)).rows)
  }

  private log(line: string): void {
    this.options.log?.(`${((performance.now() - this.begun) / 1000).toFixed(1)} s: ${line}`)
  }
}

class WorkerProcess {
  readonly name: string
  readonly exited: Promise<number | null>
  /** It was killed or asked to drain. */
  isMeantToEnd = false
  said = ''
  errors = ''
  private readonly child: ChildProcess

  constructor(settings: WorkerSettings) {
    this.name = settings.name
    const file = new URL('./chaosworker.ts', import.meta.url).pathname
    this.child = spawn(process.execPath, [file, JSON.stringify(settings)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.child.stdout!.on('data', chunk => (this.said += String(chunk)))
    this.child.stderr!.on('data', chunk => (this.errors = (this.errors + String(chunk)).slice(-4000)))
    this.exited = new Promise(resolve => this.child.once('exit', resolve))
  }

  kill(): void {
    this.isMeantToEnd = true
    this.child.kill('SIGKILL')
  }

  pause(): void {
    this.child.kill('SIGSTOP')
  }

  continue(): void {
    this.child.kill('SIGCONT')
  }

  drain(): void {
    this.isMeantToEnd = true
    this.child.kill('SIGTERM')
  }
}

function sumOf({ start, steps }: Plan): number {
  return steps.reduce((sum, step) => (step.kind === 'compute' ? compute(sum, step.turns) : sum), start)
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** The database is restarted meanwhile: bounded, since it comes back. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === 100) throw error
      await pause(200)
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
