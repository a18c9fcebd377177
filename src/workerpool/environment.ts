import { cpus as cores } from 'node:os'
import { isMainThread as isMain } from 'node:worker_threads'

export const platform = 'node'
/** True in neither a worker nor a forked child process. */
export const isMainThread: boolean = isMain && !process.connected
export const cpus: number = cores().length
