import { fail, InvariantError } from '../assert.ts'
import { lockOrder } from './lockorder.ts'
import { holds, Lock } from './spinlock.ts'
import type { KernelThread } from './thread.ts'

/**
 * A section is kernel code that must run to its end: from acquire to release of a lock, and between two steps
 * of a protocol without a lock. `KernelThread.sections` counts the sections that the thread is in. It is 0
 * whenever the user's code runs.
 *
 * An unexpected exception (stack overflow, a broken invariant) leaves the count as it is, because a section
 * does not end in a `finally`:
 *
 *   task, on CPU 0                             CPU 1
 *   --------------                             -----
 *   takes a lock of the kernel
 *   calls deeper: stack overflow
 *   the RangeError leaves the call; the task
 *   catches it, and goes on
 *                                              waits for the lock for ever: its holder is alive
 *
 * So the CPU checks the count when a task stops (`throwIfInside`), and dies if it is not 0: recovery handles
 * a death at any step (docs/recovery.md).
 */

/**
 * Whether an exception may have left a structure half changed: then the lock that guards it stays locked, and
 * recovery breaks it. All other exceptions are thrown before anything is changed: bad input, no room.
 */
export function isFault(error: unknown): boolean {
  if (error instanceof InvariantError) return true
  // V8; then SpiderMonkey and JavaScriptCore.
  return error instanceof Error && /call stack size|too much recursion/.test(error.message)
}

/**
 * An exception left a call in the middle. True: it is a fault, and the state of the call stays as it is: this
 * CPU dies, and recovery ends the call. The count goes up first, because the stack may have no room for more
 * calls.
 */
export function leavesToRecovery(thread: KernelThread, thrown: unknown): boolean {
  thread.sections++
  if (isFault(thrown)) return true
  thread.sections--
  return false
}

/**
 * The user's code has run on this thread, and has stopped: throws if an exception left the kernel in the
 * middle of a section. `cause`: what the code threw, if it did.
 */
export function throwIfInside(thread: KernelThread, where: string, cause?: unknown): void {
  if (thread.sections === 0) return
  const { i32, outerLock } = thread
  const isHeld = outerLock !== 0 && holds(thread, outerLock)
  const lock = isHeld ? `with the lock '${lockOrder[i32[outerLock + Lock.rank]].name}' locked` : 'half done'
  const why =
    cause instanceof Error
      ? (cause.stack ?? cause.message)
      : 'the task has caught an error inside it, for example a stack overflow'
  fail(`${where} left a call of the kernel ${lock}: ${why}`)
}
