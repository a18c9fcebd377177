import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import { lockChaos } from '../test/slow/chaos/lockchaos.ts'
import { moveChaos } from '../test/slow/chaos/movechaos.ts'

/**
 * `npm run chaos -- [--of locks] [--seeds 100] [--from 1] [--tasks 3000] [--deaths 60] [--busy 1]
 * [--limit 120]`: runs the lock chaos for many seeds, each in its own process, with `busy` cores kept busy.
 * When a run fails or exceeds the limit (seconds), it prints every death and its reason. With `--of moves`:
 * the move chaos, which decides itself how many CPUs die; 10,000 tasks take some minutes, and the limit is
 * half an hour.
 */
const { values } = parseArgs({
  options: {
    of: { type: 'string', default: 'locks' },
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    tasks: { type: 'string', default: '3000' },
    deaths: { type: 'string', default: '60' },
    busy: { type: 'string', default: '1' },
    limit: { type: 'string' },
    /** One run, in this process. */
    seed: { type: 'string' },
  },
})
const tasks = Number(values.tasks)
const limit = Number(values.limit ?? (values.of === 'moves' ? 1800 : 120))
if (values.of !== 'locks' && values.of !== 'moves') {
  console.error(`chaos: --of ${values.of} is no chaos; give locks or moves`)
  process.exit(2)
}

/** Ends when its parent process ends. */
const BUSY = 'const parent = process.ppid; while (process.ppid === parent);'

if (values.seed !== undefined && values.of === 'moves') {
  const log = (line: string): void => console.log(line)
  const { unexpected, ...report } = await moveChaos({ seed: Number(values.seed), tasks, log })
  console.log(JSON.stringify(report))
  process.exitCode = unexpected.length > 0 || Object.keys(report.left).length > 0 ? 1 : 0
} else if (values.seed !== undefined) {
  const { deaths, outcomes, unexpected } = await lockChaos({
    seed: Number(values.seed),
    tasks,
    deaths: Number(values.deaths),
    log: line => console.log(line),
  })
  const late = deaths.filter(death => death.late)
  console.log(
    `${deaths.length} deaths, ${late.length} of them after the killing; ${JSON.stringify(outcomes)}`,
  )
  const thrown = deaths.filter(({ why }) => !why.startsWith('terminated'))
  if (thrown.length > 0) console.log(`not terminated: ${thrown.map(({ why }) => why).join('\n')}`)
  process.exitCode = unexpected.length > 0 || thrown.length > 0 ? 1 : 0
} else {
  const busy = Array.from({ length: Number(values.busy) }, () =>
    spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }),
  )
  let failed = 0
  const first = Number(values.from)
  const last = first + Number(values.seeds) - 1
  for (let seed = first; seed <= last; seed++) if (!(await runSeed(seed))) failed++
  for (const child of busy) child.kill()
  console.log(
    failed === 0 ? `seeds ${first} to ${last} passed` : `${failed} of the seeds ${first} to ${last} failed`,
  )
  process.exitCode = failed === 0 ? 0 : 1
}

function runSeed(seed: number): Promise<boolean> {
  return new Promise(resolve => {
    const started = performance.now()
    const child = spawn(
      process.execPath,
      [
        ...process.execArgv,
        import.meta.filename,
        '--of',
        values.of,
        '--seed',
        String(seed),
        '--tasks',
        values.tasks,
        '--deaths',
        values.deaths,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let said = ''
    child.stdout.on('data', data => (said += String(data)))
    child.stderr.on('data', data => (said += String(data)))
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill('SIGKILL')
    }, limit * 1000)
    child.once('exit', code => {
      clearTimeout(timer)
      const passed = code === 0 && !late
      const seconds = ((performance.now() - started) / 1000).toFixed(1)
      const what = passed
        ? said.trim().split('\n').at(-1)
        : `${late ? 'did not end' : `code ${code}`}\n${said}`
      console.log(`seed ${seed}, ${seconds} s: ${what}`)
      resolve(passed)
    })
  })
}
