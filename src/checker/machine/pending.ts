import { shorten } from '../report/paths.ts'
import { DATAVIEW_READ, DATAVIEW_WRITE, PLAIN_WRITE, WAIT_ASYNC } from './operations.ts'

export const THREADS_MAX = 31

/** One loop that a thread is in: its state at the start of its last turn. */
export interface Loop {
  readonly site: number
  /** At the start of the turn: the thread's effects and steps, and the locals that the loop changes. */
  effects: number
  step: number
  first: unknown
  second: unknown
  third: unknown
  rest: unknown[] | undefined
  /**
   * The number of turns in a row in which the thread wrote nothing to shared memory, and its count of writes
   * at the start of the last one.
   */
  idle: number
  writes: number
  epoch: number
  /** The number of properties that the thread had read at the start of the turn. */
  propertiesRead: number
}

/** The number of properties that a turn may read and still be recognized as useless. */
export const NOTED_MAX = 256

/** Throws if a thread calls the function so. `args`: undefined where they are not known. */
export type Refused = (args: readonly unknown[] | undefined, isNew: boolean) => void

export interface PendingOperations {
  /** The running virtual thread, or -1. Instrumented code must not run outside a thread. */
  current: number
  kind: Int32Array
  site: Int32Array
  view: unknown[]
  index: unknown[]
  a: unknown[]
  b: unknown[]
  /** Per thread: the number of changes, in shared memory or outside it. */
  effects: Int32Array
  /** Per thread: how often it wrote a new value to shared memory, woke a sleeper, or was woken. */
  writes: Int32Array
  /** The number of changes outside shared memory, in all threads together. */
  heapEffects: number
  /** Per thread: the number of operations performed. */
  steps: Int32Array
  /** Per thread: the number of awaits. */
  waits: Int32Array
  /** Turns of loops since the thread's last operation: detects a loop without operations. */
  idleTurns: number
  idleTurnsMax: number
  /** Per thread: the step at which a useless turn began; -1 when the last turn was not useless. */
  spunFrom: Int32Array
  spunSite: Int32Array
  /**
   * Per thread: the step at which a turn began that only read and changed private state, if it was one more
   * than `idleMax` allows in a row. -1 when the last turn was not such a turn. `idleEpoch` is incremented
   * when a value that the thread read changes; then the count of turns starts again.
   */
  idleFrom: Int32Array
  idleEpoch: Int32Array
  idleMax: number
  files: string[]
  siteFile: number[]
  siteLine: number[]
  siteColumn: number[]
  siteText: string[]
  /** The names of the threads, for messages. */
  names: readonly string[]
  /** The real objects behind the proxies of views and buffers: see views.ts. */
  reals: WeakMap<object, object>
  /** The clocks of histories: they order events that real threads leave unordered. */
  clocks: WeakSet<object>
  /** Whether a check with `memory: 'weak'` runs. */
  weak: boolean
  /** Whether a buffer of the check can grow: then threads share its length. */
  grows: boolean
  /** The number of mutexes without an id that the set-up and each thread have created. */
  mutexes: Int32Array
  /** Per thread: the properties that it read last, and how many it has read: see quiet.ts. */
  noted: unknown[]
  notedKeys: unknown[]
  propertiesRead: Int32Array
  wasQuiet: (thread: number, since: number) => boolean
  /** The site of a call of a built-in function that takes steps, or -1. */
  place: number
  /**
   * An action of a thread that cannot be explored. It is kept here because the thread may catch the error.
   */
  refusal: Error | undefined
  /** The first code that ran inside a thread and that the checker does not know: see unseen.ts. */
  unseen: string | undefined
  /** An assertion is running: the final one, or that of `always`. */
  judging: boolean
  /** Functions of the language and the host that a thread must not call, under any name: see guards.ts. */
  refused: Map<unknown, Refused>
  /** Target and handler of each proxy that was created during a check. */
  proxies: WeakMap<object, { readonly target: object; readonly handler: object }>
  /** The marks of the instrumented modules, and the functions that count as instrumented: marks.ts. */
  marks: Set<string>
  vouched: WeakSet<object>
}

const key = Symbol.for('heddle.checker.pending')
const holder = globalThis as unknown as Record<symbol, PendingOperations | undefined>

