import { check } from '../../checker/check.ts'
import { assert } from '../assert.ts'
import { Arena, ArenaPlan } from './arena.ts'
import { Marks, reserveMarks } from './marks.ts'

/** Enough for two words, and one above them. */
const SLOTS = 40

function marksOf(): Marks {
  const plan = new ArenaPlan()
  const layout = reserveMarks(plan, 'marks', SLOTS)
  return new Marks(Arena.create(plan).i32, layout)
}

function takeAll(marks: Marks): number[] {
  const taken: number[] = []
  marks.take(slot => taken.push(slot))
  return taken
}

check('a slot that is added while another thread takes is taken once, now or the next time', {}, () => {
  const marks = marksOf()
  return {
    threads: { taker: () => takeAll(marks), adder: () => marks.add(33), neighbour: () => marks.add(34) },
    final({ results }) {
      const taken = [...(results[0] as number[]), ...takeAll(marks)].sort((a, b) => a - b)
      assert(taken.join(' ') === '33 34', 'each slot that was added is taken once')
      assert(takeAll(marks).length === 0, 'the set is empty now')
    },
  }
})

check(
  'a slot whose adder died is taken after it was added again',
  { crashes: { max: 1, threads: [0] } },
  () => {
    const marks = marksOf()
    return {
      threads: { mortal: () => marks.add(33), taker: () => takeAll(marks) },
      recover: () => marks.add(33),
      final({ results }) {
        const taken = new Set([...(results[1] as number[]), ...takeAll(marks)])
        assert(taken.has(33) && taken.size === 1, 'the slot is taken')
      },
    }
  },
)
