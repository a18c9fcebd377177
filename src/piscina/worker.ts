/**
 * The code on each CPU of a pool: finds the handler of a task, calls it, and returns the result. It is loaded
 * before any module of the program, so that these see that they are in a worker.
 */
import Module, { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { workerData } from 'node:worker_threads'
import { wait } from '../coroutine/core/blocking.ts'
import { twinOf } from '../coroutine/core/coroutine.ts'
import { isThenable } from '../coroutine/core/thenable.ts'
import { move } from '../kernel/join/transferred.ts'
import type { TaskPriority } from '../kernel/boot/options.ts'
import { timed } from './shorttasksfirst.ts'
import { isMovable, transferListOf } from './transferable.ts'
import { state } from './workerstate.ts'
import { valueSymbol } from './symbols.ts'

state.isWorkerThread = true
state.workerData = workerData

type Handler = (task: any) => unknown

const require = createRequire(import.meta.url)
const { registerHooks } = Module as { registerHooks?: unknown }
const handlers = new Map<string, Handler>()
const HANDLERS_MAX = 1000
let isNice = false

/**
 * Runs one task of a pool. With `known` (taskpriority.ts), it runs before others at first, if `goesAhead`,
 * and later with priority `after`.
 */
export function* handle(
  filename: string,
  name: string,
  task: unknown,
  niceIncrement: number,
  known: Int32Array | null,
  handler: number,
  goesAhead: boolean,
  after: TaskPriority,
): Generator<number, unknown, unknown> {
  const rest = call(filename, name, task, niceIncrement)
  return known === null ? yield* rest : yield* timed(rest, goesAhead, after, known, handler)
}

/** A coroutine: a compiled handler is preempted, and other tasks run during a `wait`. */
function* call(
  filename: string,
  name: string,
  task: unknown,
  niceIncrement: number,
): Generator<number, unknown, unknown> {
  const key = `${name} ${filename}`
  const handler = handlers.get(key) ?? ((yield* wait(load(key, filename, name, niceIncrement))) as Handler)
  const twin = twinOf(handler)
  let result: unknown = twin === undefined ? handler(task) : yield* twin(task)
  if (isThenable(result)) result = yield* wait(result)
  return isMovable(result) ? move(result[valueSymbol], transferListOf(result)) : result
}

/**
 * The default handler of the pool is loaded before the CPU takes a task. If it fails, the first task reports
 * the error.
 */
const { searchParams } = new URL(import.meta.url)
const preload = searchParams.get('filename')
if (preload !== null) {
  const name = searchParams.get('name') ?? 'default'
  await load(`${name} ${preload}`, preload, name, Number(searchParams.get('nice'))).catch(() => undefined)
}

async function load(key: string, filename: string, name: string, niceIncrement: number): Promise<Handler> {
  if (niceIncrement !== 0) await beNice(niceIncrement)
  const handler = await findHandler(filename, name)
  if (typeof handler !== 'function') throw new Error(`No handler function exported from ${filename}`)
  if (handlers.size > HANDLERS_MAX) handlers.delete(handlers.keys().next().value as string)
  handlers.set(key, handler as Handler)
  return handler as Handler
}

/**
 * By `require`, then by `import`: a module with a top-level await can only be imported. Where Node has no
 * synchronous hooks, the loader does not see what a required module imports: there `import` is first.
 */
async function findHandler(filename: string, name: string): Promise<unknown> {
  const imported = async (): Promise<unknown> => exportOf(await import(pathToFileURL(filename).href), name)
  const required = async (): Promise<unknown> => exportOf(require(filename), name)
  // The loader does not see what tsx, which adds this ending, requires by itself.
  const othersRequire = '.tsx' in (Module as unknown as { _extensions: object })._extensions
  if (typeof registerHooks === 'function' && !othersRequire) {
    const found = await required().catch(() => undefined) // The import reports the error.
    return typeof found === 'function' ? found : await imported()
  }
  try {
    const found = await imported()
    if (typeof found === 'function') return found
  } catch (error) {
    const found = takesOver.test(filename) ? await required().catch(() => undefined) : undefined
    if (typeof found === 'function') return found
    throw error
  }
  return await required().catch(() => undefined)
}

/** In a CommonJS package, tsx and ts-node load TypeScript only where it is required on such a Node. */
const takesOver = /\.c?ts$/

/** The export of a name. In CommonJS, the default is `module.exports`, and other names are its properties. */
function exportOf(module: any, name: string): unknown {
  const isNamespace = Object.prototype.toString.call(module) === '[object Module]' || module?.__esModule
  if (!isNamespace) return name === 'default' ? module : module?.[name]
  return module[name] ?? (name === 'default' ? undefined : module.default?.[name])
}

/** Once for each thread, if the optional package is installed. */
async function beNice(increment: number): Promise<void> {
  if (isNice) return
  isNice = true
  const optional = '@napi-rs/nice'
  const nice = (await import(optional).catch(() => null)) as { nice(increment: number): unknown } | null
  nice?.nice(increment)
}