/** Shared by every copy of this module in the process. */
export const pending: PendingOperations = (holder[key] ??= {
  current: -1,
  kind: new Int32Array(THREADS_MAX),
  site: new Int32Array(THREADS_MAX).fill(-1),
  view: Array.from({ length: THREADS_MAX }),
  index: Array.from({ length: THREADS_MAX }),
  a: Array.from({ length: THREADS_MAX }),
  b: Array.from({ length: THREADS_MAX }),
  effects: new Int32Array(THREADS_MAX),
  writes: new Int32Array(THREADS_MAX),
  heapEffects: 0,
  steps: new Int32Array(THREADS_MAX),
  waits: new Int32Array(THREADS_MAX),
  idleTurns: 0,
  idleTurnsMax: 5_000_000,
  spunFrom: new Int32Array(THREADS_MAX).fill(-1),
  spunSite: new Int32Array(THREADS_MAX),
  idleFrom: new Int32Array(THREADS_MAX).fill(-1),
  idleEpoch: new Int32Array(THREADS_MAX),
  idleMax: 16,
  files: [],
  siteFile: [],
  siteLine: [],
  siteColumn: [],
  siteText: [],
  names: [],
  reals: new WeakMap(),
  clocks: new WeakSet(),
  weak: false,
  grows: false,
  mutexes: new Int32Array(THREADS_MAX + 1),
  noted: Array.from({ length: THREADS_MAX * NOTED_MAX }),
  notedKeys: Array.from({ length: THREADS_MAX * NOTED_MAX }),
  propertiesRead: new Int32Array(THREADS_MAX),
  wasQuiet: () => false,
  place: -1,
  refusal: undefined,
  unseen: undefined,
  judging: false,
  refused: new Map(),
  proxies: new WeakMap(),
  marks: new Set(),
  vouched: new WeakSet(),
})

/** Registers a module's access sites and its mark. The id of site n is the returned number plus n. */
export function module(
  file: string,
  sites: readonly (readonly [number, number, string])[],
  mark: string,
): number {
  pending.marks.add(mark)
  const base = pending.siteLine.length
  const fileId = pending.files.push(file) - 1
  for (const [line, column, text] of sites) {
    pending.siteFile.push(fileId)
    pending.siteLine.push(line)
    pending.siteColumn.push(column)
    pending.siteText.push(text)
  }
  return base
}

/** Makes the function count as instrumented: it takes its steps itself, or has no effect. */
export function vouchFor<F extends object>(fn: F): F {
  pending.vouched.add(fn)
  return fn
}

let shared0: unknown
let shared1: unknown
let shared2: unknown
let shared3: unknown
let real0: unknown
let real1: unknown
let real2: unknown
let real3: unknown

/** Whether x is a view on shared memory. Caches the last four such views: a check touches few. */
export function isShared(x: unknown): x is ArrayBufferView<SharedArrayBuffer> {
  if (typeof x !== 'object' || x === null) return false
  if (x === shared0 || x === shared1 || x === shared2 || x === shared3) return true
  return isSharedSlow(x)
}

const SharedBuffer = SharedArrayBuffer
const { isArray } = Array
const { isView } = ArrayBuffer
const { reals } = pending

function isSharedSlow(x: object): boolean {
  if (isArray(x)) return false
  const real = reals.get(x) ?? x
  if (!isView(real) || !(real.buffer instanceof SharedBuffer)) return false
  shared3 = shared2
  real3 = real2
  shared2 = shared1
  real2 = real1
  shared1 = shared0
  real1 = real0
  shared0 = x
  real0 = real
  return true
}

/** The real object behind a view or a buffer of the check; any other value is returned as it is. */
export function realOf<T>(x: T): T {
  if (x === shared0) return real0 as T
  if (x === shared1) return real1 as T
  if (x === shared2) return real2 as T
  if (x === shared3) return real3 as T
  if ((typeof x !== 'object' && typeof x !== 'function') || x === null) return x
  return (reals.get(x) ?? x) as T
}

/**
 * Records the next operation of the running thread. The returned value is yielded and has no other meaning.
 */
export function op(
  kind: number,
  site: number,
  view: unknown,
  index?: unknown,
  a?: unknown,
  b?: unknown,
): number {
  const thread = pending.current
  if (thread < 0) outside(site)
  let place = index
  let value = a
  let other = b
  if (typeof index !== 'number' || (a !== undefined && typeof a !== 'number') || b !== undefined) {
    // The language converts objects to numbers before it touches memory, and runs code of these objects. So
    // convert here, while the thread runs.
    const converts = kind <= WAIT_ASYNC || kind === DATAVIEW_READ || kind === DATAVIEW_WRITE
    if (converts && isObject(index)) place = toPrimitive(index, kind <= PLAIN_WRITE ? 'string' : 'number')
    if (converts && isObject(a)) value = toPrimitive(a, 'number')
    if (kind <= WAIT_ASYNC && isObject(b)) other = toPrimitive(b, 'number')
  }
  pending.kind[thread] = kind
  pending.site[thread] = site
  pending.view[thread] = realOf(view)
  pending.index[thread] = place
  pending.a[thread] = value
  pending.b[thread] = other
  return kind
}

function isObject(x: unknown): x is object {
  return (typeof x === 'object' && x !== null) || typeof x === 'function'
}

