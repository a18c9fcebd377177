import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** The key of the claims table in the environment data of a thread: every worker inherits it. */
const CLAIMS_KEY = 'heddle.claims'

const CLAIMS_BYTES = 32 * 1024

/**
 * The shared memory of the process-wide claims (arena/sync/claims.ts). The first caller creates it, and the
 * workers that it starts later inherit it: so a machine calls this before it starts its first CPU.
 */
export function claimsMemory(): SharedArrayBuffer {
  const found = getEnvironmentData(CLAIMS_KEY) as unknown
  if (found instanceof SharedArrayBuffer) return found
  const made = new SharedArrayBuffer(CLAIMS_BYTES)
  setEnvironmentData(CLAIMS_KEY, made as never)
  return made
}

/**
 * The key of the program's file in the environment data of a thread: the `argv` of a worker names the file of
 * the worker.
 */
const PROGRAM_KEY = 'heddle.program'

/** Records the program's file for this thread and the workers that it starts from now on. */
export function tellProgram(program: string | undefined = programFile()): void {
  setEnvironmentData(PROGRAM_KEY, program as never)
}

/** The file of the program; undefined: the program came from the command line or from a pipe. */
export function programFile(): string | undefined {
  return (getEnvironmentData(PROGRAM_KEY) as string | undefined) ?? process.argv[1]
}
