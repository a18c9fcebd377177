import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { packageSteps } from './package-check.ts'
import { type FileResult, quickFiles, recordDurations } from './quicktests.ts'

/**
 * `npm test`: types, lint, format, unit tests, package checks, one after the other. A passed step prints one
 * line; a failed one prints its output. A failure does not stop the run, so one run shows all failures. `npm
 * test -- src/arena` runs only the unit tests under that path. `npm run quick` (`--quick`) runs types, lint,
 * format and the quick unit tests.
 */
export interface Step {
  readonly name: string
  /** Returns the error, if there is one. */
  run(): Promise<string | undefined>
}

const root = join(import.meta.dirname, '..')
const bin = (name: string): string => join(root, 'node_modules', '.bin', name)
const isQuick = process.argv.includes('--quick')
const paths = process.argv.slice(2).filter(word => word !== '--quick')
const scratch = mkdtempSync(join(tmpdir(), 'heddle-test-'))
const vitestJson = join(scratch, 'vitest.json')
// The tests start hundreds of processes and workers, and each loads the sources. Node strips the types,
// compiles once, and keeps the result here under a hash of each file's content. This halves the CPU time of a
// boot.
const compileCache = join(root, 'node_modules', '.cache', 'compiled')

export function command(
  file: string,
  args: string[],
  options: { live?: boolean } = {},
): () => Promise<string | undefined> {
  return () =>
    new Promise(resolve => {
      const child = spawn(file, args, {
        cwd: root,
        stdio: ['ignore', options.live ? 'inherit' : 'pipe', options.live ? 'inherit' : 'pipe'],
        env: {
          ...process.env,
          NODE_COMPILE_CACHE: compileCache,
          FORCE_COLOR: process.stdout.isTTY ? '1' : '0',
          NO_COLOR: process.stdout.isTTY ? '' : '1',
        },
      })
      let said = ''
      child.stdout?.on('data', chunk => {
        said += String(chunk)
      })
      child.stderr?.on('data', chunk => {
        said += String(chunk)
      })
      child.on('error', error => resolve(`${file} did not start: ${error.message}`))
      child.on('close', code =>
        resolve(code === 0 ? undefined : said || `${file} ${args.join(' ')}: exit code ${code}`),
      )
    })
}

const unit: Step = {
  name: 'unit tests',
  run: command(
    bin('vitest'),
    [
      'run',
      `--reporter=${isQuick ? 'dot' : 'default'}`,
      '--reporter=json',
      `--outputFile.json=${vitestJson}`,
      ...(isQuick ? quickFiles(root) : paths),
    ],
    { live: !isQuick },
  ),
}

const steps: Step[] =
  paths.length > 0
    ? [unit]
    : [
        { name: 'types', run: command(bin('tsc'), ['--noEmit']) },
        { name: 'lint', run: command(bin('oxlint'), ['--deny-warnings']) },
        { name: 'format', run: command(bin('biome'), ['format']) },
        unit,
        ...(isQuick ? [] : packageSteps(root, scratch, command)),
      ]

const results: { name: string; ok: boolean; seconds: number }[] = []
for (const step of steps) {
  const start = performance.now()
  const wrong = await step.run()
  const seconds = (performance.now() - start) / 1000
  results.push({ name: step.name, ok: wrong === undefined, seconds })
  console.log(`${wrong === undefined ? '✓' : '✗'} ${step.name} (${seconds.toFixed(1)} s)`)
  if (wrong !== undefined && (step !== unit || isQuick)) console.log(wrong.trimEnd())
}

const { passed, failed, skipped, names } = unitCounts()
const otherSteps = results.filter(result => result.name !== unit.name)
const passedAll = passed + otherSteps.filter(result => result.ok).length
const unitStep = results.find(result => result.name === unit.name)
// A run that died before the count is a failure, even if no test is named.
const silent = unitStep !== undefined && !unitStep.ok && failed === 0 ? 1 : 0
const failedAll = failed + silent + otherSteps.filter(result => !result.ok).length
rmSync(scratch, { recursive: true, force: true })

console.log('\nSummary')
for (const { name, ok, seconds } of results) {
  const detail = name === unit.name ? `${passed} passed, ${failed} failed` : ok ? 'ok' : 'failed'
  console.log(
    `  ${ok ? '✓' : '✗'} ${name.padEnd(32)} ${detail.padEnd(24)} ${seconds.toFixed(1).padStart(6)} s`,
  )
}
for (const name of names) console.log(`  failed: ${name}`)
console.log(`\n${passedAll} passed, ${failedAll} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failedAll === 0 ? 0 : 1

function unitCounts(): { passed: number; failed: number; skipped: number; names: string[] } {
  try {
    const report = JSON.parse(readFileSync(vitestJson, 'utf8'))
    recordDurations(root, report.testResults)
    return {
      passed: report.numPassedTests,
      failed: report.numFailedTests + (report.numFailedTests === 0 ? report.numFailedTestSuites : 0),
      skipped: report.numPendingTests + report.numTodoTests,
      names: report.testResults.flatMap(failuresOf),
    }
  } catch {
    return { passed: 0, failed: 1, skipped: 0, names: [] }
  }
}

/** The tests of one file that failed, or the file where it failed before its first test. */
function failuresOf({ name, status, assertionResults }: FileResult): string[] {
  const file = relative(root, name)
  const tests = assertionResults.filter(test => test.status === 'failed')
  if (tests.length === 0) return status === 'failed' ? [file] : []
  return tests.map(test => `${file} > ${test.fullName}`)
}
