import { expect, test } from 'vitest'
import { Channel, Kernel } from '../../index.ts'
import { failureOf, until } from '../../../testing/kernel/fixtures/ending.ts'
import type { Step } from '../../../testing/sync/fixtures/handovertasks.ts'

type Tasks = typeof import('../../../testing/sync/fixtures/handovertasks.ts')

const steps: readonly Step[] = ['noted', 'marked', 'moved']

test('a CPU dies at any step of a hand-over: the payload is in the ring or freed', async () => {
  const kernel = await Kernel.boot({ cpus: 1, watchdog: false })
  await using _kernel = kernel
  const tasks = await kernel.import<Tasks>(
    new URL('../../../testing/sync/fixtures/handovertasks.ts', import.meta.url),
  )
  const { view } = kernel['booted']
  const value = { large: 'y'.repeat(5000) }
  for (const step of steps) {
    for (const sends of [true, false]) {
      await until('nothing lives', () => kernel.active === 0)
      const before = view.heap.usedBytes()
      const channel = new Channel<unknown>(4)
      if (!sends) await channel.sendAsync(value)
      const back = new Promise(resolve => kernel.on('restart', resolve))
      const dying = kernel.spawn(sends ? tasks.diesSending : tasks.diesReceiving, [channel, step])
      expect(await failureOf(dying)).toMatchObject({ name: 'CpuLostError', exitCode: 4 })
      await back
      // The next user of the channel finds what was on its way.
      await channel.sendAsync('next')
      const received = [await channel.receiveAsync()]
      while (received.at(-1) !== 'next') received.push(await channel.receiveAsync())
      const isThere = sends === (step === 'moved')
      expect([step, sends, received.length]).toEqual([step, sends, isThere ? 2 : 1])
      await until('the heap is as it was', () => view.heap.usedBytes() <= before)
    }
  }
})
