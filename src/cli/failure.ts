import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'

/** An error that ends a command: one line for a person, with a hint, and an exit code for a script. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number
  readonly hint: string | undefined

  constructor(message: string, options: { exitCode?: number; hint?: string } = {}) {
    super(message)
    this.exitCode = options.exitCode ?? 1
    this.hint = options.hint
  }

  /** The printed form: a sentence, or with --json an object. */
  line(command: string, json: boolean = false): string {
    const { message, hint, exitCode } = this
    if (json) return `${JSON.stringify({ command, error: message, hint, exitCode })}\n`
    return `heddle ${command}: ${message}${hint === undefined ? '' : ` (${hint})`}\n`
  }

  /** Prints the error and sets the exit code. */
  end(command: string, json: boolean = false): void {
    process.stderr.write(this.line(command, json))
    process.exitCode = this.exitCode
  }
}

/**
 * The full path of a file that a program of the command writes later. A path that cannot be written is
 * refused before the program starts. Nothing is created.
 */
export function writablePath(file: string): string {
  const path = resolve(file)
  try {
    if (existsSync(path)) {
      if (statSync(path).isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' })
      accessSync(path, constants.W_OK)
    } else accessSync(dirname(path), constants.W_OK)
  } catch (error) {
    throw fileError(file, error, 'written')
  }
  return path
}

/** Runs the action of a command. A `CommandError` ends the command; any other error is a defect. */
export async function guarded(
  command: string,
  { json }: { readonly json?: boolean },
  action: () => void | Promise<void>,
): Promise<void> {
  try {
    await action()
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    error.end(command, json)
  }
}

/** Where a command writes: the streams of the process, or those of a test. */
export interface Output {
  out(text: string): void
  err(text: string): void
}

export const streams: Output = {
  out: text => void process.stdout.write(text),
  err: text => void process.stderr.write(text),
}

/** Bad arguments. */
export const EXIT_USAGE = 2

/** These mean that the argument is wrong. */
const misnamed: ReadonlySet<string | undefined> = new Set(['ENOENT', 'EISDIR', 'ENOTDIR'])

/** Why a file could not be read or written, in words. */
export function fileError(file: string, error: unknown, verb: 'read' | 'written'): CommandError {
  const code = (error as NodeJS.ErrnoException).code
  const hints: Readonly<Record<string, [string, string]>> = {
    ENOENT: [
      verb === 'read' ? `no file ${file}` : `${file}: its folder does not exist`,
      isAbsolute(file) ? 'check the path' : `the path is relative to ${process.cwd()}`,
    ],
    ENOTDIR: [`no file ${file}`, 'a file stands in the place of a folder of the path'],
    EISDIR: [`${file} is a folder`, 'name one file in it'],
    EACCES: [`${file} may not be ${verb}`, 'check its permissions'],
    EPERM: [`${file} may not be ${verb}`, 'check its permissions'],
    ENOSPC: [`${file} cannot be written`, 'the disk is full'],
  }
  const [message, hint] = hints[code ?? ''] ?? [
    `${file} cannot be ${verb} (${code ?? String(error)})`,
    undefined,
  ]
  const exitCode = verb === 'read' && misnamed.has(code) ? EXIT_USAGE : 1
  return new CommandError(message, hint === undefined ? { exitCode } : { exitCode, hint })
}
