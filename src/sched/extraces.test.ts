import { expect, test } from 'vitest'
import { check, CheckFailure, type Setup } from '../checker/check.ts'
import {
  consumeHastily,
  idleAgainstDispatch,
  startAgainstEject,
  startHastily,
  twoConsumers,
} from './fixtures/extraces.ts'

function found(setup: Setup, races = true): string {
  try {
    check('broken', { races, rerun: false }, setup)
  } catch (error) {
    if (error instanceof CheckFailure) return error.message
    throw error
  }
  throw new Error('nothing was found')
}

test('two CPUs take one task from a queue: every interleaving', () => {
  expect(check('two consumers', { rerun: false }, twoConsumers())).toMatchObject({ ok: true, complete: true })
}, 60_000)

test('a CPU that takes a task without looking again takes one that another has', () => {
  expect(found(twoConsumers(consumeHastily))).toMatch(
    /not exactly one CPU has the task|in two|on no list|double insert|data race/,
  )
}, 60_000)

test('a CPU that does not ask once more before it halts sleeps while a task waits', () => {
  expect(found(idleAgainstDispatch(() => false))).toMatch(/a task waits on a queue, and a CPU sleeps/)
}, 60_000)

test('a task that joins a policy and does not look again stays behind', () => {
  expect(found(startAgainstEject(startHastily), false)).toMatch(/a task stays with no policy/)
}, 60_000)
