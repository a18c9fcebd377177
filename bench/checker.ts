import { Worker } from 'node:worker_threads'
import { measure, type Row } from './harness.ts'

/** One run of a search in a thread of its own: what it did in how long. */
interface Run {
  readonly executions: number
  readonly steps: number
  readonly seconds: number
}

/**
 * Steps are operations performed: those of the executions, of the prefixes that are replayed to branch off, and of the
 * second run of each schedule. The search runs as in `heddle check --parallel`: in a worker with room for young objects.
 */
function run(program: string): Promise<Run> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./checker-worker.mjs', import.meta.url), {
      workerData: program,
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

const programs: readonly string[] = ['spsc', 'fibonacci', 'lastzero', 'locked']

export async function* rows(): AsyncIterable<Row> {
  for (const program of programs) {
    const runs: Run[] = []
    const once = async (): Promise<number> => {
      const done = await run(program)
      runs.push(done)
      return done.steps / done.seconds
    }
    const target = program === 'spsc' ? ({ valueLeast: 8_000_000 } as const) : undefined
    yield await measure(`checker/steps-${program}`, 'steps/s', once, { rounds: 5, target })
    let next = 0
    const executions = (): number => {
      const { executions: count, seconds } = runs[next++ % runs.length]
      return count / seconds
    }
    yield await measure(`checker/executions-${program}`, 'executions/s', executions, { rounds: 5 })
  }
}
