/** The lock shim, explored in full. The broken variants are in shim.test.ts. */
import { check } from '../checker/check.ts'
import { SeededRandom } from '../machine/random.ts'
import { hintWords, lockers, questions } from './fixtures/shimprograms.ts'

// Hints race on purpose (shimprograms.ts).
const races = false
const dying = { races, crashes: { max: 1, threads: [0] }, rerun: false }

check('two threads, no policy', { races }, lockers(2))
check('two tasks, no policy', { races, rerun: false }, lockers(2, { verb: 'task' }))
check('two tasks and a policy', { races, rerun: false }, lockers(2, { verb: 'task', policy: [1] }))
check('a task dies at any step', dying, lockers(2, { verb: 'task', dies: true }))
check('one through the shim, one plainly', { races, rerun: false }, lockers(2, { plainly: 1, times: 2 }))
check('two threads, two tries each', { races, rerun: false }, lockers(2, { yieldBudget: 2 }))
check(
  'two threads and a policy that reads the hints',
  { races, rerun: false },
  lockers(2, { policy: [1, 2] }),
)
check('three threads, no policy', { races, rerun: false }, lockers(3, { yieldBudget: 1, tids: 4 }))
// One question at a time, or there is no end to it.
for (const question of questions) {
  check(
    `three threads and a policy: ${question}`,
    { races, rerun: false },
    lockers(3, { yieldBudget: 0, tids: 4, policy: [3], asks: [question] }),
  )
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
    lockers(2, { corrupt }),
  )
}

for (const question of questions) {
  check(
    `the owner dies at any step, and a policy reads its hints: ${question}`,
    dying,
    lockers(2, { dies: true, policy: [1], asks: [question] }),
  )
}

check('the owner dies at any step', dying, lockers(2, { dies: true }))
