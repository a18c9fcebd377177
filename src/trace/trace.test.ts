import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import { startRecording, stopRecording } from '../arena/rings/eventring.ts'
import { wakeupTask } from '../sched/core/wakeup.ts'
import { LockSim } from '../../testing/handoff/fixtures/locksim.ts'
import handoffPolicy from '../handoff/policy.ts'
import { Simulation, type TaskBody } from '../../testing/sched/simulation.ts'
import { beginSleep, endSleep } from '../sched/core/sleep.ts'
import { SWITCH_PREEMPTED, SWITCH_SLEEPS, SWITCH_YIELDS } from '../sched/core/switch.ts'
import { INTERRUPTIBLE } from '../sched/core/taskrecord.ts'
import { describeSummary } from '../cli/trace.ts'
import { ChromeWriter } from './chrome.ts'
import { Collector } from './collector.ts'
import { PerfettoWriter, readPerfetto } from './perfetto.ts'
import { Summary } from './summary.ts'
import { Timeline } from './timeline.ts'
import type { TrackSink } from './tracks.ts'

/** The published schema, as far as a track-event trace needs it. An independent library decodes with it. */
const schema = protobuf.parse(
  `
  syntax = "proto2";
  message Trace { repeated TracePacket packet = 1; }
  message TracePacket {
    optional uint64 timestamp = 8;
    optional uint32 trusted_packet_sequence_id = 10;
    optional TrackEvent track_event = 11;
    optional InternedData interned_data = 12;
    optional uint32 sequence_flags = 13;
    optional bool previous_packet_dropped = 42;
    optional TrackDescriptor track_descriptor = 60;
  }
  message TrackDescriptor {
    optional uint64 uuid = 1;
    optional string name = 2;
    optional ProcessDescriptor process = 3;
    optional uint64 parent_uuid = 5;
    optional CounterDescriptor counter = 8;
    optional int32 child_ordering = 11;
    optional int32 sibling_order_rank = 12;
  }
  message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
  message CounterDescriptor { optional int32 unit = 3; optional string unit_name = 6; }
  message TrackEvent {
    enum Type { TYPE_UNSPECIFIED = 0; TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; TYPE_COUNTER = 4; }
    repeated DebugAnnotation debug_annotations = 4;
    optional Type type = 9;
    optional uint64 name_iid = 10;
    optional uint64 track_uuid = 11;
    repeated string categories = 22;
    optional string name = 23;
    optional int64 counter_value = 30;
    optional double double_counter_value = 44;
    repeated fixed64 flow_ids = 47;
    repeated fixed64 terminating_flow_ids = 48;
  }
  message DebugAnnotation {
    optional uint64 name_iid = 1;
    optional int64 int_value = 4;
    optional double double_value = 5;
    optional string string_value = 6;
    optional string name = 10;
  }
  message InternedData { repeated EventName event_names = 2; repeated DebugAnnotationName debug_annotation_names = 3; }
  message EventName { optional uint64 iid = 1; optional string name = 2; }
  message DebugAnnotationName { optional uint64 iid = 1; optional string name = 2; }
`,
  { keepCase: true },
).root

interface DecodedEvent {
  readonly time: number
  readonly track: string
  readonly type: string
  readonly name: string
  readonly args: Record<string, unknown>
  readonly starts: string[]
  readonly ends: string[]
  readonly value: number | undefined
}

