import { describe, expect, it } from 'vitest'
import { SpinBudget } from './spinbudget.ts'

const MOST = 0.1
/** The time that a sleeping thread takes to run again after its wakeup, in milliseconds. */
const WAKEUP = 0.03
const REPLY = 0.003

/** A thread waits once, for an answer that comes after `ms`. Returns whether it slept. */
function waitOnce(budget: SpinBudget, ms: number): boolean {
  const { ms: spin } = budget
  if (spin > 0 && ms <= spin) {
    budget.succeeded()
    return false
  }
  if (spin > 0) budget.failed()
  else budget.slept(ms)
  return true
}

function stopped(): SpinBudget {
  const budget = new SpinBudget(MOST)
  while (budget.ms > 0) budget.failed()
  return budget
}

describe('the spin budget', () => {
  it('ends after failed spins, and doubles after a successful one', () => {
    const budget = new SpinBudget(MOST)
    budget.failed()
    expect(budget.ms).toBe(MOST / 2)
    budget.succeeded()
    expect(budget.ms).toBe(MOST)
    expect(stopped().ms).toBe(0)
  })

  it('lets two threads that both stopped spinning, and answer each other, spin again', () => {
    const [one, other] = [stopped(), stopped()]
    let isOneAsleep = true
    let isOtherAsleep = true
    for (let round = 0; round < 100; round++) {
      isOneAsleep = waitOnce(one, REPLY + (isOtherAsleep ? WAKEUP : 0))
      isOtherAsleep = waitOnce(other, REPLY + (isOneAsleep ? WAKEUP : 0))
    }
    expect([isOneAsleep, isOtherAsleep]).toEqual([false, false])
  })

  it('does not spin between long sleeps', () => {
    const budget = stopped()
    for (let round = 0; round < 10_000; round++) {
      budget.slept(3)
      expect(budget.ms).toBe(0)
    }
  })

  it('tests ever more seldom where the answer comes only while the thread sleeps', () => {
    const budget = stopped()
    let spins = 0
    for (let round = 0; round < 10_000; round++) {
      if (budget.ms === 0) {
        budget.slept(REPLY)
      } else {
        spins++
        budget.failed()
      }
    }
    expect(spins).toBeGreaterThan(5)
    expect(spins).toBeLessThan(60)
  })
})
