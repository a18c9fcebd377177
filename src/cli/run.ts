/** `heddle run`: runs a program. The options override those that the program gives to its kernels. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import { PROTOCOL_VARIABLE } from '../handoff/protocol.ts'
import { POLICY_TASKS_VARIABLE, POLICY_VARIABLE } from '../kernel/boot/launch.ts'
import { FALLBACK_VARIABLE, YIELD_BUDGET_VARIABLE } from '../kernel/boot/options.ts'
import { isPolicy, policyNames } from '../kernel/boot/policy.ts'
import { CommandError, EXIT_USAGE, guarded, writablePath } from './failure.ts'
import { cpuCount, milliseconds, wholeNumber } from './numbers.ts'
import {
  compileVariables,
  exitCodeOf,
  nodeArguments,
  patterns,
  programPath,
  requireFiles,
} from './program.ts'
import type { RunReport, RunRequest } from './runpreload.ts'
import { runSimulationView } from './runsim.ts'
import { runUnderTop } from './runtop.ts'
import { runUnderView } from './runview.ts'

interface RunFlags {
  cpus?: number
  slice?: number
  policy?: string
  policyNames?: string[]
  policyModules?: string[]
  yieldBudget?: number
  fallbackUs?: number
  compile?: string[]
  trace?: string
  top?: boolean
  view?: boolean
  sim?: boolean
  seed?: number
  json?: boolean
}

export function runCommand(): Command {
  return new Command('run')
    .summary('run a program, and set options of its kernels')
    .description(
      "Runs a program with the compiler's loader. Options given here override those that the program gives to a kernel.",
    )
    .argument('<file>', 'a TypeScript or JavaScript module')
    .argument('[args...]', 'arguments for the program; a -- before them is allowed')
    .passThroughOptions()
    .option('--cpus <n>', 'how many CPUs: 1 to 64', cpuCount)
    .option('--slice <ms>', 'how long a slice is', milliseconds)
    .option(
      '--policy <name>',
      `schedule with this policy: ${policyNames.join(', ')}, or a module, as in ./mine.ts`,
    )
    .option(
      '--compile <packages>',
      "also compile these, without 'use task' in them: jpeg-js,@acme/*,./lib; all; !react leaves one out",
      patterns,
    )
    .option('--policy-names <names>', 'with --policy: only tasks with these names: render *,crunch', names)
    .option(
      '--policy-modules <files>',
      'with --policy: only tasks whose functions these modules export: ./work.ts',
      names,
    )
    .option(
      '--yield-budget <n>',
      'how often a waiter at a hand-off lock yields before it blocks',
      wholeNumber,
    )
    .option('--fallback-us <us>', 'after how many microseconds such a waiter blocks', wholeNumber)
    .option('--trace <file>', 'record a trace: out.pftrace for Perfetto, out.json for the DevTools')
    .option(
      '--top',
      'watch the program while it runs; its output follows afterwards. q closes the display, Ctrl-C ends the program',
    )
    .option(
      '--view',
      'show the program on a page while it runs; prints the address. With --sim the page steps it. Ctrl-C ends both',
    )
    .option('--sim', 'run on simulated CPUs, in virtual time')
    .option('--seed <n>', 'with --sim: the same seed gives the same run', wholeNumber)
    .option(
      '--json',
      'at the end print one JSON object on standard error: the exit code, and the reports of the policies and the traces',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  heddle run --trace out.pftrace server.ts\n  heddle run --sim --seed 7 program.ts\n  heddle run --cpus 2 --policy handoff program.ts --port 8080\n  heddle run program.ts -- --help',
    )
    .action(async (file: string, args: string[], flags: RunFlags) =>
      guarded('run', flags, async () => {
        process.exitCode = await run(file, args, flags)
      }),
    )
}

/** Runs the program in a process of its own. Returns its exit code. */
async function run(file: string, args: readonly string[], flags: RunFlags): Promise<number> {
  const { seed, sim, top } = flags
  if (seed !== undefined && !sim) {
    throw new CommandError('--seed is for simulated CPUs', { exitCode: EXIT_USAGE, hint: 'add --sim' })
  }
  if (top && sim) {
    throw new CommandError('--top watches real CPUs', { exitCode: EXIT_USAGE, hint: 'leave --sim out' })
  }
  if (top && flags.json) {
    throw new CommandError('--top is for people, --json for programs', {
      exitCode: EXIT_USAGE,
      hint: 'give one of them; heddle top --json prints the state of a running program',
    })
  }
  if (flags.view && (top || flags.json)) {
    throw new CommandError(`--view and ${top ? '--top' : '--json'} exclude each other`, {
      exitCode: EXIT_USAGE,
      hint: 'give one of them',
    })
  }
  const path = programPath(file)
  const request: RunRequest = {
    ...(flags.cpus !== undefined && { cpus: flags.cpus }),
    ...(flags.slice !== undefined && { slice: flags.slice }),
    ...(flags.trace !== undefined && { trace: writablePath(flags.trace) }),
    ...(flags.view && { view: true }),
    ...(sim && { sim: { seed: seed ?? 1 } }),
  }
  const command = nodeArguments(new URL('./runpreload.ts', import.meta.url), path, args)
  const env = (wanted: RunRequest): NodeJS.ProcessEnv => ({
    ...process.env,
    ...policyVariables(flags.policy),
    ...allowlistVariables(flags),
    ...(flags.yieldBudget !== undefined && { [YIELD_BUDGET_VARIABLE]: String(flags.yieldBudget) }),
    ...(flags.fallbackUs !== undefined && { [FALLBACK_VARIABLE]: String(flags.fallbackUs) }),
    ...compileVariables(flags.compile),
    HEDDLE_RUN: JSON.stringify(wanted),
  })
  if (flags.view && sim) {
    const seeded = (wanted: number): NodeJS.ProcessEnv => env({ ...request, sim: { seed: wanted } })
    return await runSimulationView(process.execPath, command, seeded, seed ?? 1, file)
  }
  if (flags.view) return await runUnderView(process.execPath, command, env(request))
  if (top) return await runUnderTop(process.execPath, command, env(request))
  const start = (wanted: RunRequest): Promise<number> =>
    exitCodeOf(spawn(process.execPath, command, { env: env(wanted), stdio: 'inherit' }))
  return flags.json ? await reported(file, request, start) : await start(request)
}

