/** `heddle doctor main.ts`: lists functions that keep a CPU, and how to make them preemptible. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { compile } from '../compiler/compile.ts'
import { moduleOf, Selection } from '../compiler/loading/selection.ts'
import { guarded } from './failure.ts'
import { milliseconds, wholeNumber } from './numbers.ts'
import { compileVariables, exitCodeOf, nodeArguments, patterns, programPath } from './program.ts'
import { type CallFrame, DOCTOR_VARIABLE, type Stretch, type ThreadReport } from './stretches.ts'
import { formatMs } from './terminal.ts'

interface DoctorFlags {
  json?: boolean
  compile?: string[]
  atLeast: number
  top: number
}

export function doctorCommand(): Command {
  return new Command('doctor')
    .summary(
      'run a program, and list the functions that keep a CPU for long, and how to make them preemptible',
    )
    .description(
      'Runs a program to its end with a profiler in each of its threads. Then lists the functions that kept a thread longest without a safepoint, with their packages, and the option or the line that makes them preemptible.',
    )
    .argument('<file>', 'a TypeScript or JavaScript module')
    .argument('[args...]', 'arguments for the program')
    .passThroughOptions()
    .option('--compile <packages>', 'as for heddle run: to see its effect', patterns)
    .option('--at-least <ms>', 'the shortest time to list', milliseconds, 10)
    .option('--top <n>', 'how many functions to list', wholeNumber, 10)
    .option('--json', 'print one JSON object on standard error')
    .addHelpText(
      'after',
      '\nExamples:\n  heddle doctor server.ts\n  heddle doctor --compile jpeg-js server.ts',
    )
    .action(async (file: string, args: string[], flags: DoctorFlags) =>
      guarded('doctor', flags, async () => {
        process.exitCode = await doctor(file, args, flags)
      }),
    )
}

/** One function of the list. */
interface Finding {
  readonly function: string
  readonly place: string
  readonly package: string
  readonly builtIn: string | null
  readonly longestMs: number
  readonly totalMs: number
  readonly times: number
  readonly threads: readonly string[]
  readonly advice: string
}

