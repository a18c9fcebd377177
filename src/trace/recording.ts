import { checkOptions, type Kinds } from '../coroutine/core/knownoptions.ts'
import {
  isRecording,
  OVERWRITE_OLDEST,
  startRecording,
  STOP_WHEN_FULL,
  stopRecording,
} from '../arena/rings/eventring.ts'
import { taskName } from '../sched/core/fork.ts'
import type { KernelView } from '../kernel/boot/view.ts'
import { viewOf, watch } from '../kernel/boot/hooks.ts'
import type { Kernel } from '../kernel/boot/kernel.ts'
import { Collector } from './collector.ts'
import { type Metrics, readMetrics } from './metrics.ts'
import { type KernelSnapshot, takeSnapshot } from './snapshot.ts'
import { Timeline } from './timeline.ts'
import type { TrackSink } from './tracks.ts'

export interface RecordingOptions {
  /** What to do when a ring is full and nobody has read it: drop its oldest events, or take no more. */
  readonly whenFull?: 'overwrite' | 'stop'
  /** Milliseconds between two looks at the rings. 20. */
  readonly interval?: number
}

export const recordingOptions: Kinds<RecordingOptions> = { whenFull: 'checked', interval: 'checked' }

const INTERVAL_MS = 20
const DUMP_EVERY_MS = 1000

/**
 * Records a kernel's events into a sink until it is stopped. One at a time for each kernel. Reading the rings
 * is done here, on the thread that booted the kernel, now and then; the CPUs do nothing but write.
 */
export class Recording {
  private readonly view: KernelView
  private readonly timeline: Timeline
  private readonly collector: Collector
  private readonly timer: ReturnType<typeof setInterval>
  private isStopped = false

  /** @internal Use `record`. */
  constructor(view: KernelView, sink: TrackSink, options: RecordingOptions) {
    const { events } = view.plan.scheduler
    if (events === null)
      throw new Error('record(kernel): it was booted with `events: 0`, and so has no event rings')
    const { i32 } = view
    if (isRecording(i32, events))
      throw new Error('record(kernel): it is being recorded already; stop that first')
    this.view = view
    const names = taskNames(view)
    this.timeline = new Timeline(sink, { cpus: view.s.cpus, nameOf: slot => names.get(slot) })
    this.collector = new Collector(view.arena, events)
    startRecording(i32, events, options.whenFull === 'stop' ? STOP_WHEN_FULL : OVERWRITE_OLDEST)
    this.timer = setInterval(() => this.look(), options.interval ?? INTERVAL_MS)
    ;(this.timer as { unref?(): void }).unref?.()
  }

  /** Events that are missing so far: overwritten or refused before they were read. */
  get lost(): number {
    return this.collector.lost
  }

  /** Takes what the rings hold now. */
  look(): void {
    if (!this.isStopped) this.collector.drain(this.timeline, this.view.s.now())
  }

  /** Stops recording, takes the rest, and closes the sink. */
  stop(): void {
    if (this.isStopped) return
    this.isStopped = true
    clearInterval(this.timer)
    stopRecording(this.view.i32, this.view.plan.scheduler.events!)
    this.collector.drain(this.timeline)
    // What runs has run until now, though nothing has happened since it began.
    this.timeline.close(this.view.s.now())
  }
}

/** Starts to record what a kernel does. */
export function record(kernel: object, sink: TrackSink, options: RecordingOptions = {}): Recording {
  checkOptions('record(kernel, sink, options)', options, recordingOptions)
  const { whenFull, interval } = options
  if (whenFull !== undefined && whenFull !== 'overwrite' && whenFull !== 'stop')
    throw new TypeError(`whenFull: ${String(whenFull)} is not known; give 'overwrite' or 'stop'`)
  if (interval !== undefined && !(typeof interval === 'number' && interval > 0 && interval < 2 ** 31))
    throw new RangeError(`interval: ${String(interval)} is not a time; give milliseconds above 0`)
  return new Recording(viewOf(kernel), sink, options)
}

/** A kernel's counters and latencies, now. */
export function metricsOf(kernel: object): Metrics {
  return readMetrics(viewOf(kernel).s)
}

/** A kernel's CPUs and tasks, now. */
export function snapshotOf(kernel: object): KernelSnapshot {
  return takeSnapshot(viewOf(kernel))
}

const dumpReasons = ['death', 'stuck', 'deadlock', 'failure'] as const

/** What makes a guard dump. */
export type DumpReason = (typeof dumpReasons)[number]

/**
 * The flight recorder: events are always recorded, the oldest give way, and nobody reads them until something
 * has gone wrong. Then `dump` writes what led there.
 */
export class FlightRecorder {
  private readonly view: KernelView
  private readonly watches: (() => void)[] = []

  /**
   * Dumps by itself, each time to what `sinkFor` makes, when a CPU dies, a task is stuck, tasks wait for each
   * other in a circle (in debug mode: `debugLocks`), or one fails and nobody hears of it. At most once a
   * second: what comes together has one cause.
   */
  static guard(kernel: Kernel, sinkFor: (why: DumpReason) => TrackSink): FlightRecorder {
    const recorder = new FlightRecorder(kernel)
    let last = -Infinity
    for (const why of dumpReasons) {
      const unwatch = watch(kernel, why, () => {
        const now = recorder.view.s.now()
        if (now - last < DUMP_EVERY_MS) return
        last = now
        recorder.dump(sinkFor(why))
      })
      recorder.watches.push(unwatch)
    }
    return recorder
  }

  constructor(kernel: object) {
    this.view = viewOf(kernel)
    const { events } = this.view.plan.scheduler
    if (events === null) throw new Error('FlightRecorder: the kernel was booted with `events: 0`')
    if (!isRecording(this.view.i32, events)) startRecording(this.view.i32, events, OVERWRITE_OLDEST)
  }

  /** Writes what the rings remember. Recording goes on. Returns how many older events had given way. */
  dump(sink: TrackSink): number {
    const { view } = this
    const collector = new Collector(view.arena, view.plan.scheduler.events!)
    const names = taskNames(view)
    const timeline = new Timeline(sink, { cpus: view.s.cpus, nameOf: slot => names.get(slot) })
    collector.drain(timeline)
    timeline.close(view.s.now())
    return collector.lost
  }

  /** Ends the recording; a guard dumps no more. */
  stop(): void {
    for (const unwatch of this.watches.splice(0)) unwatch()
    stopRecording(this.view.i32, this.view.plan.scheduler.events!)
  }
}

/** The names of the tasks that are there now, by slot: those that come later tell theirs. */
function taskNames({ s, i32 }: KernelView): Map<number, string> {
  const names = new Map<number, string>()
  for (let slot = 0; slot < s.tasks.capacity; slot++) {
    const task = s.tasks.pointerAt(slot)
    if (s.tasks.isAllocated(i32, task)) names.set(slot, taskName(s, task))
  }
  return names
}
