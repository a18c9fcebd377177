/**
 * Calls of functions that are not instrumented. Such a function may keep or change something, so each call is
 * an effect. It may also get shared memory:
 *
 *   a function of the language   reaches it by traps (views.ts), or throws because a proxy has no internal
 *                                slots. A thread that catches the error would differ from the real program,
 *                                so the call is refused
 *   any other function           may read the proxy and give another answer than for a real view, so the
 *                                call is refused before it is made
 *   a function of WebAssembly    may have shared memory of its own, so the call is refused
 */
import { own, refuse as refuseCall } from '../../compiler/runtime.ts'
import { inspectors } from '../../compiler/runtime/builtins/inspectors.ts'
import { owner } from '../../compiler/runtime/generator.ts'
import { type Twin, twin } from '../../coroutine/core/coroutine.ts'
import { CheckError } from '../errors.ts'
import { isIntrinsic } from './intrinsics.ts'
import { isInstrumented } from './marks.ts'
import { AWAIT } from '../machine/operations.ts'
import { effect, isShared, op, pending } from '../machine/pending.ts'
import { isQuietList } from './quiet.ts'
import { refuse } from './refusal.ts'
import {
  isUnseen,
  noteAccessor,
  noteCallbacks,
  noteGiven,
  noteMethod,
  noteSetter,
  ran,
  startsLater,
} from './unseen.ts'
import { isGuarded, nativeMark, typedArrays } from '../machine/views.ts'

type Callable = (...args: any[]) => any

// `instanceof` would run the traps of a proxy, and of one among the prototypes.
const Shared = SharedArrayBuffer
const Later = Promise
const isBuffer = inspectors?.isSharedArrayBuffer ?? ((x: unknown) => x instanceof Shared)
const isPromise = inspectors?.isPromise ?? ((x: unknown) => x instanceof Later)
const isMap = inspectors?.isMap ?? ((x: unknown) => x instanceof Map)
const isSet = inspectors?.isSet ?? ((x: unknown) => x instanceof Set)
const isProxy = inspectors?.isProxy ?? (() => false)
const Typed = Object.getPrototypeOf(Int8Array.prototype) as object
/** A getter that answers differently for a view and for a proxy of it. */
const blind: unknown = Object.getOwnPropertyDescriptor(Typed, Symbol.toStringTag)!.get

/** Calls a function that has no twin. `text`: how the source names it. */
export function plain(fn: unknown, self: unknown, args: unknown[], text: string): unknown {
  effect()
  return watched(fn, self, args, text)
}

/** The same; the caller knows whether the function has an effect. */
export function watched(fn: unknown, self: unknown, args: unknown[], text: string): unknown {
  if (typeof fn !== 'function') return refuseCall(text)
  if (pending.current < 0) return Reflect.apply(fn, self, args)
  pending.refused.get(fn)?.(args, false)
  if (!isIntrinsic(fn)) {
    if (isWasm(fn))
      refuse(
        `a function of WebAssembly (${text}) was called, which may have shared memory of its own`,
        ADVICE,
      )
    if (holdsMemory([self, ...args])) refuseGiven(text)
    noteHidden(text)
    const unseen = isUnseen(fn)
    if (unseen) ran(`${text} was called`)
    else if (startsLater(fn, args)) ran(`${text} was given a function to call later`)
    let result: unknown
    try {
      result = Reflect.apply(fn, self, args)
    } catch (error) {
      // A function of the host may throw because of memory that it got from a getter: a real thread might go
      // on.
      if (!unseen && !isAssertion(error)) ran(`${text} threw ${String(error)}`)
      throw error
    }
    if (isPromise(result))
      refuse(
        `${text}, which is not instrumented, returned a promise: it goes on when the check does not see it`,
        ADVICE,
      )
    return result
  }
  noteCallbacks(args)
  if (!runsNothing(fn, self)) noteGiven([self, ...args])
  if (!isMemory(self) && !args.some(isMemory)) return Reflect.apply(fn, self, args)
  if (fn === blind || [self, ...args].some(x => isMemory(x) && !isGuarded(x))) refuseGiven(text)
  try {
    return Reflect.apply(fn, self, args)
  } catch (error) {
    if (pending.refusal !== undefined || error instanceof CheckError) throw error
    return refuse(`${text} was given shared memory, and threw ${String(error)}`, ADVICE)
  }
}

/** Functions that call none of their arguments, and change only a collection. */
const ofCollections = new Set<unknown>(
  [Map, Set, WeakMap, WeakSet].flatMap(({ prototype }) =>
    ['get', 'has', 'set', 'add', 'delete'].map(name => (prototype as never as Record<string, unknown>)[name]),
  ),
)
/** Functions that call only the accessors of their own list. */
const ofLists = new Set<unknown>(
  (['push', 'pop', 'shift', 'unshift', 'indexOf', 'includes'] as const).map(name => Array.prototype[name]),
)

