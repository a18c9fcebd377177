import { expect, test } from 'vitest'
import { check, CheckFailure, type CheckOptions, found } from '../checker/check.ts'
import {
  believesHints,
  hintWords,
  lockers,
  neverFallsBack,
  shortly,
  unlocksByStore,
  wakesByHint,
} from '../../testing/handoff/fixtures/shimprograms.ts'

const options: CheckOptions = { races: false, rerun: false }
const bounded = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const

test('two threads: every interleaving', () => {
  expect(check('two threads', options, lockers(2, { held: true }))).toMatchObject({
    ok: true,
    complete: true,
  })
})

test('hints overwritten at any time: every interleaving with one preemption', () => {
  const corrupt = [
    [hintWords[0], 0x1234_5671],
    [hintWords[3], -1],
  ] as const
  const setup = lockers(2, { held: true, corrupt })
  expect(check('corrupted', { ...options, ...bounded }, setup)).toMatchObject({ ok: true })
})

test('a lock that trusts its hints is found', () => {
  expect(found(lockers(2, {}, believesHints), { ...options, ...bounded, preemptions: 2 })).toMatch(
    /two threads have|unlocked by its owner/,
  )
})

test('an unlock that wakes only the waiter that a hint names is found', () => {
  expect(found(lockers(2, { held: true }, wakesByHint), options)).toMatch(
    /blocked|sleeps|lost wakeup|deadlock/i,
  )
})

test('the short lock and unlock of a Mutex: every interleaving with one preemption', () => {
  const setup = lockers(2, { times: 2 }, shortly)
  expect(check('shortly', { ...options, ...bounded }, setup)).toMatchObject({ ok: true })
})

test('a short unlock that stores the word, and so forgets a sleeper, is found', () => {
  expect(found(lockers(2, { times: 2 }, unlocksByStore), { ...options, ...bounded })).toMatch(
    /blocked|sleeps|lost wakeup|deadlock/i,
  )
})

test('a waiter that enters when its budget is spent, instead of waiting, is found', () => {
  expect(found(lockers(2, { held: true }, neverFallsBack), options)).toMatch(/two threads have the lock/)
})

test('a death that no thread recovers from leaves the others waiting', () => {
  const dying = { ...options, ...bounded, crashes: { max: 1, threads: [0] } }
  expect(() => check('dies', dying, lockers(2, { held: true }))).toThrow(CheckFailure)
})
