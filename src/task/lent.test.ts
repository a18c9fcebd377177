import { expect, test } from 'vitest'
import { CpuLostError } from './errors.ts'
import { Kernel } from './kernel.ts'

type Work = typeof import('./fixtures/lentwork.ts')

test('a shared buffer reaches every CPU, and one that took a dead one’s place', async () => {
  await using kernel = await Kernel.boot({ cpus: 2 })
  const work = await kernel.import<Work>(new URL('./fixtures/lentwork.ts', import.meta.url))
  const word = new Int32Array(new SharedArrayBuffer(8), 4, 1)
  const affinity = [[0], [1]]
  for (const cpus of affinity) await kernel.spawn(work.add, [word], { affinity: cpus })
  expect(word[0]).toBe(2)
  for (const cpus of affinity) {
    await expect(kernel.spawn(work.dies, [], { affinity: cpus })).rejects.toThrow(CpuLostError)
  }
  for (const cpus of affinity) await kernel.spawn(work.add, [word], { affinity: cpus })
  expect(word[0]).toBe(4)
})
