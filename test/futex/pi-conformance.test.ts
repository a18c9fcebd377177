import { afterAll, describe, expect, test } from 'vitest'
import { ActorBench } from './actors.ts'
import { piRows, piSignalRows, robustRows } from './pi-rows.ts'
import { kinds } from './stage.ts'

for (const kind of kinds) {
  describe(`with a ${kind} as the owner`, () => {
    // Threads start slowly: all rows share one bench and its threads.
    let shared = kind === 'thread' ? new ActorBench(kind) : undefined
    afterAll(() => shared?.close())
    const rows = [...piRows, ...robustRows, ...(kind === 'task' ? piSignalRows : [])]
    for (const [name, run] of rows) {
      test(name, async ({ onTestFailed }) => {
        const bench = shared ?? new ActorBench(kind)
        onTestFailed(async () => {
          // The threads of a failed row may sleep for ever: the next row gets new ones.
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
