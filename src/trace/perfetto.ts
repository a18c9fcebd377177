import { checkWriter } from './checkwriter.ts'
import { ProtoReader, ProtoWriter } from './protobuf.ts'
import type { Arrows, Track, TrackArgs, TrackKind, TrackSink } from './tracks.ts'

/**
 * Perfetto's native format: a stream of TracePackets with track descriptors and track events. Repeated names
 * are interned: sent once with a number, referred to by that number afterwards. Each packet stands alone in
 * the file, so a file that is cut off after a packet is still a trace.
 *
 * Field numbers are those of perfetto/protos/perfetto/trace: trace_packet.proto, track_event/*.proto.
 */
const PACKET = 1
const Packet = {
  timestamp: 8,
  sequence: 10,
  trackEvent: 11,
  internedData: 12,
  sequenceFlags: 13,
  previousDropped: 42,
  descriptor: 60,
} as const
const Descriptor = { uuid: 1, name: 2, process: 3, parent: 5, counter: 8, ordering: 11, rank: 12 } as const
const Process = { pid: 1, name: 6 } as const
const Counter = { unit: 3, unitName: 6 } as const
const Event = {
  annotations: 4,
  type: 9,
  nameIid: 10,
  track: 11,
  categories: 22,
  name: 23,
  counterValue: 30,
  doubleValue: 44,
  flows: 47,
  endingFlows: 48,
} as const
const Annotation = { nameIid: 1, int: 4, double: 5, string: 6, name: 10 } as const
const Interned = { names: 2, annotationNames: 3 } as const

const BEGIN = 1
const END = 2
const INSTANT = 3
const COUNTER = 4

const SEQUENCE = 1
const STATE_CLEARED = 1
const NEEDS_STATE = 2
const ORDER_EXPLICIT = 3
const UNIT_COUNT = 2

/** Perfetto's ids are 64-bit, and other producers of the trace share them: ours start here. */
const UUID_BASE = 0x6865_6464_0000

const RANKS: Readonly<Record<TrackKind, number>> = { process: 0, cpu: 1, counter: 2, thread: 3, task: 4 }

/** Names that differ from event to event would fill the table. After this many, names are written out. */
const INTERNED_MAX = 4096

export interface PerfettoOptions {
  readonly pid?: number
}

/** Writes tracks and their events as Perfetto packets to `write`, in pieces of about 64 KiB. */
export class PerfettoWriter implements TrackSink {
  private readonly proto = new ProtoWriter()
  private readonly write: (bytes: Uint8Array<ArrayBuffer>) => void
  private readonly pid: number
  private readonly names = new Map<string, number>()
  private readonly argNames = new Map<string, number>()
  private fresh: { field: number; iid: number; name: string }[] = []
  private first = true
  private lostSeen = 0

  constructor(write: (bytes: Uint8Array<ArrayBuffer>) => void, options: PerfettoOptions = {}) {
    checkWriter('new PerfettoWriter', write, options)
    this.write = write
    this.pid = options.pid ?? 1
  }

  track(track: Track): void {
    const { proto } = this
    const packet = this.beginPacket(0)
    const descriptor = proto.begin(Packet.descriptor)
    proto.uint(Descriptor.uuid, UUID_BASE + track.id)
    proto.string(Descriptor.name, track.name)
    if (track.parent !== 0) proto.uint(Descriptor.parent, UUID_BASE + track.parent)
    proto.uint(Descriptor.rank, RANKS[track.kind])
    if (track.kind === 'process') {
      const process = proto.begin(Descriptor.process)
      proto.uint(Process.pid, this.pid)
      proto.string(Process.name, track.name)
      proto.end(process)
      proto.uint(Descriptor.ordering, ORDER_EXPLICIT)
    }
    if (track.kind === 'counter') {
      const counter = proto.begin(Descriptor.counter)
      proto.uint(Counter.unit, UNIT_COUNT)
      if (track.unit !== undefined) proto.string(Counter.unitName, track.unit)
      proto.end(counter)
    }
    proto.end(descriptor)
    this.endPacket(packet)
  }

