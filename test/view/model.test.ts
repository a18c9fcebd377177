import { expect, test } from 'vitest'
import { ChromeWriter } from '../../src/trace/chrome.ts'
import { PerfettoWriter, readPerfetto } from '../../src/trace/perfetto.ts'
import { Timeline } from '../../src/trace/timeline.ts'
import type { TrackSink } from '../../src/trace/tracks.ts'
import { busyEvents } from '../../testing/view/bigtrace.ts'
import { cyclesIn, chainsIn } from '../../view/locks/graph.ts'
import { readChrome } from '../../view/model/chrome.ts'
import { RUNNING } from '../../view/model/lane.ts'
import { TraceModel, WAKES } from '../../view/model/trace.ts'

const EVENTS = 5000

function fill(sink: TrackSink): void {
  const timeline = new Timeline(sink, { cpus: 4 })
  let left = EVENTS
  for (const event of busyEvents(4, 40)) {
    timeline.event(event)
    if (--left === 0) break
  }
  timeline.close()
}

function shape(model: TraceModel): unknown {
  return model.tasks.map(lane => [
    lane.track.name,
    lane.count,
    Array.from({ length: lane.count }, (_, row) => lane.slice(row)).map(({ state, start, end, other }) => [
      state,
      start,
      end,
      other,
    ]),
  ])
}

const direct = new TraceModel()
fill(direct)

test('a trace is the same whether it is live, or was read from either kind of file', () => {
  const pieces: Uint8Array[] = []
  fill(new PerfettoWriter(bytes => pieces.push(bytes)))
  const perfetto = new TraceModel()
  readPerfetto(new Uint8Array(Buffer.concat(pieces)), perfetto)
  expect(shape(perfetto)).toEqual(shape(direct))

  let json = ''
  fill(new ChromeWriter(text => (json += text)))
  const chrome = new TraceModel()
  readChrome(new TextEncoder().encode(json), chrome)
  expect(shape(chrome)).toEqual(shape(direct))
  const cut = new TraceModel()
  readChrome(new TextEncoder().encode(json.slice(0, json.length / 2)), cut)
  expect(cut.tasks.length).toBe(direct.tasks.length)
})

test('the covered time of a lane is the sum of its slices, from any time to any time', () => {
  const [lane] = direct.cpus
  const slices = Array.from({ length: lane.count }, (_, row) => lane.slice(row))
  const { first, last } = direct
  for (const [from, to] of [
    [first, last],
    [first + (last - first) / 3, first + (last - first) / 2],
    [last, last + 1e6],
  ]) {
    const sum = slices.reduce(
      (all, { start, end }) => all + Math.max(0, Math.min(end, to, last) - Math.max(start, from)),
      0,
    )
    expect(lane.covered(from, to, last)).toBeCloseTo(sum, 0)
  }
})

test('an arrow from waker to woken ends where the woken task runs, and names both', () => {
  const arrows = direct.arrowsIn(direct.first, direct.last, 1e6)!.filter(({ kind }) => kind === WAKES)
  expect(arrows.length).toBeGreaterThan(100)
  for (const { toTask, toTime, fromTime } of arrows) {
    expect(toTime).toBeGreaterThanOrEqual(fromTime)
    const slice = direct.lanes.get(toTask)!.at(toTime)
    expect(slice?.state).toBe(RUNNING)
    expect(slice?.start).toBe(toTime)
  }
})

test('what is dropped from the front leaves the rest, with the same numbers', () => {
  const model = new TraceModel()
  fill(model)
  const [lane] = model.tasks
  const kept = lane.slice(lane.count - 1)
  lane.dropBefore((model.first + model.last) / 2)
  expect(lane.firstTime).toBeGreaterThan(model.first)
  expect(lane.numbered(kept.number)).toEqual(kept)
  expect(lane.numbered(0)).toBeNull()
})

const party = (tid: number, priority = 128, basePriority = priority): never =>
  ({ tid, slot: tid, name: `task ${tid}`, priority, basePriority, stack: '' }) as never
const lock = (key: string, holders: number[], waiters: number[]): never =>
  ({
    key,
    numbers: [],
    kind: 'mutex',
    name: key,
    holders: holders.map(n => party(n)),
    waiters: waiters.map(n => party(n)),
  }) as never

test('a cycle of waits is found once, and a chain that ends is no cycle', () => {
  const cycle = cyclesIn([
    lock('a', [1], [2]),
    lock('b', [2], [3]),
    lock('c', [3], [1, 4]),
    lock('d', [5], [6]),
  ])
  expect(cycle.map(links => links.map(({ party: { tid } }) => tid).sort())).toEqual([[1, 2, 3]])
  expect(cyclesIn([lock('a', [1], [2]), lock('b', [2], [3])])).toEqual([])
})

test('a chain goes from the waiter that nobody waits for to the holder that runs', () => {
  const chains = chainsIn([lock('a', [1], [2]), lock('b', [2], [3])])
  expect(chains.map(links => links.map(({ party: { tid }, lock: on }) => [tid, on?.key ?? null]))).toEqual([
    [
      [3, 'b'],
      [2, 'a'],
      [1, null],
    ],
  ])
})
