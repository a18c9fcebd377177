import { afterAll, describe, expect, test } from 'vitest'
import { ActorBench } from './actors.ts'
import { piRows, piSignalRows, robustRows } from './pi-rows.ts'
import { kinds } from './stage.ts'

for (const kind of kinds) {
  describe(`with a ${kind} as the owner`, () => {
    // Threads take long to start: one bench, and its threads, for all rows.
    let shared = kind === 'thread' ? new ActorBench(kind) : undefined
    afterAll(() => shared?.close())
    const rows = [...piRows, ...robustRows, ...(kind === 'task' ? piSignalRows : [])]
    for (const [name, run] of rows) {
      test(name, async ({ onTestFailed }) => {
        const bench = shared ?? new ActorBench(kind)
        onTestFailed(async () => {
          // Its threads may be asleep for ever: the next row gets others.
          if (shared !== undefined) shared = new ActorBench(kind)
          await bench.close()
        })
        await run(bench)
        expect(await bench.leftovers()).toEqual({ waiters: 0, queued: 0, owners: 0 })
      })
    }
  })
}

test('the tables have at least sixty rows', () => {
  expect(piRows.length + robustRows.length).toBeGreaterThanOrEqual(60)
})
