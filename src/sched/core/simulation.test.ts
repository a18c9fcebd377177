import { expect, test } from 'vitest'
import { Simulation } from '../../../testing/sched/simulation.ts'
import { SWITCH_PREEMPTED, SWITCH_YIELDS } from './switch.ts'
import { makePriority } from './priority.ts'

test('tasks run to their end on every CPU', () => {
  const sim = new Simulation({ cpus: 3, seed: 1 })
  let done = 0
  for (let i = 0; i < 20; i++) {
    sim.fork(
      function* () {
        for (let k = 0; k < 10; k++) yield k % 3 === 0 ? SWITCH_YIELDS : SWITCH_PREEMPTED
        done++
      },
      { priority: i % 2 === 0 ? makePriority(5, i & 3) : undefined },
    )
  }
  expect(sim.run({ steps: 5000 })).toBe('idle')
  expect(done).toBe(20)
  expect(sim.s.tasks.count(sim.s.i32)).toBe(3)
})
