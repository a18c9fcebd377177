import { writeFileSync } from 'node:fs'
import { coverage } from '../report/coverage.ts'
import { formatCoverage, toLcov } from '../report/coveragereport.ts'
import { shorten } from '../report/paths.ts'
import { count, plural } from '../report/report.ts'
import { findCheckFiles, loadChecks } from './files.ts'
import { runInProcesses } from './jobs.ts'
import { coverChecks } from './loader.ts'
import type { RunnerOutput } from './progress.ts'
import { CheckRunner, type CheckToRun, isOver, type Tally } from './runcheck.ts'
import { isCovering, type RunnerOptions } from './runneroptions.ts'
import type { WatchedChecks } from './watched.ts'

/** Exit codes of the process. */
const PASSED = 0
const FAILED = 1
const WRONG = 2
const INCOMPLETE = 3
const INTERRUPTED = 130

/**
 * Runs the checks of all files under the paths, and prints their results. Returns the exit code. With
 * `watched`, for a page, all checks are explored in this process and on this thread.
 */
export async function runChecks(
  paths: readonly string[],
  options: RunnerOptions,
  output: RunnerOutput,
  watched?: WatchedChecks,
): Promise<number> {
  if (isCovering(options)) coverChecks()
  let files: string[]
  try {
    files = findCheckFiles(paths)
  } catch (error) {
    output.err(`heddle check: ${(error as Error).message}\n`)
    return WRONG
  }
  if (files.length === 0) {
    output.err(`heddle check: no files *.check.ts under ${paths.join(', ')}\n`)
    return WRONG
  }
  const runner = new CheckRunner(options, output, undefined, watched)
  const onInterrupt = (): void => {
    runner.interrupted.now = true
  }
  process.on('SIGINT', onInterrupt)
  const onExit = (): void => {
    output.err(
      `\n✗ ${runner.label}: the process ended there, before the checks did: let a check call no process.exit(), and await nothing that never settles\n`,
    )
    process.exitCode = WRONG
  }
  process.on('exit', onExit)
  try {
    if ((options.jobs ?? 1) > 1 && !isCovering(options)) await runTogether(files, runner, options, output)
    else await runInTurn(files, runner, options, output)
  } finally {
    process.off('SIGINT', onInterrupt)
    process.off('exit', onExit)
    await runner.stop()
    watched?.over()
  }
  return conclude(runner, options, output)
}

/** Runs the checks one after the other in this process. */
async function runInTurn(
  files: readonly string[],
  runner: CheckRunner,
  options: RunnerOptions,
  output: RunnerOutput,
): Promise<void> {
  for (const file of files) {
    runner.pat(shorten(file))
    for (const { check } of await declaredIn(file, options, output, runner.tally)) {
      if (runner.interrupted.now || isOver(options, runner.tally)) break
      if (!runner.recall(file, check)) await runner.explore(file, check)
    }
  }
}

/** Runs several checks at a time. Remembered checks need no process. */
async function runTogether(
  files: readonly string[],
  runner: CheckRunner,
  options: RunnerOptions,
  output: RunnerOutput,
): Promise<void> {
  const all: CheckToRun[] = []
  for (const file of files) {
    runner.pat(shorten(file))
    all.push(...(await declaredIn(file, options, output, runner.tally)))
  }
  const rest = all.filter(({ file, check }) => !runner.interrupted.now && !runner.recall(file, check))
  if (isOver(options, runner.tally)) return
  await runner.unwatch()
  await runInProcesses(rest, runner, options, output)
}

async function declaredIn(
  file: string,
  { only }: RunnerOptions,
  output: RunnerOutput,
  tally: Tally,
): Promise<CheckToRun[]> {
  try {
    const checks = await loadChecks(file)
    return checks
      .map(check => ({ file, check }))
      .filter(({ check }) => only === undefined || check.name.includes(only))
  } catch (error) {
    tally.wrong++
    output.err(`✗ ${shorten(file)}: ${(error as Error).message}\n`)
    return []
  }
}

/** Prints the counts. Returns the exit code. */
function conclude(runner: CheckRunner, options: RunnerOptions, output: RunnerOutput): number {
  const { passed, failed, wrong, incomplete, accepted, remembered } = runner.tally
  const ran = passed + failed + wrong + incomplete
  if (options.json !== true) {
    const counts = [
      `${count(passed)} passed`,
      incomplete > 0 ? `${count(incomplete)} incomplete` : '',
      `${count(failed)} failed`,
      wrong > 0 ? `${count(wrong)} could not be run` : '',
      remembered > 0 ? `${count(remembered)} of them remembered` : '',
    ]
    output.out(`\n${plural(ran, 'check')}: ${counts.filter(text => text !== '').join(', ')}\n`)
    for (const [file, why] of runner.remembered.unknown)
      output.out(`not remembered: ${shorten(file)}: ${why}\n`)
  }
  if (isCovering(options)) tellCoverage(options, output)
  if (runner.interrupted.now) return INTERRUPTED
  if (ran === 0) {
    output.err(`heddle check: no check has ${JSON.stringify(options.only)} in its name\n`)
    return WRONG
  }
  if (failed > 0) return FAILED
  if (wrong > 0) return WRONG
  return incomplete > accepted ? INCOMPLETE : PASSED
}

function tellCoverage({ coverageFile, json }: RunnerOptions, output: RunnerOutput): void {
  const files = coverage()
  if (json === true) output.out(`${JSON.stringify({ coverage: files })}\n`)
  else output.out(`\n${formatCoverage(files)}\n`)
  if (coverageFile !== undefined)
    writeFileSync(coverageFile, coverageFile.endsWith('.json') ? JSON.stringify(files) : toLcov(files))
}
