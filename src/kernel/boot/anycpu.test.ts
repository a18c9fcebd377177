import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { failureOf, sharedWords, until } from '../../../testing/kernel/fixtures/ending.ts'
import { lockNames } from '../../../testing/kernel/fixtures/rescuework.ts'
import { Kernel } from './kernel.ts'
import type { ModuleView } from '../spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/rescuework.ts')

/** The longest time that this thread blocks: ends a failing test. It does not measure speed. */
const PATIENCE_MS = 30_000

/** Blocks this thread and its event loop until the word is at least `least`. */
function blockUntil(words: Int32Array, at: number, least: number): void {
  const end = performance.now() + PATIENCE_MS
  for (let seen = words[at]; seen < least; seen = Atomics.load(words, at)) {
    const left = end - performance.now()
    if (left < 0) throw new Error(`word ${at} is still ${seen}, not ${least}`)
    Atomics.wait(words, at, seen, left)
  }
}

let kernel: Kernel
let work: ModuleView<Work>

beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 2, watchdog: false })
  work = await kernel.import<Work>(new URL('../../../testing/kernel/fixtures/rescuework.ts', import.meta.url))
})

afterAll(() => kernel.close({ deadline: 1000 }))

describe('a CPU dies with the lock of', () => {
  test.each(lockNames)('%s, and another CPU goes on while the booting thread is blocked', async name => {
    const words = sharedWords()
    const working = kernel.spawn(work.works, [words], { affinity: [1] })
    await until('it works', () => words[0] > 2)
    const dying = failureOf(kernel.spawn(work.diesWith, [name, words], { affinity: [0], name: 'dying' }))
    blockUntil(words, 3, 1)
    const turns = Atomics.load(words, 0)
    blockUntil(words, 0, turns + 5)
    expect(await dying).toMatchObject({ task: 'dying', was: 'running' })
    // The next CPU of that number keeps its locks.
    const next = sharedWords()
    const again = kernel.spawn(work.works, [next], { affinity: [0] })
    await until('the new CPU works', () => next[0] > 2)
    for (const each of [words, next]) Atomics.store(each, 4, 1)
    expect(await working).toBeGreaterThan(turns)
    expect(await again).toBeGreaterThan(2)
  })
})
