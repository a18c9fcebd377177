import { CheckError } from '../errors.ts'
import { messageWithPlace } from '../async/place.ts'
import type { Guards } from './guards.ts'
import type { Program, Setup } from './program.ts'

/** Runs a set-up under the guards. Throws a CheckError when it throws, or is not synchronous. */
export function runSetup(guards: Guards, setup: Setup): Program {
  guards.inSetup = true
  try {
    const program = setup() as Program & { then?: unknown }
    if (typeof program?.then === 'function') {
      throw new CheckError(
        'ERR_CHECK_SETUP',
        'the set-up returned a promise; it must be synchronous: await outside the set-up',
      )
    }
    return program
  } catch (error) {
    if (error instanceof CheckError) throw error
    throw new CheckError(
      'ERR_CHECK_SETUP',
      `the set-up of the check threw: ${messageWithPlace(error)}. It runs before every execution and must succeed each time; move code that may fail into a thread body or the final assertion`,
      { cause: error },
    )
  } finally {
    guards.inSetup = false
  }
}
