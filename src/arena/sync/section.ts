import { fail, InvariantError } from '../assert.ts'
import { lockOrder } from './lockorder.ts'
import { holds, Lock } from './spinlock.ts'
import type { KernelThread } from './thread.ts'

/**
 * A section is a stretch of the kernel that must not be left in the middle: from the taking of a lock to its
 * release, and between two steps of a protocol that has no lock. `KernelThread.sections` counts those that
 * the thread is in. It is 0 whenever code of the user runs.
 *
 * An exception that none of this expects (the stack is full, an invariant does not hold) leaves the count as
 * it is, because a section does not end in a `finally`:
 *
 *   task, on CPU 0                             CPU 1
 *   --------------                             -----
 *   takes a lock of the kernel
 *   calls deeper: the stack is full
 *   the RangeError leaves the call; the task
 *   catches it, and goes on
 *                                              waits for the lock for ever: its holder is alive
 *
 * So the CPU looks at the count when a task stops (`throwIfInside`), and dies of it: a death at whatever step
 * is recovered from (docs/recovery.md).
 */

/**
 * Whether an exception may have left a structure half changed: then the lock that guards it stays locked, for
 * recovery to break. Any other is thrown where nothing has been changed: bad input, no room.
 */
export function isFault(error: unknown): boolean {
  if (error instanceof InvariantError) return true
  // V8; then SpiderMonkey and JavaScriptCore.
  return error instanceof Error && /call stack size|too much recursion/.test(error.message)
}

/**
 * Something was thrown out of the middle of a call. True: it is a fault, and what the call had under way is
 * left as it is: this CPU dies of it, and recovery ends the call. The count goes up first, because the stack
 * may be too full to ask.
 */
export function leavesToRecovery(thread: KernelThread, thrown: unknown): boolean {
  thread.sections++
  if (isFault(thrown)) return true
  thread.sections--
  return false
}

/**
 * Code of the user has run on this thread, and has stopped: throws if it was left in the middle of the
 * kernel. `cause`: what the code threw, if it did.
 */
export function throwIfInside(thread: KernelThread, where: string, cause?: unknown): void {
  if (thread.sections === 0) return
  const { i32, outerLock } = thread
  const isHeld = outerLock !== 0 && holds(thread, outerLock)
  const lock = isHeld ? `with the lock '${lockOrder[i32[outerLock + Lock.rank]].name}' locked` : 'half done'
  const why =
    cause instanceof Error
      ? (cause.stack ?? cause.message)
      : 'an error that the task has caught, as a stack that is full'
  fail(`${where} left a call of the kernel ${lock}: ${why}`)
}
