import { attach, binder as bind, setTwinShape } from '../../compiler/runtime.ts'
import { twin } from '../../coroutine/core/coroutine.ts'
import { generatorMethods, setPlainStop } from '../../compiler/runtime/generator.ts'
import { effect, isShared, pending, realOf, vouchFor } from '../machine/pending.ts'
import { isInstrumented } from './marks.ts'
import { refuse } from './refusal.ts'
import { nativeMark } from '../machine/views.ts'

/**
 * What instrumented code calls. It records the operation that the running virtual thread wants next; the
 * machine reads it after the generator has yielded, and performs it when the explorer picks the thread.
 */
export { twin }
export * from '../../compiler/runtime.ts'
export * from '../machine/pending.ts'
export { cover } from '../report/coverage.ts'
export { lengthOf } from './elementwise.ts'
export { construct, elements, list, modelled, places } from './models.ts'
export { fields, take } from './patterns.ts'
export { awaitedAt, given, ownAt, plain, tagged, unawaited, waited, waits } from './foreign.ts'
import './twins.ts'
export { kind, parts, peek, poke, primitive, through, unproxied, within } from './quiet.ts'

setTwinShape(resumable)
for (const fn of generatorMethods) vouchFor(fn)

/** `fn.bind(…)`: what is made of an instrumented function counts as one. */
export function binder(fn: any, text: string): (...args: any[]) => any {
  const made = bind(fn, text)
  return typeof fn === 'function' && isInstrumented(fn) ? (...args) => vouchFor(made(...args)) : made
}

// By whatever name it is called, a pause changes nothing: a turn of a loop with one in it can still be a
// useless one.
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
 * A virtual thread switches at every access, a few calls deep: its generators stay as the engine makes them.
 */
export function resumable<F>(fn: F): F {
  return fn
}

/**
 * A view as code outside of the threads uses it: set-ups and final assertions read and write as fast as ever.
 */
export function direct<T>(x: T): T {
  return pending.current < 0 && isShared(x) ? (realOf(x) as T) : x
}

/** Only there for the text of a class: marks.ts. */
export function marked(_mark: string): void {}

/**
 * The plain form of a function begins to run: inside a thread, called by code that the compiler does not see.
 */
export function entered(_mark: string): void {
  if (pending.current >= 0) effect()
}
