import { CheckError } from '../errors.ts'
import { messageOf } from '../report/failure.ts'
import type { Guards } from './guards.ts'
import type { Program, Setup } from './program.ts'

/** Runs a set-up while the guards are in place. Throws a CheckError when it throws, or is not synchronous. */
export function runSetup(guards: Guards, setup: Setup): Program {
  guards.inSetup = true
  try {
    const program = setup() as Program & { then?: unknown }
    if (typeof program?.then === 'function') {
      throw new CheckError(
        'ERR_CHECK_SETUP',
        'the set-up returned a promise; it must be synchronous: prepare what needs awaiting outside of it',
      )
    }
    return program
  } catch (error) {
    if (error instanceof CheckError) throw error
    throw new CheckError(
      'ERR_CHECK_SETUP',
      `the set-up of the check threw: ${messageOf(error)}. It runs before every execution and must succeed each time; what may fail belongs into a thread body or the final assertion`,
      { cause: error },
    )
  } finally {
    guards.inSetup = false
  }
}