/** `ToPrimitive`. */
function toPrimitive(x: object, hint: 'number' | 'string'): unknown {
  effect()
  const exotic = (x as { [Symbol.toPrimitive]?: (hint: string) => unknown })[Symbol.toPrimitive]
  if (exotic !== undefined && exotic !== null) {
    const made = Reflect.apply(exotic, x, [hint])
    if (!isObject(made)) return made
  } else {
    for (const name of hint === 'number' ? ['valueOf', 'toString'] : ['toString', 'valueOf']) {
      const method = (x as Record<string, unknown>)[name]
      if (typeof method !== 'function') continue
      const made = Reflect.apply(method, x, [])
      if (!isObject(made)) return made
    }
  }
  throw new TypeError('Cannot convert object to primitive value')
}

function outside(site: number): never {
  throw new Error(
    `${siteName(site)}: the resumable form of a checked function ran outside a virtual thread; call it from a thread body of a check`,
  )
}

/** What to do about code of the check itself that has only its plain form where the language calls it. */
export const PLAIN_ADVICE =
  'Code of the check itself cannot stop where the language calls it (a constructor, an iterator, `toString`, `using`, a getter under `++`, `super` or in a pattern): move it into an ordinary method, and call that'

/** "ring.ts:12:5", for messages. */
export function siteName(site: number): string {
  if (site < 0 || site >= pending.siteLine.length) return 'unknown place'
  const file = pending.files[pending.siteFile[site]]
  return `${shorten(file)}:${pending.siteLine[site]}:${pending.siteColumn[site]}`
}

/** Enters a loop. The result is passed to `turn` at the start of each turn. */
export function loop(site: number): Loop {
  return {
    site,
    effects: -1,
    step: -1,
    first: undefined,
    second: undefined,
    third: undefined,
    rest: undefined,
    idle: 0,
    writes: -1,
    epoch: -1,
    propertiesRead: 0,
  }
}

/**
 * Begins a turn of a loop. The arguments are the variables that the loop assigns and that outlive a turn.
 * When they have not changed since the last turn, and the thread has changed nothing, the turn that just
 * ended had no effect: the next one can differ only when a value that it read has changed. A turn that
 * changed private state and nothing shared is counted: see spinwatch.ts. Returns true, so that the compiler
 * can put it before a condition.
 */
export function turn(entered: Loop, first?: unknown, second?: unknown, third?: unknown): true {
  const thread = pending.current
  if (thread < 0) return true
  if (++pending.idleTurns > pending.idleTurnsMax) endless(entered.site)
  const steps = pending.steps[thread]
  const effects = pending.effects[thread]
  // Most loops change at most three variables: only the others need a list.
  const rest = arguments.length > 4 ? Array.prototype.slice.call(arguments, 4) : undefined
  if (
    entered.effects === effects &&
    Object.is(entered.first, first) &&
    Object.is(entered.second, second) &&
    Object.is(entered.third, third) &&
    sameRest(entered.rest, rest) &&
    (steps === entered.step || pending.wasQuiet(thread, entered.propertiesRead))
  ) {
    if (steps > entered.step) {
      pending.spunFrom[thread] = entered.step
      pending.spunSite[thread] = entered.site
      entered.step = steps
    }
    entered.propertiesRead = pending.propertiesRead[thread]
    return true
  }
  const writes = pending.writes[thread]
  const epoch = pending.idleEpoch[thread]
  if (entered.writes !== writes || entered.epoch !== epoch) {
    entered.idle = 0
    entered.writes = writes
    entered.epoch = epoch
  } else if (steps > entered.step && ++entered.idle > pending.idleMax) {
    pending.idleFrom[thread] = entered.step
    pending.spunSite[thread] = entered.site
  }
  entered.effects = effects
  entered.step = steps
  entered.propertiesRead = pending.propertiesRead[thread]
  entered.first = first
  entered.second = second
  entered.third = third
  entered.rest = rest
  return true
}

/**
 * The thread changed, or may have changed, something outside shared memory: its turn of a loop is not idle.
 */
export function effect<T>(value?: T): T | undefined {
  const thread = pending.current
  if (thread >= 0) {
    pending.effects[thread]++
    pending.heapEffects++
  }
  return value
}

function sameRest(before: unknown[] | undefined, now: unknown[] | undefined): boolean {
  if (before === undefined || now === undefined) return before === now
  for (let i = 0; i < now.length; i++) if (!Object.is(before[i], now[i])) return false
  return before.length === now.length
}

function endless(site: number): never {
  pending.idleTurns = 0
  throw new EndlessLoopError(
    `${siteName(site)}: this loop turned ${pending.idleTurnsMax} times without touching shared memory, so no other thread can ever end it; let it read shared memory, or bound it`,
  )
}

/** A loop that no other thread can end. */
export class EndlessLoopError extends Error {
  override readonly name = 'EndlessLoopError'
}
