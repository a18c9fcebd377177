/** `heddle compile file.ts`: the compiled file, or statistics and diagnostics of it. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Command, Option } from 'commander'
import { fileError, type Output, streams } from './failure.ts'
import { compile, type CompileResult, type Diagnostic, type FunctionStat } from '../compiler/compile.ts'
import { moduleKey } from '../compiler/loading/modulekey.ts'
import { importedCostsOf } from '../compiler/loading/neighbours.ts'

export interface CompileFlags {
  stats?: boolean
  json?: boolean
  whole?: boolean
  mode?: 'task' | 'checker'
  lowering?: 'frames' | 'generator'
  movable?: boolean
}

export function compileCommand(): Command {
  return new Command('compile')
    .summary("print a file with its 'use task' functions compiled")
    .description(
      "Prints a module as the compiler writes it, with functions marked 'use task' made preemptible.",
    )
    .argument('<file>', 'a TypeScript, JSX or JavaScript module')
    .option('--whole', 'compile every function, marked or not, as heddle run --compile does')
    .option('--stats', 'print, instead of the code, which functions have a twin, which stay plain, and why')
    .option('--movable', "let every marked function move between CPUs, as 'use task movable' does")
    .option('--json', 'print one JSON object: code, stats and diagnostics (with --stats: no code)')
    .addOption(
      new Option('--mode <mode>', 'what to compile for').choices(['task', 'checker']).default('task'),
    )
    .addOption(
      new Option(
        '--lowering <name>',
        'how to make functions preemptible; by default the compiler chooses for each function',
      ).choices(['frames', 'generator']),
    )
    .addHelpText('after', '\nExamples:\n  heddle compile work.ts\n  heddle compile work.ts --stats')
    .action((file: string, flags: CompileFlags) => {
      process.exitCode = compileFile(file, flags, streams)
    })
}

/** Compiles one file and prints it. Returns the exit code: 1 when it does not parse. */
export function compileFile(file: string, flags: CompileFlags, { out, err }: Output): number {
  let source: string
  try {
    source = readFileSync(file, 'utf8')
  } catch (error) {
    const failure = fileError(file, error, 'read')
    err(failure.line('compile', flags.json))
    return failure.exitCode
  }
  const { mode = 'task', lowering, whole = false, movable = false } = flags
  const result = compile(source, file, {
    mode,
    whole,
    movable,
    key: moduleKey(resolve(file)),
    neighbour: importedCostsOf(resolve(file)),
    ...(lowering !== undefined && { lowering }),
  })
  const failed = result.diagnostics.some(({ severity }) => severity === 'error')
  if (flags.json) {
    const { code, stats, diagnostics } = result
    out(
      `${JSON.stringify(flags.stats ? { file, stats, diagnostics } : { file, code, stats, diagnostics }, null, 2)}\n`,
    )
    return failed ? 1 : 0
  }
  for (const diagnostic of result.diagnostics) err(describe(diagnostic))
  if (failed) return 1
  if (flags.stats) {
    out(statsOf(result))
    return 0
  }
  if (!result.changed)
    err(`heddle compile: nothing in ${file} is marked 'use task'; the output is the file unchanged\n`)
  out(result.code.endsWith('\n') ? result.code : `${result.code}\n`)
  return 0
}

/** A diagnostic as text: the message, the place and the lines of the source. */
function describe({ severity, message, file, line, column, frame, code }: Diagnostic): string {
  return `${severity}: ${message} [${code}]\n  ${file}:${line}:${column}\n${frame.trimEnd()}\n`
}

function statsOf({ stats }: CompileResult): string {
  if (stats.length === 0) return 'no function is compiled\n'
  const nameWidth = Math.max(...stats.map(({ name }) => name.length))
  const lineWidth = Math.max(...stats.map(({ line }) => String(line).length))
  const rows = stats.map(({ name, line, form, why, fixed }) =>
    `${String(line).padStart(lineWidth)}  ${name.padEnd(nameWidth)}  ${form.padEnd('plain'.length)}  ${why}${moveText(fixed)}`.trimEnd(),
  )
  const count = (form: FunctionStat['form']): number => stats.filter(stat => stat.form === form).length
  return `${rows.join('\n')}\n${count('twin')} with a twin, ${count('plain')} plain\n`
}

/** Whether a function can move, if it was asked to. */
function moveText(fixed: string | null | undefined): string {
  if (fixed === undefined) return ''
  return fixed === null ? '; it can move' : `; it cannot move, because ${fixed}`
}
