import { cpus as cores } from 'node:os'
import { isMainThread as isMain } from 'node:worker_threads'

export const platform = 'node'
/** Neither a worker nor a child process that was forked. */
export const isMainThread: boolean = isMain && !process.connected
export const cpus: number = cores().length
