import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isRecording } from '../arena/rings/eventring.ts'
import { EXIT, SPAWN, SWITCH } from '../arena/rings/events.ts'
import { viewOf } from '../kernel/boot/hooks.ts'
import { Kernel } from '../kernel/boot/kernel.ts'
import type { ModuleView } from '../kernel/spawn/modules.ts'
import type * as fixtures from '../../testing/kernel/fixtures/work.ts'
import { KernelFeed } from './feed.ts'
import { packEvents, unpackEvents } from './packedevents.ts'
import { FlightRecorder, record } from './recording.ts'
import { Summary } from './summary.ts'

let kernel: Kernel
let work: ModuleView<typeof fixtures>
beforeAll(async () => {
  kernel = await Kernel.boot({ cpus: 1, control: false })
  work = await kernel.import<typeof fixtures>(
    new URL('../../testing/kernel/fixtures/work.ts', import.meta.url),
  )
})
afterAll(() => kernel.close({ abort: true }))

const records = (): boolean => isRecording(viewOf(kernel).i32, viewOf(kernel).plan.scheduler.events!)
const kinds = (feed: KernelFeed): number[] => unpackEvents(feed.events().bytes).map(({ kind }) => kind)

describe('the feed of a viewer', () => {
  test('returns each event once', async () => {
    const feed = new KernelFeed(viewOf(kernel))
    await kernel.spawn(work.add, [1, 2])
    const first = kinds(feed)
    expect(first).toContain(SPAWN)
    expect(first).toContain(SWITCH)
    expect(first).toContain(EXIT)
    expect(kinds(feed)).not.toContain(SPAWN)
    feed.close()
  })

  test('returns all tasks first, then those that have changed, then the slots of those that are gone', async () => {
    const feed = new KernelFeed(viewOf(kernel))
    const controller = new AbortController()
    const task = kernel.spawn(work.naps, [60_000], { name: 'napper', signal: controller.signal })
    task.catch(() => undefined)
    await expect.poll(() => task.status.state).toBe('sleeping')
    const first = feed.tasks()
    const found = first.changed.find(({ name }) => name === 'napper')!
    expect(found.code).toBe('naps')
    expect(feed.tasks().changed.map(({ name }) => name)).not.toContain('napper')
    controller.abort()
    await expect.poll(() => feed.tasks().gone).toContain(found.slot)
    feed.close()
  })

  test('the first viewer begins the recording and the last one ends it', () => {
    const one = new KernelFeed(viewOf(kernel))
    const two = new KernelFeed(viewOf(kernel))
    one.close()
    one.close()
    expect(records()).toBe(true)
    two.close()
    expect(records()).toBe(false)
  })

  test('a recording may begin and end while a viewer is there, and the viewer goes on', async () => {
    const feed = new KernelFeed(viewOf(kernel))
    const summary = new Summary()
    const recording = record(kernel, summary, { whenFull: 'stop' })
    await kernel.spawn(work.add, [1, 2], { name: 'recorded' })
    recording.stop()
    expect(summary.tasks.map(({ name }) => name)).toContain('recorded')
    feed.events()
    await kernel.spawn(work.add, [1, 2])
    expect(kinds(feed)).toContain(SPAWN)
    feed.close()
    expect(records()).toBe(false)
  })

  test('a flight recorder that begins later goes on when the viewer leaves', () => {
    const feed = new KernelFeed(viewOf(kernel))
    const recorder = new FlightRecorder(kernel)
    feed.close()
    expect(records()).toBe(true)
    recorder.stop()
    expect(records()).toBe(false)
  })

  test('events are the same after they were packed', () => {
    const event = { time: 12.5, ring: 3, kind: 1, task: -1, a: -0x8000_0000, b: 2 ** 31 - 1, c: 0, d: 7 }
    const bytes = packEvents([event, { ...event, time: 13 }])
    // At an odd offset, as in a stream.
    const moved = new Uint8Array(bytes.length + 3)
    moved.set(bytes, 3)
    expect(unpackEvents(moved.subarray(3))).toEqual([event, { ...event, time: 13 }])
  })
})
