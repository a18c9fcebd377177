import { describe, expect, test } from 'vitest'
import { Bench } from './bench.ts'
import { rows, signalRows } from './rows.ts'
import { kinds } from './stage.ts'

for (const kind of kinds) {
  describe(`with a ${kind} as the waiter`, () => {
    for (const [name, run] of kind === 'task' ? [...rows, ...signalRows] : rows) {
      test(name, async () => {
        const bench = new Bench(kind)
        // A second mapping of the same buffer, for the rows about mappings.
        bench.mapped.push(bench.fx.map(bench.mapped[0].buffer))
        try {
          await run(bench)
          expect(await bench.leftovers()).toEqual({ waiters: 0, queued: 0 })
        } finally {
          await bench.close()
        }
      })
    }
  })
}

test('the table has at least eighty rows', () => {
  expect(rows.length).toBeGreaterThanOrEqual(80)
})
