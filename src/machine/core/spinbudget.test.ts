import { describe, expect, it } from 'vitest'
import { SpinBudget } from './spinbudget.ts'

const MOST = 0.1
/** The time that a sleeping thread takes to run again after its wakeup, in milliseconds. */
const WAKEUP = 0.03
const REPLY = 0.003
/** Longer than a spin, and not idleness. */
const BETWEEN = 0.5

/** A thread waits once, for an answer that comes after `ms`. Returns whether it slept. */
function waitOnce(budget: SpinBudget, ms: number): boolean {
  const { ms: spin } = budget
  if (spin > 0 && ms <= spin) {
    budget.found()
    return false
  }
  budget.slept(ms - spin)
  return true
}

function stopped(): SpinBudget {
  const budget = new SpinBudget(MOST)
  while (budget.ms > 0) budget.slept(BETWEEN)
  return budget
}

/** Two threads that answer each other, `rounds` times; each `every`th answer takes longer. */
function answerEachOther(one: SpinBudget, other: SpinBudget, rounds: number, every = Infinity): boolean[] {
  let isOneAsleep = true
  let isOtherAsleep = true
  for (let round = 1; round <= rounds; round++) {
    const extra = round % every === 0 ? MOST : 0
    isOneAsleep = waitOnce(one, REPLY + extra + (isOtherAsleep ? WAKEUP : 0))
    isOtherAsleep = waitOnce(other, REPLY + extra + (isOneAsleep ? WAKEUP : 0))
  }
  return [isOneAsleep, isOtherAsleep]
}

describe('the spin budget', () => {
  it('ends after failed spins, and not while most spins find work', () => {
    const budget = new SpinBudget(MOST)
    for (let round = 0; round < 100; round++) {
      budget.slept(BETWEEN)
      budget.found()
      budget.found()
      expect(budget.ms).toBe(MOST)
    }
    expect(stopped().ms).toBe(0)
  })

  it('lets two threads that both stopped spinning, and answer each other, spin again', () => {
    expect(answerEachOther(stopped(), stopped(), 100)).toEqual([false, false])
  })

  it('lets them spin again also if an answer takes longer now and then', () => {
    for (const every of [3, 7, 13])
      expect(answerEachOther(stopped(), stopped(), 30 * every + 1, every)).toEqual([false, false])
  })

  it('does not change while the thread is idle', () => {
    const [spins, sleeps] = [new SpinBudget(MOST), stopped()]
    for (let round = 0; round < 10_000; round++) {
      spins.slept(3)
      sleeps.slept(3)
    }
    expect([spins.ms, sleeps.ms]).toEqual([MOST, 0])
  })

  it('tests ever more seldom where the answer comes only while the thread sleeps', () => {
    const budget = stopped()
    let spins = 0
    for (let round = 0; round < 10_000; round++) {
      if (budget.ms > 0) spins++
      budget.slept(REPLY)
    }
    expect(spins).toBeGreaterThan(10)
    expect(spins).toBeLessThan(400)
  })
})