/** Resolves names as Perfetto's importer does: interned data is known from its packet on. */
function decode(bytes: Uint8Array): { events: DecodedEvent[]; tracks: Map<string, any>; dropped: number } {
  const trace = schema.lookupType('Trace')
  const { packet = [] } = trace.toObject(trace.decode(bytes), { longs: String, enums: String }) as any
  const names = new Map<string, string>()
  const argNames = new Map<string, string>()
  const tracks = new Map<string, any>()
  const events: DecodedEvent[] = []
  let dropped = 0
  expect(packet[0].sequence_flags & 1, 'the first packet clears the incremental state').toBe(1)
  for (const one of packet) {
    expect(one.trusted_packet_sequence_id).toBe(1)
    if (one.previous_packet_dropped) dropped++
    for (const { iid, name } of one.interned_data?.event_names ?? []) names.set(iid, name)
    for (const { iid, name } of one.interned_data?.debug_annotation_names ?? []) argNames.set(iid, name)
    if (one.track_descriptor) tracks.set(one.track_descriptor.uuid, one.track_descriptor)
    const event = one.track_event
    if (event === undefined) continue
    const args: Record<string, unknown> = {}
    for (const arg of event.debug_annotations ?? []) {
      args[arg.name ?? argNames.get(arg.name_iid)!] =
        arg.string_value ?? (arg.int_value === undefined ? arg.double_value : Number(arg.int_value))
    }
    expect(tracks.has(event.track_uuid), 'a track is described before it is used').toBe(true)
    events.push({
      time: Number(one.timestamp ?? 0),
      track: tracks.get(event.track_uuid).name,
      type: event.type,
      name: event.name ?? names.get(event.name_iid) ?? '',
      args,
      starts: event.flow_ids ?? [],
      ends: event.terminating_flow_ids ?? [],
      value: event.counter_value === undefined ? event.double_counter_value : Number(event.counter_value),
    })
  }
  return { events, tracks, dropped }
}

/** Two tasks of one CPU and one of another contend for a hand-off lock; the policy is loaded. */
function recordedHandOff(sinks: readonly TrackSink[]): void {
  const locked = new LockSim({ cpus: 2, seed: 5, events: 4096 })
  const { sim } = locked
  sim.load(handoffPolicy)
  sim.run()
  startRecording(sim.machine.arena.i32, sim.plan.events!)
  for (const [name, cpu] of [
    ['first', 0],
    ['second', 0],
    ['third', 1],
  ] as const) {
    locked.fork(
      function* ({ context, parking, locks: [lock] }) {
        for (let time = 0; time < 10; time++) {
          yield* lock.lockTask(parking)
          context.cpu.charge(0.02)
          yield SWITCH_YIELDS
          lock.unlock(parking.owner)
          yield SWITCH_PREEMPTED
        }
      },
      { name, affinity: [cpu] },
    )
  }
  const timeline = new Timeline(broadcast(sinks), { cpus: 2 })
  const collector = new Collector(sim.machine.arena, sim.plan.events!)
  expect(sim.run()).toBe('idle')
  stopRecording(sim.machine.arena.i32, sim.plan.events!)
  collector.drain(timeline)
  timeline.close()
}

/** Two CPUs; `pinger` wakes `ponger`, back and forth; `hog` computes. */
function recorded(sinkOf: (sink: TrackSink[]) => TrackSink[], events = 1024): Summary {
  const sim = new Simulation({ cpus: 2, seed: 7, slice: 5, events })
  const tasks: number[] = []
  const partner = (self: number): TaskBody =>
    function* (context) {
      for (let round = 0; round < 20; round++) {
        beginSleep(context.s, tasks[self], INTERRUPTIBLE, 3)
        wakeupTask(context.s, tasks[1 - self])
        yield SWITCH_SLEEPS
        endSleep(context.s, tasks[self], 3)
      }
    }
  startRecording(sim.machine.arena.i32, sim.plan.events!)
  tasks.push(sim.fork(partner(0), { name: 'pinger' }))
  tasks.push(sim.fork(partner(1), { name: 'ponger, the one with the long name' }))
  sim.fork(
    function* () {
      for (let turn = 0; turn < 400; turn++) yield turn % 50 === 0 ? SWITCH_YIELDS : SWITCH_PREEMPTED
    },
    { name: 'hog' },
  )
  const summary = new Summary()
  const sinks = sinkOf([summary])
  const timeline = new Timeline(broadcast(sinks), { cpus: 2 })
  const collector = new Collector(sim.machine.arena, sim.plan.events!)
  sim.run()
  stopRecording(sim.machine.arena.i32, sim.plan.events!)
  collector.drain(timeline)
  timeline.close()
  return summary
}

function broadcast(sinks: readonly TrackSink[]): TrackSink {
  return new Proxy({} as TrackSink, {
    get:
      (_, verb) =>
      (...args: unknown[]) => {
        for (const sink of sinks) (sink as any)[verb](...args)
      },
  })
}

