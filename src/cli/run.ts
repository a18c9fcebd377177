/** `heddle run`: a program, with what is said here about the kernels that it boots. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Command, InvalidArgumentError } from 'commander'
import { CPU_MAX } from '../arena/sync/thread.ts'
import { PROTOCOL_VARIABLE } from '../handoff/protocol.ts'
import { COMPILE_VARIABLE, patternList, patternText } from '../compiler/loading/selection.ts'
import { POLICY_TASKS_VARIABLE, POLICY_VARIABLE } from '../kernel/boot/launch.ts'
import { FALLBACK_VARIABLE, YIELD_BUDGET_VARIABLE } from '../kernel/boot/options.ts'
import { isPolicy, policyNames } from '../kernel/boot/policy.ts'
import { CommandError, EXIT_USAGE } from './failure.ts'
import type { RunReport, RunRequest } from './runpreload.ts'
import { runUnderTop } from './runtop.ts'

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
  sim?: boolean
  seed?: number
  json?: boolean
}

export function runCommand(): Command {
  return new Command('run')
    .summary('run a program, and say how its kernels are to be')
    .description(
      "Runs a program with the compiler's loader in place. What is said here goes before what the program says when it boots a kernel.",
    )
    .argument('<file>', 'a TypeScript or JavaScript module')
    .argument('[args...]', 'arguments for the program, after -- or as they are')
    .passThroughOptions()
    .option('--cpus <n>', 'how many CPUs: 1 to 64', cpuCount)
    .option('--slice <ms>', 'how long a slice is', positive)
    .option(
      '--policy <name>',
      `schedule with this policy: ${policyNames.join(', ')}, or a module, as in ./mine.ts`,
    )
    .option(
      '--compile <packages>',
      "compile these too, though nothing in them says 'use task': jpeg-js,@acme/*,./lib; all; !react leaves one out",
      patterns,
    )
    .option('--policy-names <names>', 'only tasks with such a name: render *,crunch', names)
    .option('--policy-modules <files>', 'only tasks whose functions these modules export: ./work.ts', names)
    .option('--yield-budget <n>', 'how often a hand-off lock gives way before it waits for real', wholeNumber)
    .option('--fallback-us <us>', 'and for how many microseconds', wholeNumber)
    .option('--trace <file>', 'record a trace: out.pftrace for Perfetto, out.json for the DevTools')
    .option(
      '--top',
      'watch it while it runs; what it prints is shown afterwards. q leaves the picture, Ctrl-C ends the program',
    )
    .option('--sim', 'on simulated CPUs, in virtual time')
    .option('--seed <n>', 'with --sim: the same seed gives the same run', wholeNumber)
    .option(
      '--json',
      'when it has ended, print one JSON object on standard error: its exit code, and what the policy and the traces say',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  heddle run --trace out.pftrace server.ts\n  heddle run --sim --seed 7 program.ts\n  heddle run --cpus 2 --policy handoff program.ts --port 8080\n  heddle run program.ts -- --help',
    )
    .action(async (file: string, args: string[], flags: RunFlags) => {
      try {
        process.exitCode = await run(file, args, flags)
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        error.end('run', flags.json)
      }
    })
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
      hint: 'give one of them; heddle top --json looks at a program that runs',
    })
  }
  const path = resolve(file)
  if (!existsSync(path)) {
    throw new CommandError(`no file ${file}`, {
      exitCode: EXIT_USAGE,
      hint: `the path is taken from ${process.cwd()}`,
    })
  }
  if (statSync(path).isDirectory()) {
    throw new CommandError(`${file} is a folder`, { exitCode: EXIT_USAGE, hint: 'name one file in it' })
  }
  const request: RunRequest = {
    ...(flags.cpus !== undefined && { cpus: flags.cpus }),
    ...(flags.slice !== undefined && { slice: flags.slice }),
    ...(flags.trace !== undefined && { trace: resolve(flags.trace) }),
    ...(sim && { sim: { seed: seed ?? 1 } }),
  }
  // `run file.ts -- args` is the same as without the dashes: they are ours.
  const own = args[0] === '--' ? args.slice(1) : args
  const preload = ['--import', new URL('./runpreload.ts', import.meta.url).href]
  const command = [...process.execArgv, ...preload, path, ...own]
  const env = (wanted: RunRequest): NodeJS.ProcessEnv => ({
    ...process.env,
    ...policyVariables(flags.policy),
    ...allowlistVariables(flags),
    ...(flags.yieldBudget !== undefined && { [YIELD_BUDGET_VARIABLE]: String(flags.yieldBudget) }),
    ...(flags.fallbackUs !== undefined && { [FALLBACK_VARIABLE]: String(flags.fallbackUs) }),
    ...compileVariables(flags.compile),
    HEDDLE_RUN: JSON.stringify(wanted),
  })
  if (top) return await runUnderTop(process.execPath, command, env(request))
  const start = (wanted: RunRequest): Promise<number> =>
    ended(spawn(process.execPath, command, { env: env(wanted), stdio: 'inherit' }))
  return flags.json ? await reported(file, request, start) : await start(request)
}

/** Runs it, and prints what there is to say of the run. Its standard output is its own. */
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
    // Real time is no part of a run in virtual time, which is to give the same bytes again.
    const ms = request.sim === undefined ? { ms: Math.round(performance.now() - begun) } : {}
    process.stderr.write(`${JSON.stringify({ file, exitCode, ...ms, policies, traces })}\n`)
    return exitCode
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The launcher's part of src/kernel/boot/launch.ts: what the program's kernels find in their environment. */
/** Which tasks the policy schedules. Modules are paths, taken from here. */
function allowlistVariables({ policy, policyNames: named, policyModules }: RunFlags): Record<string, string> {
  if (named === undefined && policyModules === undefined) return {}
  if (policy === undefined) {
    throw new CommandError('--policy-names and --policy-modules say which tasks a policy schedules', {
      exitCode: EXIT_USAGE,
      hint: 'add --policy',
    })
  }
  const missing = policyModules?.find(file => !existsSync(file))
  if (missing !== undefined) {
    throw new CommandError(`--policy-modules: no file ${missing}`, {
      exitCode: EXIT_USAGE,
      hint: `the path is taken from ${process.cwd()}`,
    })
  }
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
  // A path is taken from here; the program may go elsewhere before it boots.
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

/**
 * What the loader of the program, and of its CPUs, finds in the environment (compiler/loading/selection.ts).
 */
export function compileVariables(asked: readonly string[] | undefined): Record<string, string> {
  if (asked === undefined) return {}
  const own = asked.map(pattern => patternText(pattern, process.cwd()))
  const inherited = process.env[COMPILE_VARIABLE]
  return { [COMPILE_VARIABLE]: (inherited ? [inherited, ...own] : own).join(',') }
}

/** The option may be given more than once. */
export function patterns(text: string, before: readonly string[] = []): string[] {
  const list = patternList(text) as string[]
  if (list.length === 0) throw new InvalidArgumentError('give names of packages, with commas between them.')
  return [...before, ...list]
}

/** Ctrl-C goes to the program too: it decides when it ends, and this waits for that. */
export async function ended(child: ChildProcess): Promise<number> {
  const patience = (): void => undefined
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal)
  process.on('SIGINT', patience)
  process.on('SIGTERM', forward)
  try {
    return await new Promise((done, fail) => {
      child.once('error', fail)
      child.once('exit', (code, signal) => {
        done(code ?? 128 + (signal === null ? 0 : constants.signals[signal]))
      })
    })
  } finally {
    process.off('SIGINT', patience)
    process.off('SIGTERM', forward)
  }
}

function cpuCount(text: string): number {
  const value = wholeNumber(text)
  if (value < 1 || value > CPU_MAX) throw new InvalidArgumentError(`give a number from 1 to ${CPU_MAX}.`)
  return value
}

function wholeNumber(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isInteger(value) || value < 0)
    throw new InvalidArgumentError('give a whole number.')
  return value
}

function positive(text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('give a number of milliseconds above 0.')
  return value
}
