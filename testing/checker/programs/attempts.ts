import { expect } from 'vitest'
import type { AsyncCheckOptions } from '../../../src/checker/async/options.ts'
import type { AsyncSetup } from '../../../src/checker/async/program.ts'
import { CheckFailure, check } from '../../../src/checker/check.ts'

/** Runs a check of asynchronous code that must fail. */
export async function failureOf(setup: AsyncSetup, options: AsyncCheckOptions = {}): Promise<CheckFailure> {
  const error: unknown = await check.async('broken', options, setup).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(CheckFailure)
  return error as CheckFailure
}

/** Runs a check of asynchronous code that is itself invalid. */
export async function wrong(
  setup: AsyncSetup,
  options: AsyncCheckOptions = {},
): Promise<{ code: string; message: string }> {
  const error: unknown = await check.async('wrong', options, setup).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'CheckError' })
  return error as { code: string; message: string }
}
