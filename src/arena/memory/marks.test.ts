import { expect, test } from 'vitest'
import { Arena, ArenaPlan } from './arena.ts'
import { Marks, reserveMarks } from './marks.ts'

test('all that was added is taken once, at every size of the set', () => {
  for (const slots of [1, 31, 32, 33, 1024, 1025, 40_000]) {
    const plan = new ArenaPlan()
    const layout = reserveMarks(plan, 'marks', slots)
    const marks = new Marks(Arena.create(plan).i32, layout)
    const added = [...new Set([0, slots - 1, slots >> 1, slots >> 2])].sort((a, b) => a - b)
    for (let round = 0; round < 2; round++) {
      for (const slot of added) marks.add(slot)
      const taken: number[] = []
      marks.take(slot => taken.push(slot))
      expect(taken.sort((a, b) => a - b)).toEqual(added)
      marks.take(slot => expect(slot).toBe('the set is empty'))
    }
  }
})
