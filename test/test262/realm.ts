/**
 * The contents of a test's realm: the runtime of compiled code, and the driver that runs a coroutine to its
 * end.
 */
import { coroutineOf, PREEMPTED, setSafepointFlag } from '../../src/coroutine/core/coroutine.ts'
import * as runtime from '../../src/compiler/runtime.ts'

export { runtime }

const flag = new Int32Array(1)

/**
 * Suspends the caller if it can be suspended, and returns its argument. It is a preemption, not a wait: a
 * caller that cannot be suspended continues.
 */
export const stop: (value: unknown) => unknown = runtime.attach((value: unknown) => value, function* (
  value: unknown,
) {
  yield PREEMPTED
  return value
} as never)

/** Calls the program in one of three ways. Returns its value, and how often it stopped. */
export function drive(
  program: () => unknown,
  way: 'plain' | 'run' | 'preempted',
): { value: unknown; stops: number } {
  setSafepointFlag(flag, 0)
  if (way === 'plain') return { value: program(), stops: 0 }
  const coroutine = coroutineOf(program, [], undefined)
  flag[0] = way === 'preempted' ? 1 : 0
  let stops = 0
  for (let finished = coroutine.start(); !finished; finished = coroutine.resume(undefined)) {
    if (coroutine.state !== 'preempted') throw new Error(`the coroutine is ${coroutine.state}`)
    if (++stops > 1_000_000) throw new Error('it stops more than a million times')
  }
  if (coroutine.state === 'threw') throw coroutine.result
  return { value: coroutine.result, stops }
}
