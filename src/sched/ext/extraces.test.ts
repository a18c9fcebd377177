import { expect, test } from 'vitest'
import { check, found } from '../../checker/check.ts'
import { MORTAL_CPU, type Recover } from '../../../testing/sched/death.ts'
import { ExtRecord, stateIn } from './extlayout.ts'
import {
  consumeHastily,
  deathOfEjector,
  idleAgainstDispatch,
  startAgainstEject,
  startHastily,
  twoConsumers,
} from '../../../testing/sched/fixtures/extraces.ts'
import { recoverScheduler } from '../recovery/recovery.ts'

const OPTIONS = { rerun: false }

test('two CPUs take one task from a queue: every interleaving', () => {
  expect(check('two consumers', { rerun: false }, twoConsumers())).toMatchObject({ ok: true, complete: true })
})

test('a CPU that takes a task without looking again takes one that another has', () => {
  expect(found(twoConsumers(consumeHastily), OPTIONS)).toMatch(
    /not exactly one CPU has the task|in two|on no list|double insert|data race/,
  )
})

test('a CPU that does not ask once more before it halts sleeps while a task waits', () => {
  expect(
    found(
      idleAgainstDispatch(() => false),
      OPTIONS,
    ),
  ).toMatch(/a task waits on a queue, and a CPU sleeps/)
})

test('a task that joins a policy and does not check again stays behind', () => {
  expect(found(startAgainstEject(startHastily), { ...OPTIONS, races: false })).toMatch(
    /a task stays with no policy/,
  )
})

test('a policy whose ejector dies never ends when its state does not name the ejector', () => {
  const nameless: Recover = (s, dead) => {
    const at = s.ext.record + ExtRecord.state
    Atomics.store(s.i32, at, stateIn(Atomics.load(s.i32, at)))
    return recoverScheduler(s, dead)
  }
  const options = { ...OPTIONS, crashes: MORTAL_CPU, steps: 50_000, races: false }
  expect(found(deathOfEjector(nameless), options)).toMatch('a policy never ends')
})
