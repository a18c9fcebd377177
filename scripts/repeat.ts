import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * `npm run repeat -- 200 test/slow/arena [--busy]`: runs the tests under a path again and again, and stops at
 * the first failure. `--busy` keeps one core busy, because some races show only on a loaded machine.
 */
const [times, ...rest] = process.argv.slice(2)
const paths = rest.filter(arg => arg !== '--busy')
const count = Number(times)
if (!Number.isInteger(count) || count < 1 || paths.length === 0) {
  console.error(
    'usage: npm run repeat -- TIMES PATH… [--busy], for example: npm run repeat -- 200 test/slow/arena',
  )
  process.exit(2)
}
const busy = rest.includes('--busy')
  ? spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' })
  : undefined
const vitest = join(import.meta.dirname, '..', 'node_modules', '.bin', 'vitest')
const QUIET_MS = 60_000
const start = performance.now()
let told = start
let failed = 0
for (let run = 1; run <= count && failed === 0; run++) {
  const done = spawnSync(vitest, ['run', '--reporter=dot', ...paths], { encoding: 'utf8' })
  if (done.status !== 0) {
    failed = run
    console.log(done.stdout + done.stderr)
  } else if (run % 10 === 0 || run === count || performance.now() - told > QUIET_MS) {
    told = performance.now()
    console.log(`${run} of ${count} runs, ${((told - start) / 1000).toFixed(0)} s`)
  }
}
busy?.kill()
console.log(failed === 0 ? `${count} runs in a row passed` : `run ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
