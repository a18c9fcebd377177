/** A process that explores checks for the main process (jobs.ts), which sends them one after the other. */
import { loadChecks } from './files.ts'
import { CheckRunner, type Tally } from './runcheck.ts'
import type { RunnerOptions } from './runneroptions.ts'

export type ToProcess =
  | { readonly kind: 'run'; readonly file: string; readonly id: string; readonly options: RunnerOptions }
  | { readonly kind: 'stop' }

export type FromProcess =
  | { readonly kind: 'progress'; readonly fraction: number }
  | {
      readonly kind: 'done'
      /** The text that the check printed. */
      readonly out: string
      readonly err: string
      readonly tally: Tally
      /** Why its result is not remembered. */
      readonly unknown: string | undefined
    }

let runner: CheckRunner | undefined

// Ctrl-C reaches the whole process group: the main process decides.
process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit())
process.on('message', (message: ToProcess) => {
  if (message.kind === 'stop') {
    if (runner !== undefined) runner.interrupted.now = true
  } else void run(message).then(tell)
})

function tell(message: FromProcess): void {
  // The main process may have ended: then this one also gets a `disconnect`.
  process.send?.(message, () => undefined)
}

async function run({
  file,
  id,
  options,
}: Extract<ToProcess, { kind: 'run' }>): Promise<Extract<FromProcess, { kind: 'done' }>> {
  let out = ''
  let err = ''
  const output = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) }
  let last = performance.now()
  runner = new CheckRunner(options, { ...output, live: false }, () => result => {
    if (result === undefined || performance.now() - last < PROGRESS_MS) return
    last = performance.now()
    tell({ kind: 'progress', fraction: result.fraction })
  })
  try {
    const check = (await loadChecks(file)).find(one => one.id === id)
    if (check === undefined) throw new Error(`${file} declares other checks than before`)
    await runner.explore(file, check)
  } finally {
    await runner.stop()
  }
  return { kind: 'done', out, err, tally: runner.tally, unknown: runner.remembered.unknown.get(file) }
}

const PROGRESS_MS = 500
