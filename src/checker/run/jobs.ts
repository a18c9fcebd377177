/**
 * Explores several checks at a time, with one process for each core that the caller allows. A process gets
 * one check after the other and prints nothing: it sends its text here. If a process ends during a check,
 * only that check is lost.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { shorten } from '../report/paths.ts'
import { count, plural } from '../report/report.ts'
import { Durations } from './durations.ts'
import type { FromProcess, ToProcess } from './jobprocess.ts'
import { formatSeconds, ProgressLine, type RunnerOutput } from './progress.ts'
import { type CheckRunner, type CheckToRun, isOver, type Tally } from './runcheck.ts'
import type { RunnerOptions } from './runneroptions.ts'

export async function runInProcesses(
  checks: readonly CheckToRun[],
  runner: CheckRunner,
  options: RunnerOptions,
  output: RunnerOutput,
): Promise<void> {
  if (checks.length === 0) return
  await new Processes(checks, runner, options, output).run()
}

interface Running {
  readonly job: CheckToRun
  readonly since: number
  /** An estimate of the part that is done, from 0 to 1. */
  fraction: number
}

class Processes {
  private readonly waiting: CheckToRun[]
  private readonly total: number
  private readonly runner: CheckRunner
  private readonly options: RunnerOptions
  private readonly output: RunnerOutput
  private readonly durations = new Durations()
  private readonly running = new Map<ChildProcess, Running>()
  private readonly line: ProgressLine
  private readonly started = performance.now()

  constructor(
    checks: readonly CheckToRun[],
    runner: CheckRunner,
    options: RunnerOptions,
    output: RunnerOutput,
  ) {
    this.runner = runner
    this.options = options
    this.output = output
    this.line = new ProgressLine(output)
    this.total = checks.length
    // The longest first, so that no long one runs alone at the end.
    this.waiting = [...checks].sort((a, b) => this.durations.expected(b) - this.durations.expected(a))
  }

  private get size(): number {
    return Math.min(this.options.jobs ?? 1, this.total)
  }

  async run(): Promise<void> {
    const timer = setInterval(() => {
      if (this.runner.interrupted.now) this.stopAll()
      this.line.show(() => this.state())
    }, 250)
    try {
      await Promise.all(Array.from({ length: this.size }, () => this.serve()))
    } finally {
      clearInterval(timer)
      this.line.clear()
    }
  }

  /** Runs checks in one process at a time until none is left. */
  private async serve(): Promise<void> {
    let child: ChildProcess | undefined
    for (;;) {
      const isStopped = this.runner.interrupted.now || isOver(this.options, this.runner.tally)
      const job = isStopped ? undefined : this.waiting.shift()
      if (job === undefined) break
      child ??= startProcess()
      const ended = await this.give(child, job)
      if (ended) child = undefined
    }
    if (isOver(this.options, this.runner.tally)) this.stopAll()
    child?.disconnect()
  }

  /** Lets the process run the check, and takes over the result. True if the process ended instead. */
  private give(child: ChildProcess, job: CheckToRun): Promise<boolean> {
    return new Promise(resolve => {
      const running: Running = { job, since: performance.now(), fraction: 0 }
      this.running.set(child, running)
      const finish = (hasEnded: boolean): void => {
        child.off('message', onMessage)
        child.off('exit', onExit)
        this.running.delete(child)
        resolve(hasEnded)
      }
      const onMessage = (message: FromProcess): void => {
        if (message.kind === 'progress') running.fraction = message.fraction
        else {
          this.take(message, running)
          finish(false)
        }
      }
      const onExit = (code: number | null, signal: string | null): void => {
        this.runner.tally.wrong++
        this.line.clear()
        this.output.err(
          `✗ ${job.check.name} (${shorten(job.file)}): the process that explored it ended ${signal === null ? `with code ${code}` : `by ${signal}`}\n`,
        )
        finish(true)
      }
      child.on('message', onMessage)
      child.on('exit', onExit)
      const { file, check } = job
      child.send({ kind: 'run', file, id: check.id, options: this.options } satisfies ToProcess)
    })
  }

  private take({ out, err, tally, unknown }: Extract<FromProcess, { kind: 'done' }>, running: Running): void {
    this.line.clear()
    if (out !== '') this.output.out(out)
    if (err !== '') this.output.err(err)
    for (const name of Object.keys(tally) as (keyof Tally)[]) this.runner.tally[name] += tally[name]
    if (unknown !== undefined) this.runner.remembered.unknown.set(running.job.file, unknown)
    this.durations.record(running.job, (performance.now() - running.since) / 1000)
  }

  private stopAll(): void {
    for (const child of this.running.keys())
      if (child.connected) child.send({ kind: 'stop' } satisfies ToProcess)
  }

  /** The progress of the run, and an estimate of the remaining time. */
  private state(): string {
    const done = this.total - this.waiting.length - this.running.size
    const now = performance.now()
    const seconds = [...this.running.values()].map(({ job, since, fraction }) => {
      const spent = (now - since) / 1000
      const whole = fraction > 0.01 ? spent / fraction : this.durations.expected(job)
      return Math.max(0, whole - spent)
    })
    const rest = this.waiting.reduce((sum, job) => sum + this.durations.expected(job), 0)
    const left = Math.max((rest + seconds.reduce((a, b) => a + b, 0)) / this.size, ...seconds)
    const estimate = this.durations.isKnown
      ? `about ${formatSeconds(left)} left`
      : 'the first ones are running'
    const names = [...this.running.values()].map(
      ({ job, fraction }) =>
        `${shorten(job.file)} ${job.check.name}${fraction > 0 ? ` ${(100 * fraction).toFixed(0)} %` : ''}`,
    )
    const text = `${count(done)} of ${plural(this.total, 'check')} after ${formatSeconds((now - this.started) / 1000)}, ${estimate}; now: ${names.join(', ')}`
    const columns = this.output.live ? (process.stderr.columns ?? 80) - 1 : Number.POSITIVE_INFINITY
    return text.slice(0, columns)
  }
}

function startProcess(): ChildProcess {
  const script = new URL('./jobprocess.ts', import.meta.url)
  return fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}