/** Whether a function of the language calls no code of its arguments or of `self`. */
function runsNothing(fn: unknown, self: unknown): boolean {
  return ofCollections.has(fn) || (ofLists.has(fn) && isQuietList(self))
}

/** The arguments of `new maker(…)`. */
export function given(maker: any, args: unknown[]): unknown[] {
  if (pending.current < 0 || typeof maker !== 'function' || pending.reals.has(maker)) return args
  for (let base = maker; typeof base === 'function'; base = Object.getPrototypeOf(base))
    pending.refused.get(base)?.(args, true)
  if (isIntrinsic(maker)) {
    if (makers.has(maker) && args.some(isGuarded)) refuseGiven(`new ${maker.name}(), taken before the check`)
    noteCallbacks(args)
    noteGiven(args)
    return args
  }
  for (let base = maker; typeof base === 'function'; base = Object.getPrototypeOf(base))
    if (isUnseen(base)) ran(`new ${base.name}() was called`)
  if (!isOfTheCheck(maker) && holdsMemory(args)) refuseGiven(`new ${maker.name}()`)
  return args
}

/** The constructors of views without guards: they read the inside of a buffer. */
const makers = new Set<unknown>([...Object.values(typedArrays), DataView])

/** The callee of a call in a plain form. */
export function called<T>(fn: T): T {
  if (pending.current >= 0) {
    pending.refused.get(fn)?.(undefined, false)
    if (isUnseen(fn)) ran(`${fn.name || 'a function'} was called`)
  }
  return fn
}

/** The object of a method that is called in a plain form. */
export function calls<T>(object: T, key: PropertyKey): T {
  if (pending.current >= 0 && Object(object) === object)
    pending.refused.get(noteMethod(object as object, key))?.(undefined, false)
  return object
}

/** The object of a property that a plain form reads or writes. */
export function uses<T>(object: T, key: PropertyKey): T {
  if (pending.current >= 0 && typeof object === 'object' && object !== null) {
    noteAccessor(object, key)
    noteSetter(object, key)
  }
  return object
}

/** The holder of a property that is the tag of a template. */
export function tagged<T>(holder: T, key: PropertyKey): T {
  const fn: unknown = (holder as Record<PropertyKey, unknown> | undefined)?.[key]
  if (pending.current >= 0 && isUnseen(fn)) ran(`${String(key)} was called`)
  effect()
  return holder
}

function isAssertion(error: unknown): boolean {
  return error instanceof Error && error.name === 'AssertionError'
}

const ADVICE =
  'Read the memory in the check itself, element by element, and give what was read; or name the module in the check: `{ modules: [...] }`'

function refuseGiven(text: string): never {
  return refuse(`${text}, which is not instrumented, was given shared memory`, ADVICE)
}

/** True for shared memory, of the check or from elsewhere. */
export function isMemory(x: unknown): boolean {
  return isGuarded(x) || isShared(x) || isBuffer(x)
}

/**
 * Whether these values contain shared memory, directly or in their properties, as far as that can be seen
 * without running code. More than HELD_MAX objects count as if they held some.
 */
export function holdsMemory(values: readonly unknown[]): boolean {
  hidesSome = false
  const seen = new Set<unknown>()
  let level: unknown[] = [...values]
  while (level.length > 0) {
    const deeper: unknown[] = []
    for (const x of level) {
      if ((typeof x !== 'object' && typeof x !== 'function') || x === null || seen.has(x)) continue
      if (isMemory(x)) return true
      if (isIntrinsic(x)) continue
      seen.add(x)
      if (seen.size >= HELD_MAX) return true
      if (isProxy(x)) continue
      if (isMap(x)) deeper.push(...x.keys(), ...x.values())
      else if (isSet(x)) deeper.push(...x)
      for (const key of Reflect.ownKeys(x)) {
        const found = Reflect.getOwnPropertyDescriptor(x, key)
        if (found?.get !== undefined && !isIntrinsic(found.get) && !isNative(found.get)) hidesSome = true
        deeper.push(found?.value)
      }
    }
    level = deeper
  }
  return false
}

const HELD_MAX = 10_000

/** Whether the last `holdsMemory` met a getter: its value is not known before it has run. */
let hidesSome = false

/** Notes a function that got the values of the last `holdsMemory`, if one of them had a getter. */
export function noteHidden(text: string): void {
  if (hidesSome && pending.current >= 0) ran(`${text} was given an object with a getter`)
}

function isNative(fn: Callable): boolean {
  return /\[native code\]/.test(toString.call(fn))
}

const { toString } = Function.prototype

/** The name of a function that WebAssembly exports is a number. */
function isWasm(fn: { readonly name?: unknown }): boolean {
  return typeof fn.name === 'string' && /^\d+$/.test(fn.name) && isNative(fn as Callable)
}

/** Whether a class or one of its base classes is instrumented. */
function isOfTheCheck(maker: Callable): boolean {
  for (
    let made: any = maker;
    typeof made === 'function' && !isIntrinsic(made);
    made = Object.getPrototypeOf(made)
  ) {
    if (isInstrumented(made)) return true
  }
  return false
}

