import { describe, expect, test, vi } from 'vitest'
import { Arena, ArenaPlan } from '../../arena/memory/arena.ts'
import { CpuLostError } from './errors.ts'
import { Kernel } from '../boot/kernel.ts'
import { reservePublished } from '../../payload/codec.ts'
import { type ObjectMessage, PublishedObjects } from '../../payload/publishedobjects.ts'

type Work = typeof import('../../../testing/kernel/fixtures/sharedbufferwork.ts')

test('a shared buffer reaches every CPU, also one that replaced a dead CPU', async () => {
  await using kernel = await Kernel.boot({ cpus: 2 })
  const work = await kernel.import<Work>(
    new URL('../../../testing/kernel/fixtures/sharedbufferwork.ts', import.meta.url),
  )
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

describe('where messages arrive only at a turn of the event loop, as in a browser,', () => {
  function thread(): {
    published: PublishedObjects
    sent: ObjectMessage[]
    deliver: (message: ObjectMessage) => void
  } {
    const plan = new ArenaPlan()
    const region = reservePublished(plan)
    const arena = Arena.create(plan)
    PublishedObjects.initialize(arena, region)
    const sent: ObjectMessage[] = []
    const inbox: ObjectMessage[] = []
    let serve = (): void => undefined
    const published = PublishedObjects.of(
      arena,
      region,
      { id: 0, mayBlock: false },
      (_arena, _name, onMessage) => {
        serve = onMessage
        return {
          isDirect: false,
          publish: message => sent.push(message),
          receive: () => inbox.shift(),
          close: () => undefined,
        }
      },
    )
    published.open()
    return { published, sent, deliver: message => (inbox.push(message), serve()) }
  }

  test('a missing object is requested once, and can be awaited', async () => {
    const { published, sent, deliver } = thread()
    const arrivals = [published.arrival(7), published.arrival(7)]
    expect(sent).toEqual([{ id: 7, wanted: true }])
    const object = new SharedArrayBuffer(4)
    deliver({ id: 7, object })
    await Promise.all(arrivals)
    expect(published.objectOf(7)).toBe(object)
  })

  test('a task cannot wait for a missing object: the error says what to do', () => {
    expect(() => thread().published.objectOf(7)).toThrow(
      /not here yet.*pass it to a task as an argument, or return it/,
    )
  })
})

describe('a thread that joined late and requests an object that was published before', () => {
  /** `receive` is called once after each wakeup: each publication of another thread wakes this one. */
  function late(receive: (round: number, id: number) => ObjectMessage | undefined): {
    published: PublishedObjects
    id: number
  } {
    const plan = new ArenaPlan()
    const region = reservePublished(plan)
    const arena = Arena.create(plan)
    PublishedObjects.initialize(arena, region)
    const sender = Reflect.construct(PublishedObjects, [arena, region, { id: 1, mayBlock: true }, noExchange])
    const id = (sender as PublishedObjects).idOf(new SharedArrayBuffer(8))
    let round = 0
    const published = PublishedObjects.of(arena, region, { id: 2, mayBlock: true }, () => ({
      ...noExchange(),
      receive: () => {
        Atomics.add(arena.i32, region.start + 1, 1)
        return receive(round++, id)
      },
    }))
    return { published, id }
  }
  const noExchange = () => ({
    isDirect: true,
    publish: () => undefined,
    receive: (): ObjectMessage | undefined => undefined,
    close: () => undefined,
  })

  test('waits for the answer of a living sender, however often other threads publish', () => {
    const object = new SharedArrayBuffer(8)
    const { published, id } = late((round, id) => (round === 2000 ? { id, object } : undefined))
    expect(published.objectOf(id)).toBe(object)
  })

  test('gives up when the sender is gone and no thread answers in time', () => {
    const now = vi.spyOn(performance, 'now')
    let time = 0
    now.mockImplementation(() => (time += 100))
    const { published, id } = late(round => {
      if (round === 500) published.ended(1)
      return undefined
    })
    expect(() => published.objectOf(id)).toThrow('the thread that sent it ended')
    // The time while the sender lived does not count.
    expect(time).toBeGreaterThan(500 * 100 + 10_000)
    now.mockRestore()
  })
})
