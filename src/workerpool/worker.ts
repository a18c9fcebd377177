/**
 * The code on each CPU of a pool: calls the methods that the pool's script registered, and functions that
 * arrive as text. It is loaded before any module of the program, so that the script sees that it is in a
 * worker.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parentPort } from 'node:worker_threads'
import { wait } from '../coroutine/core/blocking.ts'
import { twinOf } from '../coroutine/core/coroutine.ts'
import { current, inTask } from '../kernel/cpu/current.ts'
import { move } from '../kernel/join/transferred.ts'
import { converted, TerminateError } from './errors.ts'
import type { WorkerRegisterOptions } from './options.ts'
import { isPromise } from './promise.ts'
import { type Request, state } from './workerstate.ts'
import { isTransfer } from './transfer.ts'

/** The result of a task. The pool settles the task after this many events. */
export type Answer = { readonly events: number } & (
  | { readonly result: unknown }
  /** `isTerminate`: the script could not be loaded. */
  | { readonly error: Record<string, unknown>; readonly isTerminate: boolean }
)

/** An event of a task, for the pool. */
export interface EventMessage {
  readonly workerpool: number
  readonly payload: unknown
}

/** The outcome of the abort listeners of a task. */
export type Cleaned = 'none' | 'clean' | 'failed'

type Method = ((...args: any[]) => any) & { worker?: object }

const ABORT_MS = 1000
const { searchParams } = new URL(import.meta.url)
const script = searchParams.get('script')
const methods: Record<string, Method> = Object.assign(Object.create(null), {
  run,
  methods: () => Object.keys(methods),
})
const requests = new Map<number, Request>()
const byTask = new Map<number, Request>()
const context = new AsyncLocalStorage<Request>()
let registered: WorkerRegisterOptions = {}
let last: Request | undefined
let isReady = script === null
let tellReady: () => void = () => undefined
let failReady: (error: unknown) => void = () => undefined
const ready = new Promise<void>((resolved, rejected) => {
  tellReady = resolved
  failReady = rejected
})
ready.catch(() => undefined)

/** `this.worker` in a method. */
const publicWorker = {
  addAbortListener(listener: () => unknown): void {
    here()?.abortListeners.push(listener)
  },
  emit,
}

state.worker = {
  register(given = {}, options) {
    for (const [name, method] of Object.entries(given as Record<string, Method>)) {
      methods[name] = method
      method.worker = publicWorker
    }
    if (options !== undefined) registered = options
    isReady = true
    tellReady()
  },
  emit,
}

/**
 * Runs one task of a pool. A coroutine: a compiled method is preempted, and other tasks run during a `wait`.
 */
export function* perform(
  id: number,
  name: string,
  params: readonly unknown[] | null,
): Generator<number, Answer, unknown> {
  const request: Request = { id, events: 0, abortListeners: [] }
  const { id: task } = current()
  requests.set(id, request)
  byTask.set(task, request)
  try {
    if (!isReady) yield* wait(ready)
    last = request
    const method = methods[name]
    if (method === undefined) throw new Error(`Unknown method "${name}"`)
    const twin = twinOf(method)
    const args = [...(params ?? [])]
    let result: unknown =
      twin === undefined
        ? context.run(request, () => method.apply(method, args))
        : yield* twin.apply(method, args)
    if (isPromise(result)) result = yield* wait(result)
    const { events } = request
    return isTransfer(result) ? move({ events, result: result.message }, result.transfer) : { events, result }
  } catch (error) {
    return {
      events: request.events,
      error: converted(error),
      isTerminate: error instanceof TerminateError,
    }
  } finally {
    requests.delete(id)
    byTask.delete(task)
    if (last === request) last = undefined
  }
}

/** Calls the abort listeners of a task. */
export function* clean(id: number): Generator<number, Cleaned, unknown> {
  const request = requests.get(id)
  // It has ended, or has not begun.
  if (request === undefined) return 'clean'
  if (request.abortListeners.length === 0) return 'none'
  return (yield* wait(context.run(request, () => abort(request)))) as Cleaned
}

async function abort({ abortListeners }: Request): Promise<Cleaned> {
  let late: NodeJS.Timeout | undefined
  const tooLate = new Promise<Cleaned>(tell => {
    late = setTimeout(() => tell('failed'), registered.abortListenerTimeout ?? ABORT_MS)
  })
  try {
    const all = Promise.all(abortListeners.map(listener => listener()))
    return await Promise.race([all.then((): Cleaned => 'clean'), tooLate])
  } catch {
    return 'failed'
  } finally {
    clearTimeout(late)
  }
}

/** Calls the script's handler before the worker ends. */
export function* leave(): Generator<number, void, unknown> {
  const left = registered.onTerminate?.(0)
  if (isPromise(left)) yield* wait(left)
}

/** Runs a function that arrived as text. */
function run(text: string, args: readonly unknown[] | null): unknown {
  const fn: Method = new Function(`return (${text}).apply(this, arguments);`) as Method
  fn.worker = publicWorker
  return fn.apply(fn, [...(args ?? [])])
}

/** The task that runs this code; if unknown, the one that began last. */
function here(): Request | undefined {
  return context.getStore() ?? (inTask() ? byTask.get(current().id) : undefined) ?? last
}

function emit(payload: unknown): void {
  const request = here()
  if (request === undefined) return
  if (isTransfer(payload)) send(request, payload.message, payload.transfer)
  else send(request, payload)
}

function send(request: Request, payload: unknown, transfer: readonly object[] = []): void {
  const message: EventMessage = { workerpool: request.id, payload }
  parentPort?.postMessage(message, transfer as never)
  request.events++
}

/** Output becomes an event of the running tasks. */
function capture(name: 'stdout' | 'stderr'): void {
  process[name].write = ((chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const text = typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk)
    for (const request of requests.values()) send(request, { [name]: text })
    const done = rest.at(-1)
    if (typeof done === 'function') queueMicrotask(() => done())
    return true
  }) as never
}

if (searchParams.has('capture')) for (const name of ['stdout', 'stderr'] as const) capture(name)
if (script !== null) {
  const url = /^(file|data):/.test(script) ? script : pathToFileURL(resolve(script)).href
  try {
    await import(url)
  } catch (error) {
    failReady(
      new TerminateError(`Workerpool Worker error: ${(error as Error)?.message ?? String(error)}`, error),
    )
  }
}
