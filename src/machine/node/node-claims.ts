import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

/** Under this name threads find the table in their environment data: every worker gets it as it is made. */
const CLAIMS_KEY = 'heddle.claims'

const CLAIMS_BYTES = 32 * 1024

/**
 * The memory in which the threads of this process agree on what is done once (arena/sync/claims.ts). The
 * first thread that asks makes it, and the workers that it starts from then on find it: so a machine asks
 * before it starts its first CPU.
 */
export function claimsMemory(): SharedArrayBuffer {
  const found = getEnvironmentData(CLAIMS_KEY) as unknown
  if (found instanceof SharedArrayBuffer) return found
  const made = new SharedArrayBuffer(CLAIMS_BYTES)
  setEnvironmentData(CLAIMS_KEY, made as never)
  return made
}

/**
 * Under this name threads find the file that the process was started with: a worker's own `argv` names the
 * file of the worker.
 */
const PROGRAM_KEY = 'heddle.program'

/** Tells this thread and the workers that it starts from now on. */
export function tellProgram(program: string | undefined = programFile()): void {
  setEnvironmentData(PROGRAM_KEY, program as never)
}

/** The file of the program; undefined: it came from the command line or from a pipe. */
export function programFile(): string | undefined {
  return (getEnvironmentData(PROGRAM_KEY) as string | undefined) ?? process.argv[1]
}
