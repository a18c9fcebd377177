import type { Arena, ArenaPlan, Region } from '../memory/arena.ts'
import { assert } from '../assert.ts'
import { type Layout, LINE_WORDS, ownLine, record, roundUp, word } from '../memory/record.ts'
import { CPU_MAX } from '../sync/thread.ts'

/**
 * Event rings: one for each thread that enters the kernel, written by that thread alone, read by any thread.
 * An event is eight words: time, kind, actor, and four arguments. A write is seven plain stores and an atomic
 * one; while recording is off a hook costs a plain load and a branch that is always predicted.
 *
 *   writer                                     reader
 *   ------                                     ------
 *   (A) stores the event, at n % capacity      (C) loads written: n
 *   (B) written = n + 1, atomically            (D) copies the events up to n
 *                                              (E) loads written again: m; events up to m - capacity may
 *                                                  have been overwritten during (D), and count as lost
 *
 * (B) after (A): an event that (C) covers is whole. The event that is being written while `written` is m lies
 * in the place of number m - capacity, so that one is dropped too. Events that the reader misses are
 * counted, never hidden.
 */

/** What a ring does when it is full. */
export const OVERWRITE_OLDEST = 0
export const STOP_WHEN_FULL = 1

/** Words that belong to no ring. */
const Control: Layout<'recording' | 'mode' | 'epoch'> = record('event control', {
  /** 1 while events are recorded. Hooks read it plainly: a thread that sees it late records late. */
  recording: word,
  mode: word,
  /** Counts the starts, so that a reader knows when the rings were emptied. */
  epoch: word,
})

const RingHeader: Layout<'written' | 'refused'> = record('event ring', {
  /** Events written since the start; wraps at 2^32. */
  written: ownLine(word),
  /** STOP_WHEN_FULL: events that found the ring full. */
  refused: word,
})

const CONTROL_WORDS = roundUp(Control.words, LINE_WORDS)

const EVENT_WORDS = 8
const TIME = 0
const KIND = 2
const TASK = 3
const FIRST = 4

/** Rings for plain threads, beside those of the CPUs: later threads are not recorded. */
const THREAD_RINGS = 8

/** Where the rings are. The same on every thread that plans with the same sizes. */
export interface EventRingsPlan {
  readonly region: Region
  readonly cpus: number
  /** Events in each ring; a power of two. */
  readonly capacity: number
}

/** Reserves the rings. Every thread calls it at the same point of its own plan. */
export function reserveEventRings(plan: ArenaPlan, cpus: number, capacity: number): EventRingsPlan {
  if (!Number.isInteger(capacity) || capacity < 16 || (capacity & (capacity - 1)) !== 0) {
    throw new RangeError(
      `events: ${capacity} is not a size for an event ring; give a power of two, 16 or more`,
    )
  }
  const rings = cpus + THREAD_RINGS
  const words = CONTROL_WORDS + rings * (RingHeader.words + capacity * EVENT_WORDS)
  return { region: plan.reserve('event rings', words), cpus, capacity }
}

/** How many rings there are. */
export function ringCount(plan: EventRingsPlan): number {
  return plan.cpus + THREAD_RINGS
}

/** The number of a thread's ring, or -1: it has none. */
export function ringOfThread(plan: EventRingsPlan, thread: number): number {
  if (thread < CPU_MAX) return thread < plan.cpus ? thread : -1
  const ring = thread - CPU_MAX
  return ring < THREAD_RINGS ? plan.cpus + ring : -1
}

function headerOf(plan: EventRingsPlan, ring: number): number {
  return plan.region.start + CONTROL_WORDS + ring * RingHeader.words
}

function eventsOf(plan: EventRingsPlan, ring: number): number {
  return headerOf(plan, ringCount(plan)) + ring * plan.capacity * EVENT_WORDS
}

/** The pointer of the word that is 1 while events are recorded. */
export function recordingWord(plan: EventRingsPlan): number {
  return plan.region.start + Control.recording
}

/** Empties all rings and starts to record. By one thread, and only while nothing is recorded. */
export function startRecording(i32: Int32Array, plan: EventRingsPlan, mode: number = OVERWRITE_OLDEST): void {
  assert(Atomics.load(i32, recordingWord(plan)) === 0, 'recording is started once')
  for (let ring = 0; ring < ringCount(plan); ring++) {
    Atomics.store(i32, headerOf(plan, ring) + RingHeader.written, 0)
    Atomics.store(i32, headerOf(plan, ring) + RingHeader.refused, 0)
  }
  Atomics.store(i32, plan.region.start + Control.mode, mode)
  Atomics.add(i32, plan.region.start + Control.epoch, 1)
  Atomics.store(i32, recordingWord(plan), 1)
}

/** What was recorded stays in the rings until the next start. */
export function stopRecording(i32: Int32Array, plan: EventRingsPlan): void {
  Atomics.store(i32, recordingWord(plan), 0)
}

export function isRecording(i32: Int32Array, plan: EventRingsPlan): boolean {
  return Atomics.load(i32, recordingWord(plan)) !== 0
}

/** One thread's end of its ring. */
export class EventWriter {
  private readonly i32: Int32Array<SharedArrayBuffer>
  private readonly f64: Float64Array<SharedArrayBuffer>
  private readonly written: number
  private readonly mode: number
  private readonly events: number
  private readonly mask: number

