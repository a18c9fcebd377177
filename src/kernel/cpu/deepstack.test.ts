import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  Channel,
  Condition,
  Event,
  Kernel,
  KernelFaultError,
  Mutex,
  RwLock,
  Semaphore,
  SeqLock,
} from '../../index.ts'
import { callNames, type DeepObjects } from '../../../testing/kernel/fixtures/deepwork.ts'
import { sharedWords } from '../../../testing/kernel/fixtures/ending.ts'
import type { ModuleView } from '../spawn/modules.ts'

type Work = typeof import('../../../testing/kernel/fixtures/deepwork.ts')

const url = new URL('../../../testing/kernel/fixtures/deepwork.ts', import.meta.url)
const long = process.env.HEDDLE_LONG === '1'
/** So many dives for each call, each a small frame deeper. */
const DIVES = long ? 16 : 1
/** A CPU that dies of it costs half a second: all calls when there is time. */
const tried = long
  ? callNames
  : ['a robust mutex', 'condition.wait', 'channel.send', 'a record', 'spawn', 'sleep']

const makeObjects = (): DeepObjects => ({
  mutex: new Mutex(),
  robust: new Mutex({ robust: true }),
  inherit: new Mutex({ protocol: 'inherit', robust: true }),
  handoff: new Mutex({ protocol: 'handoff', robust: true }),
  rwlock: new RwLock(),
  semaphore: new Semaphore(2),
  condition: new Condition(),
  channel: new Channel(2),
  rendezvous: new Channel(0),
  event: new Event({ auto: true }),
  record: new SeqLock({ fields: 2 }),
  words: sharedWords(),
})

/**
 * The stack ends in the middle of a call of the kernel, at one step after the other. The call throws, or
 * costs its CPU; the kernel serves on.
 */
describe('the stack is full', () => {
  let kernel: Kernel
  let work: ModuleView<Work>
  const unexpected: unknown[] = []

  beforeAll(async () => {
    kernel = await Kernel.boot({ cpus: 2, watchdog: false })
    work = await kernel.import<Work>(url)
    kernel.on('death', ({ error }) => {
      const { message } = error as Error
      if (!/left a call of the kernel|that it holds already/.test(message)) unexpected.push(error)
    })
    kernel.on('error', error => unexpected.push(error))
    // Children of a task that was lost.
    kernel.on('failure', () => undefined)
  })
  afterAll(() => kernel.close({ deadline: 1000 }))

  test.each(tried)('in %s', async name => {
    const objects = makeObjects()
    const user = kernel.spawn(work.uses, [objects], { affinity: [1] })
    const dived = await kernel
      .spawn(work.dives, [name, objects, DIVES], { affinity: [0] })
      .catch((error: Error) => error)
    if (dived instanceof Error) expect(dived.name).toBe('CpuLostError')
    else expect(dived).toMatchObject({ passed: expect.any(Number), overflowed: expect.any(Number) })
    const served = [0, 1].map(cpu => kernel.spawn(work.serves, [makeObjects()], { affinity: [cpu] }))
    expect(await Promise.all(served)).toEqual([callNames.length, callNames.length])
    Atomics.store(objects.words, 7, 1)
    expect(await user).toBeGreaterThan(0)
    expect(unexpected).toEqual([])
  })
})

test('the stack of the thread that booted the kernel is full: the kernel serves on, or ends and says why', async () => {
  const kernel = await Kernel.boot({ cpus: 1, watchdog: false })
  const work = await kernel.import<Work>(url)
  const { mutex, channel } = makeObjects()
  const calls = [
    (): unknown => kernel.spawn(work.nothing, [1]).catch(() => undefined),
    (): unknown => mutex.lockSync({ timeout: 1 }).unlock(),
    (): unknown => channel.trySend({ some: 'text' }),
    (): unknown => channel.tryReceive(),
  ]
  let left = 400
  const dive = (): void => {
    try {
      dive()
    } catch {
      // At the very end there is room for nothing.
    }
    if (left-- <= 0) return
    try {
      calls[left % calls.length]()
    } catch {
      // Too deep, or broken by the last.
    }
  }
  dive()
  const after = await new Promise(resolve => {
    try {
      kernel.spawn(work.nothing, [7]).then(resolve, resolve)
    } catch (error) {
      resolve(error)
    }
  })
  if (after instanceof KernelFaultError) expect(after.message).toContain('left a call of the kernel')
  else expect(after).toBe(7)
  await kernel.close({ deadline: 1000 })
})
