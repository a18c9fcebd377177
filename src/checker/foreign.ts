/**
 * Calls of what is not instrumented. It may keep or change something, so each is an effect. And it may be given shared memory:
 *
 *   the language's own functions   reach it by traps (views.ts), or throw because a proxy has nothing inside; a thread that caught that
 *                                  would go on otherwise than the real program, so it is refused
 *   any other function             may look inside, and answer otherwise than it would: it is refused before it is called
 *   a function of WebAssembly      may have shared memory of its own: it is refused
 */
import { own, refuse as refuseCall } from '../compiler/runtime.ts'
import { inspectors } from '../compiler/runtime/inspectors.ts'
import { owner } from '../compiler/runtime/generator.ts'
import { type Twin, twin } from '../coroutine/coroutine.ts'
import { CheckError } from './errors.ts'
import { isIntrinsic } from './intrinsics.ts'
import { AWAIT } from './operations.ts'
import { effect, isShared, pending } from './pending.ts'
import { refuse } from './refusal.ts'
import { isGuarded, nativeMark } from './views.ts'

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
/** What answers for a proxy of a view otherwise than for a view. */
const blind: unknown = Object.getOwnPropertyDescriptor(Typed, Symbol.toStringTag)!.get

/** Calls a function that has no form of its own for threads. `text`: how the source names it. */
export function plain(fn: unknown, self: unknown, args: unknown[], text: string): unknown {
  effect()
  return watched(fn, self, args, text)
}

/** The same, where it is known whether the function has an effect. */
export function watched(fn: unknown, self: unknown, args: unknown[], text: string): unknown {
  if (typeof fn !== 'function') return refuseCall(text)
  if (pending.current < 0) return Reflect.apply(fn, self, args)
  if (!isIntrinsic(fn)) {
    if (isWasm(fn))
      refuse(
        `a function of WebAssembly (${text}) was called, which may have shared memory of its own`,
        ADVICE,
      )
    if (holdsMemory([self, ...args])) refuseGiven(text)
    const result: unknown = Reflect.apply(fn, self, args)
    if (isPromise(result))
      refuse(
        `${text}, which is not instrumented, returned a promise: it goes on when the check does not see it`,
        ADVICE,
      )
    return result
  }
  if (!isMemory(self) && !args.some(isMemory)) return Reflect.apply(fn, self, args)
  if (fn === blind || [self, ...args].some(x => isMemory(x) && !isGuarded(x))) refuseGiven(text)
  try {
    return Reflect.apply(fn, self, args)
  } catch (error) {
    if (pending.refusal !== undefined || error instanceof CheckError) throw error
    return refuse(`${text} was given shared memory, and threw ${String(error)}`, ADVICE)
  }
}

/** The arguments of `new maker(…)`. */
export function given(maker: any, args: unknown[]): unknown[] {
  if (pending.current < 0 || typeof maker !== 'function' || isIntrinsic(maker) || pending.reals.has(maker))
    return args
  if (!isOfTheCheck(maker) && holdsMemory(args)) refuseGiven(`new ${maker.name}()`)
  return args
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

/** Whether there is shared memory in these, or in what they hold; as far as it can be seen without running code. */
export function holdsMemory(values: readonly unknown[]): boolean {
  const seen = new Set<unknown>()
  let level: unknown[] = [...values]
  for (let depth = 0; depth <= DEPTH_MAX && level.length > 0 && seen.size < HELD_MAX; depth++) {
    const deeper: unknown[] = []
    for (const x of level) {
      if (typeof x !== 'object' || x === null || seen.has(x)) continue
      if (isMemory(x)) return true
      seen.add(x)
      if (seen.size >= HELD_MAX) return false
      if (isProxy(x)) continue
      if (isMap(x)) deeper.push(...x.keys(), ...x.values())
      else if (isSet(x)) deeper.push(...x)
      for (const key of Reflect.ownKeys(x)) deeper.push(Reflect.getOwnPropertyDescriptor(x, key)?.value)
    }
    level = deeper
  }
  return false
}

const DEPTH_MAX = 4
const HELD_MAX = 1000

const { toString } = Function.prototype

/** An exported function of WebAssembly is named by a number. */
function isWasm(fn: { readonly name?: unknown }): boolean {
  return typeof fn.name === 'string' && /^\d+$/.test(fn.name) && /\[native code\]/.test(toString.call(fn))
}

/** True for a class of code that is instrumented: its text or its methods show it. */
function isOfTheCheck(maker: Callable): boolean {
  for (
    let made: any = maker;
    typeof made === 'function' && !isIntrinsic(made);
    made = Object.getPrototypeOf(made)
  ) {
    if (toString.call(made).includes('$h_')) return true
    const methods = Object.getOwnPropertyDescriptors(made.prototype ?? {})
    for (const { value, get, set } of Object.values(methods))
      if ([value, get, set].some(fn => fn?.[twin] !== undefined)) return true
  }
  return false
}

/** The twin of what is called at this place, where its promise is not awaited: an async function must not wait then. */
export function ownAt(fn: ((...args: any[]) => any) & { [twin]?: Twin }, site: number): Twin {
  const made = awaitedAt(fn, site)
  return Object.getPrototypeOf(fn) === Async ? unawaited(made, fn.name) : made
}

const Async = Object.getPrototypeOf(async () => undefined) as object

/**
 * An async function runs up to its first `await` at once, and then beside its caller, in the same thread: such orders are not explored. One that waits without
 * having been awaited is refused.
 */
function unawaited(made: Twin, name: string): Twin {
  return function* (this: unknown, ...args: unknown[]): Generator<number, unknown, unknown> {
    const steps = Reflect.apply(made, this, args) as Generator<number, unknown, unknown>
    let step = steps.next()
    while (!step.done) {
      if (pending.kind[pending.current] === AWAIT)
        refuse(
          `the async function ${name} waits, and was not awaited where it was called`,
          'Await it there; what goes on beside it must be a thread of its own',
        )
      let sent: unknown
      try {
        sent = yield step.value
      } catch (error) {
        step = steps.throw(error)
        continue
      }
      step = steps.next(sent)
    }
    return step.value
  }
}

/** The twin of what is called at this place: a function of the language that has one reports its steps there. */
export function awaitedAt(fn: ((...args: any[]) => any) & { [twin]?: Twin }, site: number): Twin {
  pending.place = site
  const made = own(fn) as Twin & { [owner]?: unknown; [nativeMark]?: true }
  if (made[owner] === undefined && fn[twin] !== made) return plainTwin(fn)
  // The models of the checker say themselves what has an effect; of the others it is not known.
  if (made[nativeMark] !== true && isIntrinsic(fn)) effect()
  return made
}

/** The twin that calls what is not instrumented. */
function plainTwin(fn: (...args: any[]) => any): Twin {
  // oxlint-disable-next-line require-yield
  return function* (this: unknown, ...args: unknown[]) {
    return plain(fn, this, args, fn.name)
  }
}
