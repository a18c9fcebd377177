import type { PayloadCodec } from '../../payload/codec.ts'
import { formatTraceparent, type TraceContext } from './tracecontext.ts'

/**
 * The context that a task inherits from its spawner: the values of AsyncLocalStorages that were marked as
 * travelling, and the W3C trace context. It is captured when the task is spawned, travels as a payload of the
 * job, and applies whenever the task runs. Tasks that the task spawns inherit it.
 *
 *   spawner                              job          task
 *   storage.run('a', …)                               storage.getStore() === 'a', before and after every wait
 *     spawn: captureContext() ── payload ──> `context` ──> enterContext(…): each stretch of the task runs in it
 */

/** The used part of AsyncLocalStorage. A browser has none; the program may give its own implementation. */
export interface TravellingStorage<T = unknown> {
  run<R>(store: T, fn: () => R): R
  getStore(): T | undefined
}

/** The context as it travels. */
export interface CapturedContext {
  readonly values: ReadonlyMap<string, unknown>
  readonly trace?: TraceContext
}

/** Runs a function in the context of a task. */
export type EnterContext = <R>(fn: () => R) => R

/** Values of a task that no storage of this thread has taken: the tasks that it spawns inherit them. */
interface Carried {
  readonly values: ReadonlyMap<string, unknown>
  readonly trace: TraceContext | undefined
}

interface StorageClass {
  new <T>(): TravellingStorage<T>
  snapshot?(): EnterContext
}

const noValues: ReadonlyMap<string, unknown> = new Map()
const storages = new Map<string, TravellingStorage>()
let carried: TravellingStorage<Carried> | null = null

/**
 * Marks a storage: tasks inherit its value from their spawner. Each thread has its own storage, so the call
 * stands in the module that makes the storage, which the tasks import. `name` is the same on all threads.
 * Returns the storage.
 */
export function travels<S extends TravellingStorage<any>>(name: string, storage: S): S {
  const known = storages.get(name)
  if (known !== undefined && known !== storage) {
    throw new TypeError(
      `travels('${name}'): another storage has this name already; give each storage its own`,
    )
  }
  if (typeof storage?.run !== 'function' || typeof storage.getStore !== 'function') {
    throw new TypeError(`travels('${name}', storage): not an AsyncLocalStorage`)
  }
  storages.set(name, storage)
  return storage
}

/**
 * The W3C trace context of the running code: that of `withTraceContext`, or that of its task.
 */
export function traceContext(): TraceContext | undefined {
  return tracing()?.inject() ?? carried?.getStore()?.trace
}

/** Runs `fn` with this trace context: the tasks that it spawns continue the trace. */
export function withTraceContext<R>(trace: TraceContext, fn: () => R): R {
  const checked = { ...trace, traceparent: formatTraceparent(trace.traceparent) }
  const values = carried?.getStore()?.values ?? noValues
  return carriedStorage().run({ values, trace: checked }, () => enterTracing(checked, fn))
}

/** The context for a task that is spawned here; null, at little cost, if there is nothing to inherit. */
function captureContext(): CapturedContext | null {
  const given = carried?.getStore()
  const trace = tracing()?.inject() ?? given?.trace
  let values: Map<string, unknown> | null = null
  if (given !== undefined && given.values.size > 0) values = new Map(given.values)
  for (const [name, storage] of storages) {
    const value = storage.getStore()
    if (value !== undefined) (values ??= new Map()).set(name, value)
  }
  if (values === null && trace === undefined) return null
  return { values: values ?? noValues, ...(trace !== undefined && { trace }) }
}

/**
 * The same as a payload, which the spawner owns; 0: nothing to inherit. Throws if a value cannot travel.
 */
export function captureContextWord(codec: PayloadCodec): number {
  const captured = captureContext()
  return captured === null ? 0 : codec.encode(captured, 'context')
}

/** Prepares the context of a task that has arrived: the result enters it each time that the task runs. */
export function enterContext({ values, trace }: CapturedContext): EnterContext {
  const entered: [TravellingStorage, unknown][] = []
  const rest = new Map<string, unknown>()
  for (const [name, value] of values) {
    const storage = storages.get(name)
    if (storage === undefined) rest.set(name, value)
    else entered.push([storage, value])
  }
  if (rest.size > 0 || trace !== undefined) entered.push([carriedStorage(), { values: rest, trace }])
  const enterAll: EnterContext = fn => {
    let inner = fn
    for (const [storage, value] of entered) {
      const next = inner
      inner = () => storage.run(value, next)
    }
    return trace === undefined ? inner() : enterTracing(trace, inner)
  }
  // Set up once; after that each switch of the task costs one switch of the platform's context.
  const { snapshot } = storageClass() ?? {}
  return snapshot === undefined ? enterAll : enterAll(() => snapshot.call(storageClass()))
}

function carriedStorage(): TravellingStorage<Carried> {
  return (carried ??= new (storageClass() ?? OneStretch)<Carried>())
}

interface Globals {
  readonly process?: { getBuiltinModule?(name: string): { AsyncLocalStorage: StorageClass } | undefined }
  readonly [openTelemetry]?: OpenTelemetry
}

let foundClass: StorageClass | null | undefined

function storageClass(): StorageClass | null {
  foundClass ??=
    (globalThis as unknown as Globals).process?.getBuiltinModule?.('node:async_hooks')?.AsyncLocalStorage ??
    null
  return foundClass
}

/** For platforms without AsyncLocalStorage: a value for the duration of the call. */
class OneStretch<T> implements TravellingStorage<T> {
  private store: T | undefined

  run<R>(store: T, fn: () => R): R {
    const before = this.store
    this.store = store
    try {
      return fn()
    } finally {
      this.store = before
    }
  }

  getStore(): T | undefined {
    return this.store
  }
}

/**
 * Where OpenTelemetry's API keeps what a program has registered, on each thread that loaded an SDK.
 */
const openTelemetry: unique symbol = Symbol.for('opentelemetry.js.api.1') as never

interface OpenTelemetry {
  readonly context?: { active(): unknown; with<R>(context: unknown, fn: () => R): R }
  readonly propagation?: {
    inject(
      context: unknown,
      carrier: object,
      setter: { set(carrier: object, key: string, value: string): void },
    ): void
    extract(
      context: unknown,
      carrier: object,
      getter: { keys(carrier: object): string[]; get(carrier: object, key: string): unknown },
    ): unknown
  }
}

const setter = {
  set(carrier: object, key: string, value: string): void {
    ;(carrier as Record<string, string>)[key] = value
  },
}
const getter = {
  keys: (carrier: object): string[] => Object.keys(carrier),
  get: (carrier: object, key: string): unknown => (carrier as Record<string, unknown>)[key],
}

/** OpenTelemetry, if this thread has one registered: its active span is the trace context. */
function tracing(): {
  inject(): TraceContext | undefined
  enter<R>(trace: TraceContext, fn: () => R): R
} | null {
  const { context, propagation } = (globalThis as unknown as Globals)[openTelemetry] ?? {}
  if (context === undefined || propagation === undefined) return null
  return {
    inject() {
      const carrier: { traceparent?: string; tracestate?: string } = {}
      propagation.inject(context.active(), carrier, setter)
      return carrier.traceparent === undefined ? undefined : (carrier as TraceContext)
    },
    enter: (trace, fn) => context.with(propagation.extract(context.active(), trace, getter), fn),
  }
}

function enterTracing<R>(trace: TraceContext, fn: () => R): R {
  const telemetry = tracing()
  return telemetry === null ? fn() : telemetry.enter(trace, fn)
}