  constructor(arena: Arena, plan: EventRingsPlan, ring: number) {
    assert(ring >= 0 && ring < ringCount(plan), 'there is no such event ring')
    this.i32 = arena.i32
    this.f64 = arena.f64
    this.written = headerOf(plan, ring) + RingHeader.written
    this.mode = plan.region.start + Control.mode
    this.events = eventsOf(plan, ring)
    this.mask = plan.capacity - 1
  }

  /** Records one event. The caller has seen that recording is on. */
  write(kind: number, time: number, task: number, a: number, b: number, c: number, d: number): void {
    const { i32, written } = this
    const n = i32[written]
    if (i32[this.mode] === STOP_WHEN_FULL && n > this.mask) {
      Atomics.add(i32, written + (RingHeader.refused - RingHeader.written), 1)
      return
    }
    const at = this.events + (n & this.mask) * EVENT_WORDS
    this.f64[(at + TIME) >> 1] = time // (A)
    i32[at + KIND] = kind
    i32[at + TASK] = task
    i32[at + FIRST] = a
    i32[at + FIRST + 1] = b
    i32[at + FIRST + 2] = c
    i32[at + FIRST + 3] = d
    Atomics.store(i32, written, (n + 1) | 0) // (B)
  }
}

/** An event as it is read. One object is reused for all: copy what is kept. */
export interface RingEvent {
  ring: number
  time: number
  kind: number
  task: number
  a: number
  b: number
  c: number
  d: number
}

/** Reads one ring from where it stopped last. */
export class EventReader {
  private readonly i32: Int32Array<SharedArrayBuffer>
  private readonly f64: Float64Array<SharedArrayBuffer>
  private readonly header: number
  private readonly events: number
  private readonly capacity: number
  private readonly epochWord: number
  private readonly modeWord: number
  private readonly copy: Int32Array<ArrayBuffer>
  private readonly copyTimes: Float64Array<ArrayBuffer>
  private readonly event: RingEvent
  private next = 0
  private epoch = 0
  private refusedSeen = 0
  /** Events that were overwritten before they were read, or found the ring full; since the last start. */
  lost = 0

  constructor(arena: Arena, plan: EventRingsPlan, ring: number) {
    this.i32 = arena.i32
    this.f64 = arena.f64
    this.header = headerOf(plan, ring)
    this.events = eventsOf(plan, ring)
    this.capacity = plan.capacity
    this.epochWord = plan.region.start + Control.epoch
    this.modeWord = plan.region.start + Control.mode
    this.copy = new Int32Array(plan.capacity * EVENT_WORDS)
    this.copyTimes = new Float64Array(this.copy.buffer)
    this.event = { ring, time: 0, kind: 0, task: 0, a: 0, b: 0, c: 0, d: 0 }
  }

  /** Passes every new event to `visit`, oldest first. Returns how many. */
  read(visit: (event: RingEvent) => void): number {
    const { i32, capacity, event } = this
    const epoch = Atomics.load(i32, this.epochWord)
    if (epoch !== this.epoch) {
      this.epoch = epoch
      this.next = 0
      this.refusedSeen = 0
      this.lost = 0
    }
    const written = Atomics.load(i32, this.header + RingHeader.written) // (C)
    let first = this.next
    // Unsigned: a reader may come after billions of events.
    if ((written - first) >>> 0 > capacity) first = (written - capacity) | 0
    const count = (written - first) | 0
    this.copyOut(first, count) // (D)
    const later = Atomics.load(i32, this.header + RingHeader.written) // (E)
    const oldest = (later - capacity + 1) | 0
    const whole = Atomics.load(i32, this.modeWord) === STOP_WHEN_FULL || ((oldest - first) | 0) <= 0
    // Events after `written` are for the next call, even if they are lost by now.
    const from = whole ? first : ((oldest - written) | 0) > 0 ? written : oldest
    this.lost += (from - this.next) >>> 0
    this.next = written
    const refused = Atomics.load(i32, this.header + RingHeader.refused)
    this.lost += refused - this.refusedSeen
    this.refusedSeen = refused
    let visited = 0
    for (let n = (from - first) | 0; n < count; n++, visited++) {
      const at = n * EVENT_WORDS
      event.time = this.copyTimes[(at + TIME) >> 1]
      event.kind = this.copy[at + KIND]
      event.task = this.copy[at + TASK]
      event.a = this.copy[at + FIRST]
      event.b = this.copy[at + FIRST + 1]
      event.c = this.copy[at + FIRST + 2]
      event.d = this.copy[at + FIRST + 3]
      visit(event)
    }
    return visited
  }

  private copyOut(first: number, count: number): void {
    const { i32, f64, copy, copyTimes, events, capacity } = this
    for (let n = 0; n < count; n++) {
      const from = events + ((first + n) & (capacity - 1)) * EVENT_WORDS
      const to = n * EVENT_WORDS
      copyTimes[(to + TIME) >> 1] = f64[(from + TIME) >> 1]
      for (let at = KIND; at < EVENT_WORDS; at++) copy[to + at] = i32[from + at]
    }
  }
}
