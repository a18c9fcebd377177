import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel } from './kernel.ts'

/**
 * A task that has its CPU to itself is never switched away from: nobody may have to wait for its next switch.
 */
let kernel: Kernel

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, tasks: 512, watchdog: false })
})

afterAll(() => kernel.close({ abort: true }))

test('beside a task that is alone on its CPU, records come back: more tasks pass than there is room for', async () => {
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
