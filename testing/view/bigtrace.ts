import {
  BLOCK,
  BLOCK_LOCK,
  IDLE,
  LOCK_ACQUIRE,
  LOCK_CONTEND,
  LOCK_RELEASE,
  NAME,
  SPAWN,
  SWITCH,
  WAKEUP,
} from '../../src/arena/rings/events.ts'
import type { RingEvent } from '../../src/arena/rings/eventring.ts'
import { PerfettoWriter } from '../../src/trace/perfetto.ts'
import { Timeline } from '../../src/trace/timeline.ts'
import type { TrackSink } from '../../src/trace/tracks.ts'

/**
 * Ring events of a made-up busy kernel: tasks run in turns, sleep, wake each other, and wait for locks. The
 * same arguments give the same events. A task is switched to every `stepMs`, on average.
 */
export function* busyEvents(cpus: number, tasks: number, stepMs = 0.027): Generator<RingEvent> {
  let seed = 7
  const random = (below: number): number => (seed = (seed * 48_271) % 0x7fff_ffff) % below
  let time = 1
  const event = (ring: number, kind: number, task: number, a = 0, b = 0, c = 0, d = 0): RingEvent => ({
    time,
    ring,
    kind,
    task,
    a,
    b,
    c,
    d,
  })
  for (let task = 0; task < tasks; task++) {
    yield event(cpus, SPAWN, task, -65, 128)
    const name = new Uint8Array(16)
    new TextEncoder().encodeInto(`worker ${task}`, name)
    const [a, b, c, d] = new Int32Array(name.buffer)
    yield event(cpus, NAME, task, a, b, c, d)
    yield event(cpus, WAKEUP, task, task % cpus, -65, 128)
  }
  const running: number[] = Array.from({ length: cpus }, () => IDLE)
  for (;;) {
    const cpu = random(cpus)
    time += stepMs * (0.1 + random(1000) / 555)
    const previous = running[cpu]
    let next = cpu + cpus * random(Math.floor(tasks / cpus))
    if (next === previous) next = (next + cpus) % (cpus * Math.floor(tasks / cpus))
    const sleeps = random(3) === 0 && previous !== IDLE
    if (sleeps && random(2) === 0) {
      yield event(
        cpu,
        LOCK_CONTEND,
        previous,
        3,
        running[(cpu + 1) % cpus] === IDLE ? 0 : running[(cpu + 1) % cpus],
      )
      yield event(cpu, BLOCK, previous, BLOCK_LOCK, 3)
    }
    yield event(cpu, SWITCH, next, previous, sleeps ? 1 : random(2) * 2, 128, 128)
    running[cpu] = next
    if (sleeps) yield event(cpu, WAKEUP, previous, cpu, next, 128)
    if (random(4) === 0) {
      yield event(cpu, LOCK_ACQUIRE, next, 3, 1)
      yield event(cpu, LOCK_RELEASE, next, 3, 1)
    }
  }
}

/** A trace file with this many events in it. */
export function bigTrace(events: number, cpus = 8, tasks = 200): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array<ArrayBuffer>[] = []
  const writer = new PerfettoWriter(bytes => pieces.push(bytes))
  let written = 0
  const counting = new Proxy(writer as TrackSink, {
    get(target, key: keyof TrackSink) {
      if (key === 'begin' || key === 'end' || key === 'instant' || key === 'counter') written++
      return target[key].bind(target)
    },
  })
  const timeline = new Timeline(counting, { cpus })
  for (const event of busyEvents(cpus, tasks)) {
    timeline.event(event)
    if (written >= events) break
  }
  timeline.close()
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}
