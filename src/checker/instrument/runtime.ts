import { attach, binder as bind, setTwinShape } from '../../compiler/runtime.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import { generatorMethods, setPlainStop } from '../../compiler/runtime/generator.ts'
import { effect, isShared, pending, realOf, vouchFor } from '../machine/pending.ts'
import { isInstrumented } from './marks.ts'
import { noteRefusal, refuse } from './refusal.ts'
import { nativeMark } from '../machine/views.ts'

/**
 * The runtime of instrumented code. It records the next operation of the running virtual thread. The machine
 * reads the operation after the generator has yielded, and performs it when the explorer picks the thread.
 */
export { twin }
export * from '../../compiler/runtime.ts'
export * from '../machine/pending.ts'
export { cover } from '../report/coverage.ts'
export { lengthOf } from './elementwise.ts'
export { construct, elements, list, modelled, places } from './models.ts'
export { fields, take } from './patterns.ts'
export {
  awaitedAt,
  called,
  calls,
  given,
  ownAt,
  plain,
  tagged,
  unawaited,
  uses,
  waited,
  waits,
} from './foreign.ts'
import './twins.ts'
export { kind, parts, peek, poke, primitive, through, unproxied, within } from './quiet.ts'

setTwinShape(resumable)
for (const fn of generatorMethods) vouchFor(fn)

/** `fn.bind(…)`: a bound instrumented function counts as instrumented. */
export function binder(fn: any, text: string): (...args: any[]) => any {
  const made = bind(fn, text)
  return typeof fn === 'function' && isInstrumented(fn) ? (...args) => vouchFor(made(...args)) : made
}

// A pause changes nothing, by whatever name it is called: a turn of a loop that pauses can still be useless.
if (typeof Atomics.pause === 'function' && !(twin in Atomics.pause))
  attach(
    Atomics.pause,
    Object.assign(function* () {}, { [nativeMark]: true }),
  )

setPlainStop(() => {
  if (pending.current >= 0) {
    refuse(
      'a generator of the check, which stops at its shared accesses, was driven by code that cannot stop with it',
      'drive it with `for…of`, `next()`, a spread or `Array.from` in the check itself',
    )
  }
})

/**
 * The generators of a virtual thread stay unchanged: it switches at every access, but only a few calls deep.
 */
export function resumable<F>(fn: F): F {
  return fn
}

/** The real view, for code outside of the threads: set-ups and final assertions access it at full speed. */
export function direct<T>(x: T): T {
  return pending.current < 0 && isShared(x) ? (realOf(x) as T) : x
}

/** Does nothing: its call puts the mark into the text of a class (marks.ts). */
export function marked(_mark: string): void {}

/**
 * The plain form of a function starts. Inside a thread this means that code which is not instrumented called
 * it.
 */
export function entered(_mark: string): void {
  if (pending.current >= 0) effect()
}

/**
 * The same of an async function that waits: it would go on when the check does not see it. True if it must
 * end: the error would become the rejection of a promise that no code handles.
 */
export function enteredAsync(_mark: string): boolean {
  if (pending.current < 0) return false
  noteRefusal(
    'an async function that waits was called by code that is not instrumented, or is a generator',
    'Call it in the check itself, and await it there',
  )
  return true
}
