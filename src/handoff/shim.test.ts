import { expect, test } from 'vitest'
import { check, CheckFailure, type CheckOptions, found } from '../checker/check.ts'
import { ROBUST } from '../futex/mutex.ts'
import { believesHints, hintWords, lockers, neverFallsBack, wakesByHint } from './fixtures/shimprograms.ts'

const options: CheckOptions = { races: false, rerun: false }

test('two threads, with and without a policy: every interleaving', () => {
  expect(check('two threads', options, lockers(2, { held: true }))).toMatchObject({
    ok: true,
    complete: true,
  })
  expect(
    check('and a policy', options, lockers(2, { held: true, policy: [1], asks: ['waits'] })),
  ).toMatchObject({
    ok: true,
    complete: true,
  })
})

test('hints overwritten at any time: every interleaving', () => {
  const corrupt = [[hintWords[3], -1]] as const
  expect(check('corrupted', options, lockers(2, { held: true, yieldBudget: 0, corrupt }))).toMatchObject({
    ok: true,
    complete: true,
  })
})

test('the owner dies at any step: every interleaving with one preemption', () => {
  const dying = { ...options, crashes: { max: 1, threads: [0] } }
  const bounded = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const
  const setup = lockers(2, { kind: ROBUST, held: true, dies: true })
  expect(check('dies', { ...dying, ...bounded }, setup)).toMatchObject({ ok: true })
})

test('a lock that believes its hints is found out', () => {
  expect(found(lockers(2, {}, believesHints), options)).toMatch(/two threads have|unlocked by its owner/)
})

test('an unlock that wakes only whom a hint names is found out', () => {
  expect(found(lockers(2, { held: true }, wakesByHint), options)).toMatch(
    /blocked|sleeps|lost wakeup|deadlock/i,
  )
})

test('a waiter that comes in when its budget is spent, instead of waiting, is found out', () => {
  expect(found(lockers(2, { held: true }, neverFallsBack), options)).toMatch(/two threads have the lock/)
})

test('a death that nobody sees to leaves the others waiting', () => {
  const dying = { ...options, crashes: { max: 1, threads: [0] } }
  expect(() => check('dies', dying, lockers(2, { held: true }))).toThrow(CheckFailure)
})
