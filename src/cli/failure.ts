/** What a command cannot go on from: one line for a person, with a hint, and an exit code for a script. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number
  readonly hint: string | undefined

  constructor(message: string, options: { exitCode?: number; hint?: string } = {}) {
    super(message)
    this.exitCode = options.exitCode ?? 1
    this.hint = options.hint
  }

  /** As it is printed: for a person, or, with --json, for a program. */
  line(command: string, json: boolean = false): string {
    const { message, hint, exitCode } = this
    if (json) return `${JSON.stringify({ command, error: message, hint, exitCode })}\n`
    return `heddle ${command}: ${message}${hint === undefined ? '' : ` (${hint})`}\n`
  }

  /** Ends the command with it. */
  end(command: string, json: boolean = false): void {
    process.stderr.write(this.line(command, json))
    process.exitCode = this.exitCode
  }
}

/** Bad arguments. */
export const EXIT_USAGE = 2

/** That a path leads to no file is the fault of who named it. */
const misnamed: ReadonlySet<string | undefined> = new Set(['ENOENT', 'EISDIR', 'ENOTDIR'])

/** Why a file could not be read or written, in words. */
export function fileError(file: string, error: unknown, verb: 'read' | 'written'): CommandError {
  const code = (error as NodeJS.ErrnoException).code
  const hints: Readonly<Record<string, [string, string]>> = {
    ENOENT: [`no file ${file}`, `the path is taken from ${process.cwd()}`],
    ENOTDIR: [`no file ${file}`, 'what it names as a folder is a file'],
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