function recordPerfetto(): { bytes: Uint8Array; summary: Summary } {
  const pieces: Uint8Array[] = []
  const writer = new PerfettoWriter(piece => pieces.push(piece))
  const summary = recorded(sinks => [...sinks, writer])
  return { bytes: Buffer.concat(pieces), summary }
}

describe('a trace of simulated CPUs', () => {
  it('is a Perfetto trace with a track for each CPU and each task', () => {
    const { bytes } = recordPerfetto()
    const { tracks, events, dropped } = decode(bytes)
    const names = [...tracks.values()].map(track => track.name)
    expect(names).toEqual(
      expect.arrayContaining([
        'heddle',
        'CPU 0',
        'CPU 1',
        'pinger',
        'ponger, the one with the long na',
        'hog',
      ]),
    )
    expect(names).toEqual(expect.arrayContaining(['runnable tasks', 'CPUs in use', 'CPU 0 queue']))
    for (const track of tracks.values()) {
      if (track.name !== 'heddle') expect(tracks.get(track.parent_uuid).name).toBe('heddle')
    }
    expect(dropped).toBe(0)
    expect(events.length).toBeGreaterThan(100)
  })

  it('has slices that nest, times that do not go back, and a CPU that runs one task at a time', () => {
    const { events } = decode(recordPerfetto().bytes)
    const depth = new Map<string, number>()
    let last = 0
    for (const { track, type, time } of events) {
      expect(time).toBeGreaterThanOrEqual(last)
      last = time
      if (type === 'TYPE_SLICE_BEGIN') depth.set(track, (depth.get(track) ?? 0) + 1)
      if (type === 'TYPE_SLICE_END') depth.set(track, depth.get(track)! - 1)
      expect(depth.get(track) ?? 0).toBeLessThanOrEqual(1)
      expect(depth.get(track) ?? 0).toBeGreaterThanOrEqual(0)
    }
    for (const left of depth.values()) expect(left).toBe(0)
  })

  it('draws an arrow from each wakeup to the slice of the woken task', () => {
    const { events } = decode(recordPerfetto().bytes)
    const starts = new Map(events.flatMap(event => event.starts.map(flow => [flow, event] as const)))
    const ends = events.filter(event => event.ends.length > 0)
    expect(ends.length).toBeGreaterThan(20)
    for (const end of ends) {
      for (const flow of end.ends) {
        const start = starts.get(flow)!
        expect(start.name).toBe(`wakes ${end.name}`)
        expect(start.time).toBeLessThanOrEqual(end.time)
      }
    }
  })

  it('has the priority of a running task, and the reason why a slice ended', () => {
    const { events } = decode(recordPerfetto().bytes)
    const slices = events.filter(({ track, type }) => track.startsWith('CPU') && type === 'TYPE_SLICE_BEGIN')
    for (const { args } of slices) expect(args.priority).toBe(128)
    const reasons = new Set(
      events
        .filter(({ track, type }) => track === 'CPU 0' && type === 'TYPE_SLICE_END')
        .map(({ args }) => args.why),
    )
    expect(reasons.size).toBeGreaterThan(1)
  })

  it('counts every task as runnable or not, and ends with none', () => {
    const { events } = decode(recordPerfetto().bytes)
    const runnable = events.filter(({ track }) => track === 'runnable tasks')
    expect(Math.max(...runnable.map(({ value }) => value!))).toBeGreaterThanOrEqual(1)
    expect(Math.min(...runnable.map(({ value }) => value!))).toBe(0)
    expect(runnable.at(-1)!.value).toBe(0)
  })

  it('can be read back: the summary of the file equals that of the events', () => {
    const { bytes, summary } = recordPerfetto()
    const again = new Summary()
    readPerfetto(bytes, again)
    expect(again.tasks).toEqual(summary.tasks)
    expect(again.cpus).toEqual(summary.cpus)
    expect(again.tasks.map(({ name }) => name).sort()).toEqual([
      'hog',
      'pinger',
      'ponger, the one with the long na',
    ])
    expect(again.tasks.find(({ name }) => name === 'pinger')!.blocked).toBeGreaterThan(0)
  })

  it('can be cut off anywhere and still be read', () => {
    const { bytes } = recordPerfetto()
    for (const length of [bytes.length - 1, bytes.length >> 1, 2000]) {
      const summary = new Summary()
      readPerfetto(bytes.subarray(0, length), summary)
      expect(summary.tasks.length).toBeGreaterThan(0)
    }
    expect(() => readPerfetto(new TextEncoder().encode('hello'), new Summary())).toThrow('not a trace')
  })

  it('is JSON for the DevTools, whole or cut off', () => {
    let text = ''
    const chrome = new ChromeWriter(piece => (text += piece))
    recorded(sinks => [...sinks, chrome])
    const events = JSON.parse(text)
    const begins = events.filter(({ ph }: any) => ph === 'B')
    const ends = events.filter(({ ph }: any) => ph === 'E')
    expect(begins.length).toBe(ends.length)
    expect(events.filter(({ ph }: any) => ph === 's').length).toBeGreaterThan(20)
    for (const flow of events.filter(({ ph }: any) => ph === 'f')) {
      expect(events.some(({ ph, id }: any) => ph === 's' && id === flow.id)).toBe(true)
    }
  })

  it('has the number of its missing events', () => {
    const pieces: Uint8Array[] = []
    const writer = new PerfettoWriter(piece => pieces.push(piece))
    const summary = recorded(sinks => [...sinks, writer], 16)
    expect(summary.lostEvents).toBeGreaterThan(0)
    expect(decode(Buffer.concat(pieces)).dropped).toBeGreaterThan(0)
  })
})

