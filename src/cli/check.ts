/** `heddle check`: explores the interleavings of the checks in files `*.check.ts`. */
import { availableParallelism } from 'node:os'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { CheckOptions, ExplorerName } from '../checker/run/options.ts'
import { runChecks } from '../checker/run/runner.ts'
import { WatchedChecks } from '../checker/run/watched.ts'
import { CheckSource } from '../view/node-checksource.ts'
import { serveView } from '../view/node-server.ts'
import { CommandError, EXIT_USAGE, fileError, guarded, streams } from './failure.ts'
import { wholeNumber } from './numbers.ts'
import { addressLine, interrupted } from './servedpage.ts'

interface CheckFlags {
  explorer?: ExplorerName
  preemptions?: number
  depth?: number
  runs?: number
  seed?: number
  steps?: number
  executions?: number
  time?: number
  crashes?: number
  replay?: string
  only?: string
  json?: boolean
  timeline?: string
  parallel?: number
  jobs?: number
  cache?: boolean
  bail?: boolean
  keepGoing?: boolean
  patience?: number
  allowIncomplete?: boolean
  turns?: number
  memory?: 'sequential' | 'weak'
  coverage?: boolean
  coverageFile?: string
  view?: boolean
  viewFile?: string
}

export function checkCommand(): Command {
  return new Command('check')
    .summary('explore every interleaving of the checks in *.check.ts files')
    .description(
      'Runs the checks in files *.check.ts: virtual threads over shared memory, one access at a time, in every order that makes a difference. Exits with 1 when a check fails, 2 when a check is wrong, 3 when a search was incomplete.',
    )
    .argument('[paths...]', 'files, or folders with files *.check.ts', ['.'])
    .addOption(
      new Option('--explorer <name>', 'how to explore; overrides the checks').choices([
        'exhaustive',
        'preemption-bounded',
        'pct',
        'random',
        'round-robin',
      ]),
    )
    .option('--preemptions <n>', 'preemption-bounded: how many preemptions', wholeNumber)
    .option('--depth <n>', 'pct: how many ordering constraints a bug may need', wholeNumber)
    .option('--runs <n>', 'pct, random: how many executions', wholeNumber)
    .option('--seed <n>', 'pct, random: the seed of the random numbers', wholeNumber)
    .option('--steps <n>', 'how many steps an execution may have', wholeNumber)
    .option(
      '--turns <n>',
      'the most iterations in a row of a loop that only reads and changes local state',
      wholeNumber,
    )
    .option('--executions <n>', 'stop each check after this many executions', wholeNumber)
    .option('--time <ms>', 'stop each check after this many milliseconds', wholeNumber)
    .option('--crashes <n>', 'let this many threads die, at any step', wholeNumber)
    .addOption(
      new Option(
        '--memory <model>',
        'weak: plain accesses have every result that the memory model of the language allows',
      ).choices(['sequential', 'weak']),
    )
    .option('--only <text>', 'only checks whose names contain this text')
    .option('--replay <schedule>', 'run one schedule, as a report printed it')
    .option('--allow-incomplete', 'an incomplete search is no error')
    .option('--keep-going', 'continue the search after a failure')
    .option('--bail', 'stop at the first check that fails')
    .option('--jobs <n>', 'explore this many checks at a time, or `cores`: one for each core', processes)
    .option('--no-cache', 'also explore checks with a remembered result of an earlier run')
    .option('--parallel <n>', 'explore each check on this many worker threads', wholeNumber)
    .option(
      '--patience <s>',
      'end when code that is not instrumented has not returned for this many seconds',
      wholeNumber,
    )
    .option('--json', 'print one JSON object for each check')
    .option('--coverage', 'print which lines and branches of the checked files no execution reached')
    .option('--coverage-file <file>', 'write the coverage as lcov, or as JSON when the name ends in .json')
    .option('--timeline <file>', 'write a failing execution for a trace viewer')
    .option(
      '--view',
      'serve a page that shows how far the search is, and a failing execution step by step; until Ctrl-C',
    )
    .option('--view-file <file>', 'write a failing execution for `heddle view`')
    .addHelpText(
      'after',
      '\nExamples:\n  heddle check src\n  heddle check ring.check.ts --explorer pct --runs 10000\n  heddle check ring.check.ts --only "full ring" --replay 0x4.1x3',
    )
    .action(async (paths: string[], flags: CheckFlags) =>
      guarded('check', flags, async () => {
        const exitCode = await check(paths, flags)
        process.exitCode = exitCode
        // A check may have left a listener that sets another code: this one runs after it.
        process.on('exit', () => {
          process.exitCode = exitCode
        })
      }),
    )
}

/** Runs the checks. Returns the exit code. */
async function check(paths: readonly string[], flags: CheckFlags): Promise<number> {
  const { only, json, timeline, parallel, bail, replay, time, patience, allowIncomplete, ...others } = flags
  const { coverage, coverageFile, jobs, cache, view, viewFile, ...rest } = others
  const override: CheckOptions = {
    ...rest,
    ...(replay === undefined ? {} : { explorer: 'replay', schedule: replay }),
  }
  const watched = watchedBy(flags)
  const server =
    view === true && watched ? await serveView(new CheckSource(watched, paths.join(' '))) : undefined
  if (server !== undefined) streams.err(addressLine(server.url))
  const exitCode = await runChecks(
    paths,
    {
      override,
      only,
      json,
      timeline,
      parallel,
      jobs,
      cache,
      bail,
      time,
      patience,
      allowIncomplete,
      coverage,
      coverageFile,
    },
    {
      ...streams,
      live: process.stderr.isTTY === true && json !== true,
    },
    watched,
  )
  if (viewFile !== undefined && watched !== undefined) save(watched, viewFile, json === true)
  if (server !== undefined) {
    // Ctrl-C during the search has ended it; the next one ends the command.
    await interrupted()
    await server.close()
  }
  return exitCode
}

/** The searches that a page can ask again are in this process, on this thread. */
function watchedBy({ view, viewFile, parallel = 1, jobs = 1 }: CheckFlags): WatchedChecks | undefined {
  if (view !== true && viewFile === undefined) return undefined
  const other = parallel > 1 ? '--parallel' : jobs > 1 ? '--jobs' : undefined
  if (other !== undefined) {
    throw new CommandError(`${view === true ? '--view' : '--view-file'} explores on one thread`, {
      exitCode: EXIT_USAGE,
      hint: `leave ${other} out`,
    })
  }
  return new WatchedChecks()
}

function save(watched: WatchedChecks, file: string, json: boolean): void {
  try {
    if (!watched.save(file)) return
  } catch (error) {
    throw fileError(file, error, 'written')
  }
  if (!json) streams.out(`  heddle view ${file} shows the failing execution\n`)
}

function processes(text: string): number {
  if (text === 'cores') return availableParallelism()
  const value = wholeNumber(text)
  if (value === 0) throw new InvalidArgumentError('give a whole number of at least 1, or `cores`.')
  return value
}