/**
 * The twin of a function whose promise the caller at this place does not await. If it is async, it must not
 * wait.
 */
export function ownAt(fn: ((...args: any[]) => any) & { [twin]?: Twin }, site: number): Twin {
  if (isIntrinsic(fn)) return awaitedAt(fn, site)
  const made = twinAt(fn, site)
  return Object.getPrototypeOf(fn) === Async ? beside(made, fn.name) : made
}

const AWAIT_IT = 'Await it there, or make the code that runs beside it a thread of its own'
const Async = Object.getPrototypeOf(async () => undefined) as object

/**
 * An async function runs synchronously up to its first `await`, and then beside its caller, in the same
 * thread. Such orders are not explored, so an async function that waits and is not awaited is refused.
 */
function beside(made: Twin, name: string): Twin {
  return function* (this: unknown, ...args: unknown[]): Generator<number, unknown, unknown> {
    const steps = Reflect.apply(made, this, args) as Generator<number, unknown, unknown>
    let step = steps.next()
    while (!step.done) {
      if (pending.kind[pending.current] === AWAIT)
        refuse(`the async function ${name} waits, and was not awaited where it was called`, AWAIT_IT)
      let sent: unknown
      try {
        sent = yield step.value
      } catch (error) {
        step = steps.throw(error)
        continue
      }
      step = steps.next(sent)
    }
    if (isThenable(step.value))
      refuse(
        `the async function ${name} returned an object with a method \`then\`, which is called later, and was not awaited where it was called`,
        AWAIT_IT,
      )
    return step.value
  }
}

/** Whether a promise that is resolved with this value calls its `then`. */
export function isThenable(x: unknown): boolean {
  if (typeof x !== 'object' || x === null || isPromise(x) || isProxy(x)) return false
  for (let holder: object | null = x; holder !== null; holder = Reflect.getPrototypeOf(holder)) {
    const found = Reflect.getOwnPropertyDescriptor(holder, 'then')
    if (found !== undefined) return found.get !== undefined || typeof found.value === 'function'
  }
  return false
}

/** The operation of an `await` of this value. */
export function waits(site: number, value: unknown): number {
  const { current } = pending
  if (current >= 0) pending.waits[current]++
  return op(AWAIT, site, value)
}

/** How many times the running thread has awaited something. */
export function waited(): number {
  return pending.current < 0 ? 0 : pending.waits[pending.current]
}

/**
 * The result of a call that is not awaited. If the thread has waited since the call began, an async function
 * ran in it that should run beside it.
 */
export function unawaited<T>(before: number, result: T): T {
  const { current } = pending
  if (current >= 0 && pending.waits[current] !== before)
    refuse('an async function waited inside of a call that was not awaited', AWAIT_IT)
  return result
}

/**
 * The twin of a function whose result the caller at this place awaits or returns. A function of the language
 * awaits no callback, unless it returns the result of the callback.
 */
export function awaitedAt(fn: ((...args: any[]) => any) & { [twin]?: Twin }, site: number): Twin {
  const made = twinAt(fn, site)
  if (!isIntrinsic(fn)) return made
  let wrapped = withCallbacks.get(made)
  if (wrapped === undefined) {
    wrapped = noting(passing.has(fn) ? made : beside(made, fn.name))
    withCallbacks.set(made, wrapped)
  }
  return wrapped
}

/** The twin of a function of the language that may call its arguments. */
function noting(made: Twin): Twin {
  return function (this: unknown, ...args: unknown[]): Generator<number, unknown, unknown> {
    noteCallbacks([this, ...args])
    noteGiven([this, ...args])
    return Reflect.apply(made, this, args) as Generator<number, unknown, unknown>
  }
}

const passing = new Set<unknown>([Function.prototype.call, Function.prototype.apply, Reflect.apply])
const withCallbacks = new WeakMap<Twin, Twin>()

/**
 * The twin of a function that is called at this place. The twin of a function of the language reports its
 * steps at this place.
 */
function twinAt(fn: ((...args: any[]) => any) & { [twin]?: Twin }, site: number): Twin {
  // Code that heddle has compiled for tasks has twins too, but their accesses are not steps.
  if (pending.current >= 0 && isUnseen(fn)) return plainTwin(fn)
  pending.place = site
  const made = own(fn) as Twin & { [owner]?: unknown; [nativeMark]?: true }
  if (made[owner] === undefined && fn[twin] !== made) return plainTwin(fn)
  // The models of the checker report their own effects; those of other functions are not known.
  if (made[nativeMark] !== true && isIntrinsic(fn)) effect()
  return made
}

/** The twin that calls a function which is not instrumented. */
function plainTwin(fn: (...args: any[]) => any): Twin {
  // oxlint-disable-next-line require-yield
  return function* (this: unknown, ...args: unknown[]) {
    return plain(fn, this, args, fn.name)
  }
}
