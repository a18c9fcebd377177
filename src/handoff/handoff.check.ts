/**
 * The lock shim over the product's own mutex, and waiters that move. The broken variants are in shim.test.ts
 * and follow.test.ts.
 */
import { check } from '../checker/check.ts'
import { PLAIN, ROBUST } from '../futex/robust/mutex.ts'
import { SeededRandom } from '../machine/simulated/random.ts'
import { deathOf, follows } from '../../testing/handoff/fixtures/followprograms.ts'
import { hintWords, lockers, questions, shortly } from '../../testing/handoff/fixtures/shimprograms.ts'

// Hints race on purpose (shimprograms.ts).
const races = false
const dying = { races, crashes: { max: 1, threads: [0] }, rerun: false }
/**
 * Three threads, two that lock twice, and a death beside its recovery have too many orders: all with so few
 * preemptions.
 */
const ONE = '(at most one preemption)'
const NONE = '(no preemption)'
const bounded = { explorer: 'preemption-bounded', preemptions: 1, allowIncomplete: true } as const

check('two threads, no policy', { races, rerun: false }, lockers(2))
check('two tasks, no policy', { races, rerun: false }, lockers(2, { verb: 'task' }))
check('one through the shim, one plainly', { races, rerun: false }, lockers(2, { plainly: 1 }))
check('two threads, two tries each', { races, rerun: false }, lockers(2, { yieldBudget: 2, held: true }))
check(`two that lock twice ${ONE}`, { races, rerun: false, ...bounded }, lockers(2, { times: 2, tids: 4 }))
check(
  `two that lock twice, shortly ${ONE}`,
  { races, rerun: false, ...bounded },
  lockers(2, { times: 2, tids: 4 }, shortly),
)
check(`three threads, no policy ${ONE}`, { races, rerun: false, ...bounded }, lockers(3, { tids: 4 }))

for (const verb of ['thread', 'task'] as const) {
  // One hint at a time: all of them together have too many orders.
  for (const question of questions) {
    check(
      `two ${verb}s and a policy that reads the hints: ${question}`,
      { races, rerun: false },
      lockers(2, { held: true, verb, policy: [0, 1], asks: [question] }),
    )
  }
}

for (let seed = 1; seed <= 6; seed++) {
  const random = new SeededRandom(seed)
  const corrupt = Array.from({ length: 2 }, () => {
    const word = hintWords[random.below(hintWords.length)]
    return [word, [0, -1, 1, 2, 0x1234_5671, 7][random.below(6)]] as const
  })
  check(
    `two threads, hints overwritten at any time: seed ${seed}`,
    { races, rerun: false },
    lockers(2, { held: true, corrupt }),
  )
}

for (const [name, kind] of [
  ['plain', PLAIN],
  ['robust', ROBUST],
] as const) {
  const options = { ...dying, ...bounded }
  for (const verb of ['thread', 'task'] as const) {
    check(
      `${name}: a ${verb} dies at any step of an unlock, as another comes ${ONE}`,
      options,
      lockers(2, { kind, held: true, dies: true, verb }),
    )
  }
  check(
    `${name}: the owner dies at any step of a lock or an unlock, as another comes ${NONE}`,
    { ...options, preemptions: 0 },
    lockers(2, { kind, dies: true }),
  )
  check(
    `${name}: a policy reads the hints of a dead owner ${NONE}`,
    { ...options, preemptions: 0 },
    lockers(2, { kind, held: true, dies: true, policy: [0] }),
  )
}

for (const at of ['yield', 'sleep'] as const) {
  check(
    `a waiter leaves its CPU at its ${at}, as the holder unlocks`,
    { races, rerun: false },
    follows({ at, other: false }),
  )
  check(
    `a waiter leaves its CPU at its ${at}, as the holder unlocks and another waits ${ONE}`,
    { races, rerun: false, ...bounded },
    follows({ at }),
  )
  check(
    `a waiter leaves its CPU at its ${at}, and is killed ${ONE}`,
    { races, rerun: false, ...bounded },
    follows({ at, killed: true }),
  )
  for (const dies of ['CPU A', 'CPU B', 'the holder'] as const) {
    for (const kind of [PLAIN, ROBUST] as const) {
      check(
        `${kind === PLAIN ? 'plain' : 'robust'}: ${dies} dies while a waiter leaves CPU A at its ${at} ${NONE}`,
        { races, rerun: false, ...bounded, preemptions: 0, ...deathOf(dies) },
        follows({ at, kind, dies }),
      )
    }
  }
}
