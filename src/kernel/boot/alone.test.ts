import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel } from './kernel.ts'

/** The only task of a CPU is never switched out: no other thread may depend on its next switch. */
let kernel: Kernel

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, tasks: 512, watchdog: false })
})

afterAll(() => kernel.close({ abort: true }))

test('beside the only task of a CPU records are freed: more tasks run than there are records', async () => {
  const work = await kernel.import<typeof import('../../../testing/kernel/fixtures/work.ts')>(
    new URL('../../../testing/kernel/fixtures/work.ts', import.meta.url),
  )
  const alone = kernel.spawn(work.hog, [], { affinity: [0] })
  alone.join().catch(() => undefined)
  for (let turn = 0; turn < 4; turn++) {
    for (let i = 0; i < 500; i++) expect(await kernel.spawn(work.add, [i, 1], { affinity: [1] })).toBe(i + 1)
  }
  for (let turn = 0; turn < 8; turn++) {
    const many = Array.from({ length: 200 }, (_, i) => kernel.spawn(work.add, [i, 1], { affinity: [1] }))
    expect((await Promise.all(many)).length).toBe(200)
  }
  expect(alone.status.state).toBe('running')
  alone.kill()
})