describe('a lock that is handed over', () => {
  it('is an instant with the lock and the receiver, and an arrow to the next owner', () => {
    const pieces: Uint8Array[] = []
    recordedHandOff([new PerfettoWriter(piece => pieces.push(piece))])
    const { events } = decode(Buffer.concat(pieces))
    const handed = events.filter(({ name }) => name.startsWith('hands over'))
    expect(handed.length).toBeGreaterThan(3)
    const names = new Set(handed.map(({ name }) => name))
    expect([...names].every(name => /^hands over( to (first|second|third))?$/.test(name))).toBe(true)
    expect(names.size).toBeGreaterThan(1)
    const acquired = new Map(
      events
        .flatMap(event => event.ends.map(flow => [flow, event] as const))
        .filter(([, { name }]) => name === 'lock'),
    )
    const followed = handed.filter(({ starts }) => acquired.has(starts[0]))
    expect(followed.length).toBeGreaterThan(0)
    for (const { starts, time, args } of followed) {
      const next = acquired.get(starts[0])!
      expect(next.args.lock).toBe(args.lock)
      expect(next.time).toBeGreaterThanOrEqual(time)
    }
    const waits = events.filter(({ name }) => name === 'runnable (yields for a lock)')
    expect(waits.length).toBeGreaterThan(0)
    for (const { track, args } of waits) {
      expect(['first', 'second', 'third']).toContain(args['waits for'])
      expect(args['waits for']).not.toBe(track)
    }
  })

  it('is in the JSON for the DevTools, and counted in the summary', () => {
    let text = ''
    const summary = new Summary()
    recordedHandOff([new ChromeWriter(piece => (text += piece)), summary])
    const instants = JSON.parse(text).filter(
      ({ ph, name }: any) => ph === 'i' && name.startsWith('hands over'),
    )
    expect(instants.length).toBeGreaterThan(3)
    expect(summary.locks).toHaveLength(1)
    const [{ lock, contended, acquired, handedOver }] = summary.locks
    expect(instants.every(({ args }: any) => args.lock === lock)).toBe(true)
    expect(handedOver).toBe(instants.length)
    expect(acquired).toBe(contended)
    expect(summary.waits.length).toBeGreaterThan(0)
    const lines = describeSummary(summary, 5, { columns: 80, rows: 24, colour: false, unicode: true })
    expect(lines.join('\n')).toMatch(/Contended locks\n *lock +contended +acquired after a wait +handed over/)
  })
})
