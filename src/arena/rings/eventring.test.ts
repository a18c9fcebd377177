import { describe, expect, it } from 'vitest'
import { Arena, ArenaPlan } from '../memory/arena.ts'
import {
  EventReader,
  EventWriter,
  isRecording,
  OVERWRITE_OLDEST,
  reserveEventRings,
  ringOfThread,
  startRecording,
  STOP_WHEN_FULL,
  stopRecording,
} from './eventring.ts'
import { CPU_MAX } from '../sync/thread.ts'

const CAPACITY = 16

function rings(mode = OVERWRITE_OLDEST) {
  const arenaPlan = new ArenaPlan()
  const plan = reserveEventRings(arenaPlan, 2, CAPACITY)
  const arena = Arena.create(arenaPlan)
  startRecording(arena.i32, plan, mode)
  const writer = new EventWriter(arena, plan, 0)
  const reader = new EventReader(arena, plan, 0)
  const write = (n: number) => writer.write(n, n / 2, -n, 1, 2, 3, 4)
  const read = () => {
    const kinds: number[] = []
    reader.read(event => kinds.push(event.kind))
    return kinds
  }
  return { arena, plan, writer, reader, write, read }
}

describe('event rings', () => {
  it('gives back what was written, in order, once', () => {
    const { writer, reader, read } = rings()
    writer.write(7, 1.5, 42, 1, -2, 3, 0x7fff_ffff)
    writer.write(8, 2.5, 43, 0, 0, 0, 0)
    const events: unknown[] = []
    reader.read(event => events.push({ ...event }))
    expect(events).toEqual([
      { ring: 0, time: 1.5, kind: 7, task: 42, a: 1, b: -2, c: 3, d: 0x7fff_ffff },
      { ring: 0, time: 2.5, kind: 8, task: 43, a: 0, b: 0, c: 0, d: 0 },
    ])
    expect(read()).toEqual([])
    expect(reader.lost).toBe(0)
  })

  it('overwrites the oldest, and counts the events that were not read', () => {
    const { write, read, reader } = rings()
    for (let n = 0; n < 40; n++) write(n)
    // The place of the sixteenth from the end may be written to at this very moment.
    expect(read()).toEqual(Array.from({ length: CAPACITY - 1 }, (_, at) => 40 - CAPACITY + 1 + at))
    expect(reader.lost).toBe(40 - CAPACITY + 1)
    write(99)
    expect(read()).toEqual([99])
    expect(reader.lost).toBe(25)
  })

  it.each([2 ** 31 - 5, 2 ** 31 + 5, 2 ** 32 - 40])(
    'finds the last events after %d that were not read',
    n => {
      const { arena, plan, write, read, reader } = rings()
      const header = plan.region.start + 16
      expect(Atomics.load(arena.i32, header)).toBe(0)
      write(0)
      expect(Atomics.load(arena.i32, header)).toBe(1)
      Atomics.store(arena.i32, header, n | 0)
      for (let at = 0; at < 20; at++) write(at)
      expect(read()).toEqual(Array.from({ length: CAPACITY - 1 }, (_, at) => 20 - CAPACITY + 1 + at))
      expect(reader.lost).toBe(n + 20 - CAPACITY + 1)
    },
  )

  it('counts each event once that is overwritten while it reads', () => {
    const { write, read, reader } = rings()
    for (let n = 0; n < 10; n++) write(n)
    reader['copyOut'] = () => {
      delete (reader as Partial<EventReader>)['copyOut' as never]
      for (let n = 10; n < 100; n++) write(n)
    }
    expect(read()).toEqual([])
    expect(reader.lost).toBe(10)
    const kept = read()
    expect(kept).toHaveLength(CAPACITY - 1)
    expect(reader.lost + kept.length).toBe(100)
  })

  it('keeps the first events with STOP_WHEN_FULL, and counts the rest', () => {
    const { write, read, reader } = rings(STOP_WHEN_FULL)
    for (let n = 0; n < 20; n++) write(n)
    expect(read()).toEqual(Array.from({ length: CAPACITY }, (_, at) => at))
    expect(reader.lost).toBe(4)
    write(99)
    expect(read()).toEqual([])
    expect(reader.lost).toBe(5)
  })

  it('starts from nothing each time', () => {
    const { arena, plan, write, read, reader } = rings()
    for (let n = 0; n < 40; n++) write(n)
    expect(isRecording(arena.i32, plan)).toBe(true)
    stopRecording(arena.i32, plan)
    expect(isRecording(arena.i32, plan)).toBe(false)
    startRecording(arena.i32, plan, OVERWRITE_OLDEST)
    write(5)
    expect(read()).toEqual([5])
    expect(reader.lost).toBe(0)
  })

  it('goes on past two to the thirty-second event', () => {
    const { arena, plan, write, read, reader } = rings()
    write(1)
    read()
    // As if four thousand million events had passed through since, all of them read.
    const header = plan.region.start + 16
    Atomics.store(arena.i32, header, -2)
    ;(reader as unknown as { next: number }).next = -2
    for (let n = 10; n < 14; n++) write(n)
    expect(read()).toEqual([10, 11, 12, 13])
    expect(reader.lost).toBe(0)
  })

  it('gives each CPU and the first few threads a ring', () => {
    const { plan } = rings()
    expect([0, 1, 2, CPU_MAX, CPU_MAX + 7, CPU_MAX + 8].map(thread => ringOfThread(plan, thread))).toEqual([
      0, 1, -1, 2, 9, -1,
    ])
  })

  it('refuses a size that is not a power of two', () => {
    expect(() => reserveEventRings(new ArenaPlan(), 1, 100)).toThrow(
      'events: 100 is not a size for an event ring; give a power of two, 16 or more',
    )
  })
})
