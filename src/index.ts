/** heddle: a preemptive multicore runtime for TypeScript. */
export { ArenaFullError } from './arena/arena.ts'
export { InvariantError } from './arena/assert.ts'
export * from './coroutine/index.ts'