async function doctor(file: string, args: readonly string[], flags: DoctorFlags): Promise<number> {
  const path = programPath(file)
  const folder = mkdtempSync(join(tmpdir(), 'heddle-doctor-'))
  const report = join(folder, 'report')
  try {
    const env = { ...process.env, ...compileVariables(flags.compile), [DOCTOR_VARIABLE]: report }
    const command = nodeArguments(new URL('./doctorpreload.ts', import.meta.url), path, args)
    const code = await exitCodeOf(spawn(process.execPath, command, { env, stdio: 'inherit' }))
    const lines = existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n') : []
    const reports = lines.map(line => JSON.parse(line) as ThreadReport)
    const findings = findingsOf(reports, flags)
    if (flags.json) process.stderr.write(`${JSON.stringify({ file, exitCode: code, findings })}\n`)
    else process.stderr.write(textOf(findings, reports, flags))
    return code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function findingsOf(
  reports: readonly ThreadReport[],
  { atLeast, top, compile: wanted }: DoctorFlags,
): Finding[] {
  const groups = new Map<string, { stretch: Stretch; all: { ms: number; thread: string }[] }>()
  for (const { thread, stretches } of reports) {
    for (const stretch of stretches) {
      if (stretch.ms < atLeast) continue
      const { functionName, url, lineNumber } = stretch.hot
      const key = `${functionName} ${url} ${lineNumber} ${stretch.builtIn}`
      const group = groups.get(key) ?? { stretch, all: [] }
      group.all.push({ ms: stretch.ms, thread })
      groups.set(key, group)
    }
  }
  const selection = new Selection()
  selection.add(wanted ?? [])
  return [...groups.values()]
    .map(({ stretch, all }) => {
      const file = fileOf(stretch.hot)
      return {
        function: stretch.hot.functionName || '(anonymous)',
        place: `${relative(process.cwd(), file)}:${stretch.hot.lineNumber + 1}`,
        package: moduleOf(file).name,
        builtIn: stretch.builtIn,
        longestMs: Math.max(...all.map(({ ms }) => ms)),
        totalMs: all.reduce((sum, { ms }) => sum + ms, 0),
        times: all.length,
        threads: [...new Set(all.map(({ thread }) => thread))].sort(),
        advice: adviceFor(stretch, file, selection),
      }
    })
    .sort((left, right) => right.longestMs - left.longestMs)
    .slice(0, top)
}

function fileOf({ url }: CallFrame): string {
  return url.startsWith('file:') ? fileURLToPath(url) : url
}

/** How to make the function preemptible. */
function adviceFor({ hot, builtIn }: Stretch, file: string, selection: Selection): string {
  if (builtIn !== null) {
    return `${builtIn} is a function of the engine and runs to its end: give it smaller inputs`
  }
  const { name } = moduleOf(file)
  const isForeign = /[\\/]node_modules[\\/]/.test(file)
  if (selection.includes(file)) return whyPlain(hot, file, true)
  if (isForeign) return `--compile ${name}, or "heddle": { "compile": ["${name}"] } in package.json`
  return whyPlain(hot, file, false)
}

/** For code that could be compiled: the directive that is missing, or the reason why it stays plain. */
function whyPlain(hot: CallFrame, file: string, whole: boolean): string {
  try {
    const source = readFileSync(file, 'utf8')
    const { stats } = compile(source, file, { whole, sourcemap: false })
    const line = hot.lineNumber + 1
    const stat = stats.find(one => one.line === line) ?? stats.find(one => one.name === hot.functionName)
    if (stat?.form === 'plain' && stat.why !== 'not marked') return `it stays plain: ${stat.why}`
    if (stat?.form === 'twin') {
      const called = longBuiltIns(source, stat.line)
      return called.length === 0
        ? 'it is compiled, but its caller is not compiled or is a built-in'
        : `it is compiled; ${called.join(', ')} in it run to their end: give them smaller inputs`
    }
  } catch {}
  return `begin it with 'use task', and run it as a task`
}

/** Functions of the engine that run long on large inputs, in the next lines. */
function longBuiltIns(source: string, line: number): string[] {
  const text = source
    .split('\n')
    .slice(line - 1, line + 40)
    .join('\n')
  const known: [RegExp, string][] = [
    [/JSON\.parse\([^()]*,/, 'JSON.parse with a reviver'],
    [/structuredClone\(/, 'structuredClone'],
    [/\.(?:toS|s)ort(?:ed)?\(\)/, 'sort of objects'],
    [/\.(?:match|matchAll|replace|replaceAll|search|split|exec|test)\(/, 'regular expressions'],
    [/\.(?:join|repeat|concat|padEnd|padStart)\(/, 'work on long strings'],
  ]
  return known.flatMap(([pattern, name]) => (pattern.test(text) ? [name] : []))
}

function textOf(
  findings: readonly Finding[],
  reports: readonly ThreadReport[],
  { atLeast }: DoctorFlags,
): string {
  const threads = reports.map(({ thread }) => thread).sort()
  if (threads.length === 0)
    return 'heddle doctor: no thread of the program ended by itself, so there is no report; let the program return\n'
  const head = `heddle doctor: ${threads.length} threads (${threads.join(', ')})`
  if (findings.length === 0) return `${head}: nothing ran for ${atLeast} ms without a safepoint\n`
  const rows = findings.map(
    ({ function: name, place, package: from, builtIn, longestMs, times, threads: on, advice }) => {
      const what = builtIn === null ? name : `${builtIn} in ${name}`
      const often = times === 1 ? '' : `, ${times} times`
      return `  ${formatMs(longestMs).padStart(9)}  ${what}  ${place}${from === '' ? '' : `  (${from})`}${often}  on ${on.join(', ')}\n             ${advice}`
    },
  )
  return `${head}. Longest without a safepoint:\n${rows.join('\n')}\n`
}
