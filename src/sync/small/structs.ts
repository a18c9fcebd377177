import { twin } from '../../coroutine/core/coroutine.ts'
import { inside } from '../../coroutine/core/faces.ts'
import { show } from '../../coroutine/core/knownoptions.ts'
import { resumable } from '../../coroutine/core/generators.ts'
import { Condition as OurCondition } from '../condition/condition.ts'
import { Mutex as OurMutex } from '../mutex/mutex.ts'
import { UnlockToken } from '../mutex/locktoken.ts'

/**
 * The static API of TC39's structs proposal, to the letter, over the objects of this library:
 *
 *   import { Atomics } from 'heddle/structs'
 *   const mutex = new Atomics.Mutex()
 *   using token = Atomics.Mutex.lock(mutex)
 *
 * On a thread the calls block; in a 'use task' function the same calls park the task.
 */
export class Mutex extends OurMutex {
  static readonly UnlockToken: typeof UnlockToken = UnlockToken

  /** Blocks until the lock is held. With a token, that one is filled and returned; it must be empty. */
  static lock(mutex: OurMutex, unlockToken?: UnlockToken): UnlockToken {
    checkArguments('lock', mutex, unlockToken)
    mutex.lockSync()
    return fill(mutex, unlockToken)
  }

  /** The lock, or null if it is still held after `timeout` milliseconds. */
  static lockIfAvailable(mutex: OurMutex, timeout: number, unlockToken?: UnlockToken): UnlockToken | null {
    checkArguments('lockIfAvailable', mutex, unlockToken)
    return mutex.lockIfAvailableSync(timeout) === null ? null : fill(mutex, unlockToken)
  }
}

export class Condition extends OurCondition {
  /** Unlocks, waits for a notify, and locks again. */
  static wait(cv: OurCondition, unlockToken: UnlockToken): void {
    cv.waitSync(unlockToken)
  }

  /**
   * Waits until `predicate` is true, for at most `timeout` milliseconds. Returns whether it is; without it,
   * whether notified.
   */
  static waitFor(
    cv: OurCondition,
    unlockToken: UnlockToken,
    timeout: number,
    predicate?: () => boolean,
  ): boolean {
    return cv.waitForSync(unlockToken, timeout, predicate)
  }

  /** How many were notified. */
  static notify(cv: OurCondition, count: number = Infinity): number {
    return cv.notify(count)
  }
}

/** The proposal's names where the proposal puts them. */
export const Atomics: { readonly Mutex: typeof Mutex; readonly Condition: typeof Condition } = {
  Mutex,
  Condition,
}

export { UnlockToken }

function checkArguments(what: string, mutex: unknown, token: UnlockToken | undefined): void {
  if (!(mutex instanceof OurMutex))
    throw new TypeError(`Atomics.Mutex.${what}: mutex: ${show(mutex)} is not a Mutex; give one`)
  if (token !== undefined && !(token instanceof UnlockToken))
    throw new TypeError(`Atomics.Mutex.${what}: ${show(token)} is not a token; give UnlockToken.empty()`)
  if (token !== undefined && token.locked) {
    throw new TypeError(`Atomics.Mutex.${what}: the token holds a lock already; pass one that is empty`)
  }
}

function fill(mutex: OurMutex, token: UnlockToken | undefined): UnlockToken {
  const filled = token ?? UnlockToken.empty()
  filled.mutex = mutex
  filled.owner = null
  return filled
}

type Static = (...args: never[]) => unknown

function inTask<F extends Static>(
  fn: F,
  form: (...args: Parameters<F>) => Generator<number, unknown, unknown>,
): void {
  Object.defineProperty(fn, twin, { value: resumable(form) })
}

inTask(Mutex.lock, function* (mutex, unlockToken) {
  checkArguments('lock', mutex, unlockToken)
  yield* inside(() => mutex.lock())
  return fill(mutex, unlockToken)
})
inTask(Mutex.lockIfAvailable, function* (mutex, timeout, unlockToken) {
  checkArguments('lockIfAvailable', mutex, unlockToken)
  return (yield* inside(() => mutex.lockIfAvailable(timeout))) === null ? null : fill(mutex, unlockToken)
})
inTask(Condition.wait, function* (cv, unlockToken) {
  yield* inside(() => cv.wait(unlockToken))
})
inTask(Condition.waitFor, function* (cv, unlockToken, timeout, predicate) {
  return yield* inside(() => cv.waitFor(unlockToken, timeout, predicate))
})
