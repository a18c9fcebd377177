import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { compare, median, quantile, type Row } from './harness.ts'

/** One run of a search in its own thread: steps and time. */
interface Run {
  readonly executions: number
  readonly steps: number
  readonly seconds: number
}

/** A search in its own thread. */
class Searcher {
  private readonly worker: Worker

  constructor(program: string) {
    this.worker = new Worker(new URL('./checker-worker.mjs', import.meta.url), {
      workerData: program,
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    })
  }

  async ask(what: 'search' | 'resumes'): Promise<Run> {
    this.worker.postMessage(what)
    const [run] = (await once(this.worker, 'message')) as [Run]
    return run
  }

  async close(): Promise<void> {
    await this.worker.terminate()
  }
}

const programs: readonly string[] = ['spsc', 'fibonacci', 'lastzero', 'locked']

/**
 * Steps are performed operations: those of the executions, of the prefixes that are replayed to branch, and
 * of the second run of each schedule. The search runs as in `heddle check --parallel`: in a worker with a
 * large young generation.
 */
export async function* rows(): AsyncIterable<Row> {
  for (const program of programs) {
    const searcher = new Searcher(program)
    const runs: Run[] = []
    const steps = await compare({
      row: `checker/steps-${program}`,
      unit: 'steps/s',
      against: 'a generator that is resumed',
      ours: async () => {
        const done = await searcher.ask('search')
        runs.push(done)
        return done.steps / done.seconds
      },
      base: async () => {
        const done = await searcher.ask('resumes')
        return done.steps / done.seconds
      },
      ...(program === 'spsc' && { target: { valueLeast: 8_000_000 } }),
    })
    yield steps
    const executions = runs.slice(1).map(({ executions: count, seconds }) => count / seconds)
    yield {
      row: `checker/executions-${program}`,
      value: Math.round(median(executions)),
      unit: 'executions/s',
      rounds: executions.length,
      spread: [Math.round(quantile(executions, 0.25)), Math.round(quantile(executions, 0.75))],
    }
    await searcher.close()
  }
}
