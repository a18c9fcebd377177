#!/usr/bin/env node
import { createRequire } from 'node:module'
import { Command } from 'commander'
import { benchCommand } from './bench.ts'
import { checkCommand } from './check.ts'
import { compileCommand } from './compile.ts'
import { completionCommand } from './completion.ts'
import { doctorCommand } from './doctor.ts'
import { EXIT_USAGE } from './failure.ts'
import { runCommand } from './run.ts'
import { runsCommand } from './runs.ts'
import { selftest } from './selftest.ts'
import { topCommand } from './top/top.ts'
import { traceCommand } from './trace.ts'
import { viewCommand } from './view.ts'
import { workCommand } from './work.ts'

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

const heddle = new Command('heddle')
  .description('A preemptive multicore runtime for TypeScript.')
  .version(version, '-v, --version', 'print the version')
  .showHelpAfterError('(heddle --help lists the commands)')
  .enablePositionalOptions()

heddle
  .command('selftest')
  .summary('test shared memory, halts, ticks and a crash on two real CPUs')
  .description(
    'Boots two real CPUs, tests shared memory, halts, ticks and a crash on them, and prints the results.',
  )
  .option('--json', 'print one JSON object')
  .action(async ({ json }: { json?: boolean }) => {
    process.exitCode = await selftest(json)
  })

heddle.addCommand(runCommand())
heddle.addCommand(doctorCommand())
heddle.addCommand(checkCommand())
heddle.addCommand(compileCommand())
heddle.addCommand(benchCommand())
heddle.addCommand(topCommand())
heddle.addCommand(viewCommand())
heddle.addCommand(traceCommand())
heddle.addCommand(workCommand())
heddle.addCommand(runsCommand())
heddle.addCommand(completionCommand())

// Errors of commander (an unknown option, a missing argument) have the exit code of bad arguments too, and
// name the help of their own command.
function refuseWith2(command: Command, words: string): void {
  command.exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EXIT_USAGE))
  if (command !== heddle) command.showHelpAfterError(`(${words} --help shows its arguments)`)
  for (const each of command.commands) refuseWith2(each, `${words} ${each.name()}`)
}
refuseWith2(heddle, 'heddle')

// The reader of our output may close the pipe, as head does.
process.stdout.on('error', error => {
  if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  process.exit()
})
await heddle.parseAsync()