/** Runs the program, and prints the report of the run on standard error. */
async function reported(
  file: string,
  request: RunRequest,
  start: (request: RunRequest) => Promise<number>,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-run-'))
  const report = join(folder, 'report')
  try {
    const begun = performance.now()
    const exitCode = await start({ ...request, report })
    const lines = existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n') : []
    const reports = lines.map(line => JSON.parse(line) as RunReport)
    const policies = reports.filter(one => 'policy' in one)
    const traces = reports.filter(one => 'trace' in one)
    // A simulated run prints no real time: it must print the same bytes each time.
    const ms = request.sim === undefined ? { ms: Math.round(performance.now() - begun) } : {}
    process.stderr.write(`${JSON.stringify({ file, exitCode, ...ms, policies, traces })}\n`)
    return exitCode
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Which tasks the policy schedules, for the kernels of the program (src/kernel/boot/launch.ts). */
function allowlistVariables({ policy, policyNames: named, policyModules }: RunFlags): Record<string, string> {
  if (named === undefined && policyModules === undefined) return {}
  if (policy === undefined) {
    throw new CommandError('--policy-names and --policy-modules choose the tasks of a policy', {
      exitCode: EXIT_USAGE,
      hint: 'add --policy',
    })
  }
  requireFiles('--policy-modules', policyModules ?? [])
  const modules = policyModules?.map(file => pathToFileURL(resolve(file)).href)
  return { [POLICY_TASKS_VARIABLE]: JSON.stringify({ names: named, modules }) }
}

function names(text: string): string[] {
  const list = text.split(',').map(name => name.trim())
  if (list.includes('')) throw new InvalidArgumentError('give names with a comma between them.')
  return list
}

function policyVariables(policy: string | undefined): Record<string, string> {
  if (policy === undefined) return {}
  // The path is made absolute here: the program may change its folder before it boots a kernel.
  const isPath = /[./\\]/.test(policy) && !policy.startsWith('file:')
  if (isPath ? !existsSync(policy) : !isPolicy(policy)) {
    throw new CommandError(`no policy ${policy}`, {
      exitCode: EXIT_USAGE,
      hint: `give ${policyNames.join(', ')}, or a module, as in ./mine.ts`,
    })
  }
  return {
    [POLICY_VARIABLE]: isPath ? pathToFileURL(resolve(policy)).href : policy,
    ...(policy === 'handoff' && { [PROTOCOL_VARIABLE]: 'handoff' }),
  }
}