  begin(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void {
    this.event(track, time, BEGIN, name, args, arrows)
  }

  end(track: number, time: number, args?: TrackArgs): void {
    this.event(track, time, END, undefined, args, undefined)
  }

  instant(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void {
    this.event(track, time, INSTANT, name, args, arrows)
  }

  counter(track: number, time: number, value: number): void {
    const { proto } = this
    const packet = this.beginPacket(time)
    const event = proto.begin(Packet.trackEvent)
    proto.uint(Event.type, COUNTER)
    proto.uint(Event.track, UUID_BASE + track)
    if (Number.isSafeInteger(value)) proto.int(Event.counterValue, value)
    else proto.double(Event.doubleValue, value)
    proto.end(event)
    this.endPacket(packet)
  }

  /** Lost events, as Perfetto marks them: on the packet after the gap. */
  lost(time: number, count: number): void {
    if (count === this.lostSeen) return
    this.lostSeen = count
    const packet = this.beginPacket(time)
    this.proto.uint(Packet.previousDropped, 1)
    this.endPacket(packet)
  }

  close(): void {
    this.flush()
  }

  private event(
    track: number,
    time: number,
    type: number,
    name: string | undefined,
    args: TrackArgs | undefined,
    arrows: Arrows | undefined,
  ): void {
    const { proto } = this
    const packet = this.beginPacket(time)
    const event = proto.begin(Packet.trackEvent)
    proto.uint(Event.type, type)
    proto.uint(Event.track, UUID_BASE + track)
    if (name !== undefined) {
      this.named(this.names, Interned.names, Event.nameIid, Event.name, name)
      proto.string(Event.categories, 'heddle')
    }
    if (args !== undefined) this.annotate(args)
    for (const arrow of arrows?.starts ?? []) proto.fixed64(Event.flows, arrow)
    for (const arrow of arrows?.ends ?? []) proto.fixed64(Event.endingFlows, arrow)
    proto.end(event)
    this.endPacket(packet)
  }

  private annotate(args: TrackArgs): void {
    const { proto } = this
    for (const key in args) {
      const value = args[key]
      const annotation = proto.begin(Event.annotations)
      this.named(this.argNames, Interned.annotationNames, Annotation.nameIid, Annotation.name, key)
      if (typeof value === 'string') proto.string(Annotation.string, value)
      else if (Number.isSafeInteger(value)) proto.int(Annotation.int, value)
      else proto.double(Annotation.double, value)
      proto.end(annotation)
    }
  }

  private named(
    table: Map<string, number>,
    data: number,
    iidField: number,
    field: number,
    name: string,
  ): void {
    let iid = table.get(name)
    if (iid === undefined) {
      if (table.size >= INTERNED_MAX) return this.proto.string(field, name)
      iid = table.size + 1
      table.set(name, iid)
      this.fresh.push({ field: data, iid, name })
    }
    this.proto.uint(iidField, iid)
  }

  private beginPacket(time: number): number {
    const { proto } = this
    const packet = proto.begin(PACKET)
    if (time > 0) proto.uint(Packet.timestamp, time)
    proto.uint(Packet.sequence, SEQUENCE)
    proto.uint(Packet.sequenceFlags, this.first ? STATE_CLEARED | NEEDS_STATE : NEEDS_STATE)
    this.first = false
    return packet
  }

  private endPacket(packet: number): void {
    const { proto } = this
    if (this.fresh.length > 0) {
      const interned = proto.begin(Packet.internedData)
      for (const { field, iid, name } of this.fresh) {
        const entry = proto.begin(field)
        proto.uint(1, iid)
        proto.string(2, name)
        proto.end(entry)
      }
      proto.end(interned)
      this.fresh = []
    }
    proto.end(packet)
    if (proto.length >= 1 << 16) this.flush()
  }

  private flush(): void {
    if (this.proto.length > 0) this.write(this.proto.take())
  }
}

/** Reads a file of PerfettoWriter into another sink. A file that was cut off is read up to the cut. */
export function readPerfetto(bytes: Uint8Array, sink: TrackSink): void {
  const names = new Map<number, string>()
  const argNames = new Map<number, string>()
  const reader = new ProtoReader(bytes)
  let last = 0
  let lost = 0
  let packets = 0
  try {
    while (reader.next()) {
      if (reader.field !== PACKET) {
        reader.skip()
        continue
      }
      const packet = readPacket(reader.message(), names, argNames)
      packets++
      last = Math.max(last, packet.time)
      if (packet.track !== undefined) sink.track(packet.track)
      if (packet.dropped) sink.lost(packet.time, ++lost)
      if (packet.event !== undefined) replay(sink, packet.time, packet.event)
    }
  } catch (error) {
    if (!(error instanceof SyntaxError) || packets === 0) throw error
  }
  if (packets === 0) throw new SyntaxError('not a trace: there is no packet in it')
  sink.close(last)
}

interface ReadEvent {
  type: number
  track: number
  name: string
  value: number
  args: Record<string, string | number> | undefined
  arrows: { starts?: number[]; ends?: number[] } | undefined
}

interface ReadPacket {
  time: number
  track: Track | undefined
  event: ReadEvent | undefined
  dropped: boolean
}

function replay(sink: TrackSink, time: number, event: ReadEvent): void {
  const { type, track, name, args, arrows } = event
  if (type === BEGIN) sink.begin(track, time, name, args, arrows)
  else if (type === END) sink.end(track, time, args)
  else if (type === INSTANT) sink.instant(track, time, name, args, arrows)
  else if (type === COUNTER) sink.counter(track, time, event.value)
}

function readPacket(
  reader: ProtoReader,
  names: Map<number, string>,
  argNames: Map<number, string>,
): ReadPacket {
  const packet: ReadPacket = { time: 0, track: undefined, event: undefined, dropped: false }
  let eventReader: ProtoReader | undefined
  while (reader.next()) {
    if (reader.field === Packet.timestamp) packet.time = reader.number()
    else if (reader.field === Packet.previousDropped) packet.dropped = reader.number() !== 0
    else if (reader.field === Packet.descriptor) packet.track = readTrack(reader.message())
    // Names may follow the event that uses them, in the same packet.
    else if (reader.field === Packet.trackEvent) eventReader = reader.message()
    else if (reader.field === Packet.internedData) readInterned(reader.message(), names, argNames)
    else reader.skip()
  }
  if (eventReader !== undefined) packet.event = readEvent(eventReader, names, argNames)
  return packet
}

function readInterned(reader: ProtoReader, names: Map<number, string>, argNames: Map<number, string>): void {
  while (reader.next()) {
    const table =
      reader.field === Interned.names
        ? names
        : reader.field === Interned.annotationNames
          ? argNames
          : undefined
    if (table === undefined) {
      reader.skip()
      continue
    }
    const entry = reader.message()
    let iid = 0
    while (entry.next()) {
      if (entry.field === 1) iid = entry.number()
      else if (entry.field === 2) table.set(iid, entry.string())
      else entry.skip()
    }
  }
}

function readTrack(reader: ProtoReader): Track {
  let id = 0
  let parent = 0
  let name = ''
  let kind: TrackKind = 'task'
  let unit: string | undefined
  while (reader.next()) {
    if (reader.field === Descriptor.uuid) id = reader.number() - UUID_BASE
    else if (reader.field === Descriptor.parent) parent = reader.number() - UUID_BASE
    else if (reader.field === Descriptor.name) name = reader.string()
    else if (reader.field === Descriptor.rank) kind = kindOf(reader.number())
    else if (reader.field === Descriptor.counter) unit = readUnit(reader.message())
    else reader.skip()
  }
  return { id, kind, name, parent, ...(unit !== undefined && { unit }) }
}

function kindOf(rank: number): TrackKind {
  for (const kind of Object.keys(RANKS) as TrackKind[]) if (RANKS[kind] === rank) return kind
  return 'task'
}

function readUnit(reader: ProtoReader): string | undefined {
  let unit: string | undefined
  while (reader.next()) {
    if (reader.field === Counter.unitName) unit = reader.string()
    else reader.skip()
  }
  return unit
}

function readEvent(
  reader: ProtoReader,
  names: Map<number, string>,
  argNames: Map<number, string>,
): ReadEvent {
  const event: ReadEvent = { type: 0, track: 0, name: '', value: 0, args: undefined, arrows: undefined }
  while (reader.next()) {
    if (reader.field === Event.type) event.type = reader.number()
    else if (reader.field === Event.track) event.track = reader.number() - UUID_BASE
    else if (reader.field === Event.nameIid) event.name = names.get(reader.number()) ?? ''
    else if (reader.field === Event.name) event.name = reader.string()
    else if (reader.field === Event.counterValue) event.value = reader.int()
    else if (reader.field === Event.doubleValue) event.value = reader.double()
    else if (reader.field === Event.flows) ((event.arrows ??= {}).starts ??= []).push(reader.number())
    else if (reader.field === Event.endingFlows) ((event.arrows ??= {}).ends ??= []).push(reader.number())
    else if (reader.field === Event.annotations)
      readAnnotation(reader.message(), argNames, (event.args ??= {}))
    else reader.skip()
  }
  return event
}

function readAnnotation(
  reader: ProtoReader,
  argNames: Map<number, string>,
  args: Record<string, string | number>,
): void {
  let key = ''
  let value: string | number = 0
  while (reader.next()) {
    if (reader.field === Annotation.nameIid) key = argNames.get(reader.number()) ?? ''
    else if (reader.field === Annotation.name) key = reader.string()
    else if (reader.field === Annotation.string) value = reader.string()
    else if (reader.field === Annotation.int) value = reader.int()
    else if (reader.field === Annotation.double) value = reader.double()
    else reader.skip()
  }
  args[key] = value
}
