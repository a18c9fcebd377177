/** The program that `heddle run` and `heddle doctor` start in a process of its own. */
import type { ChildProcess } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { COMPILE_VARIABLE, patternList, patternText } from '../compiler/loading/selection.ts'
import { CommandError, EXIT_USAGE, fileError } from './failure.ts'

/** The absolute path of the program's module. Throws when there is no such file. */
export function programPath(file: string): string {
  const path = resolve(file)
  const missing = existsSync(path) ? null : 'ENOENT'
  const code = missing ?? (statSync(path).isDirectory() ? 'EISDIR' : null)
  if (code !== null) throw fileError(file, { code }, 'read')
  return path
}

/** The arguments of Node: `preload` is loaded before the program. A `--` before `args` is dropped. */
export function nodeArguments(preload: URL, path: string, args: readonly string[]): string[] {
  const own = args[0] === '--' ? args.slice(1) : args
  return [...process.execArgv, '--import', preload.href, path, ...own]
}

/** The environment variable of `--compile`, for the loader of the program and of its CPUs. */
export function compileVariables(wanted: readonly string[] | undefined): Record<string, string> {
  if (wanted === undefined) return {}
  const own = wanted.map(pattern => patternText(pattern, process.cwd()))
  const inherited = process.env[COMPILE_VARIABLE]
  return { [COMPILE_VARIABLE]: (inherited ? [inherited, ...own] : own).join(',') }
}

/** The value of one `--compile`, added to those before it. */
export function patterns(text: string, before: readonly string[] = []): string[] {
  const list = patternList(text) as string[]
  if (list.length === 0) throw new InvalidArgumentError('give names of packages, with commas between them.')
  return [...before, ...list]
}

/** Waits for the end of the program. Ctrl-C reaches the program too, and the program decides when it ends. */
export async function exitCodeOf(child: ChildProcess): Promise<number> {
  const ignore = (): void => undefined
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal)
  process.on('SIGINT', ignore)
  process.on('SIGTERM', forward)
  try {
    return await new Promise((done, fail) => {
      child.once('error', fail)
      child.once('exit', (code, signal) => {
        done(code ?? 128 + (signal === null ? 0 : constants.signals[signal]))
      })
    })
  } finally {
    process.off('SIGINT', ignore)
    process.off('SIGTERM', forward)
  }
}

/** Throws unless every file is there. `option` named them. */
export function requireFiles(option: string, files: readonly string[]): void {
  const missing = files.find(file => !existsSync(file))
  if (missing === undefined) return
  throw new CommandError(`${option}: no file ${missing}`, {
    exitCode: EXIT_USAGE,
    hint: `the path is relative to ${process.cwd()}`,
  })
}
