import { checkOptions, type Kinds } from '../coroutine/core/knownoptions.ts'
import {
  isRecording,
  OVERWRITE_OLDEST,
  startRecording,
  STOP_WHEN_FULL,
  stopRecording,
} from '../arena/rings/eventring.ts'
import { taskName } from '../sched/core/taskname.ts'
import type { KernelView } from '../kernel/boot/view.ts'
import { viewOf, watch } from '../kernel/boot/hooks.ts'
import type { Kernel } from '../kernel/boot/kernel.ts'
import { Collector } from './collector.ts'
import { type Metrics, readMetrics } from './metrics.ts'
import { leaveToViewers, onlyViewersRecord, takeOverRecording } from './sharedrecording.ts'
import { type KernelSnapshot, takeSnapshot } from './snapshot.ts'
import { Timeline } from './timeline.ts'
import type { TrackSink } from './tracks.ts'

export interface RecordingOptions {
  /** When a ring is full: drop its oldest events, or accept no more. */
  readonly whenFull?: 'overwrite' | 'stop'
  /** Milliseconds between two polls of the rings. 20. */
  readonly interval?: number
}

export const recordingOptions: Kinds<RecordingOptions> = { whenFull: 'checked', interval: 'checked' }

const INTERVAL_MS = 20
const DUMP_EVERY_MS = 1000

/**
 * Records a kernel's events into a sink until it is stopped. One at a time for each kernel. The booting
 * thread polls the rings; the CPUs only write.
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
      throw new Error(
        'record(kernel): the kernel was booted with `events: 0` and has no event rings; boot it without that option',
      )
    const { i32 } = view
    if (isRecording(i32, events)) {
      if (!onlyViewersRecord(view))
        throw new Error('record(kernel): the kernel has a recording already; stop that one first')
      stopRecording(i32, events)
      takeOverRecording(view)
    }
    this.view = view
    const names = taskNames(view)
    this.timeline = new Timeline(sink, { cpus: view.s.cpus, nameOf: slot => names.get(slot) })
    this.collector = new Collector(view.arena, events)
    startRecording(i32, events, options.whenFull === 'stop' ? STOP_WHEN_FULL : OVERWRITE_OLDEST)
    this.timer = setInterval(() => this.look(), options.interval ?? INTERVAL_MS)
    ;(this.timer as { unref?(): void }).unref?.()
  }

  /** Missing events so far: overwritten or refused before they were read. */
  get lost(): number {
    return this.collector.lost
  }

  /** Reads the events that are in the rings now. */
  look(): void {
    if (!this.isStopped) this.collector.drain(this.timeline, this.view.s.now())
  }

  /** Stops recording, reads the remaining events, and closes the sink. */
  stop(): void {
    if (this.isStopped) return
    this.isStopped = true
    clearInterval(this.timer)
    stopRecording(this.view.i32, this.view.plan.scheduler.events!)
    this.collector.drain(this.timeline)
    // Running tasks have run until now, also without an event since they began.
    this.timeline.close(this.view.s.now())
    leaveToViewers(this.view)
  }
}

/** Starts a recording of a kernel. */
export function record(kernel: object, sink: TrackSink, options: RecordingOptions = {}): Recording {
  checkOptions('record(kernel, sink, options)', options, recordingOptions)
  const { whenFull, interval } = options
  if (whenFull !== undefined && whenFull !== 'overwrite' && whenFull !== 'stop')
    throw new TypeError(`whenFull: ${String(whenFull)} is not known; give 'overwrite' or 'stop'`)
  if (interval !== undefined && !(typeof interval === 'number' && interval > 0 && interval < 2 ** 31))
    throw new RangeError(`interval: ${String(interval)} is not a time; give milliseconds above 0`)
  return new Recording(viewOf(kernel), sink, options)
}

/** A kernel's counters and latencies at this moment. */
export function metricsOf(kernel: object): Metrics {
  return readMetrics(viewOf(kernel).s)
}

/** A kernel's CPUs and tasks at this moment. */
export function snapshotOf(kernel: object): KernelSnapshot {
  return takeSnapshot(viewOf(kernel))
}

const dumpReasons = ['death', 'stuck', 'deadlock', 'failure'] as const

/** Why a guard dumps. */
export type DumpReason = (typeof dumpReasons)[number]

/**
 * The flight recorder: always records, overwrites the oldest events, and reads nothing until `dump` writes
 * the last events before a failure.
 */
export class FlightRecorder {
  private readonly view: KernelView
  private readonly watches: (() => void)[] = []

  /**
   * Dumps automatically, each time into a sink of `sinkFor`: when a CPU dies, a task is stuck, tasks wait for
   * each other in a cycle (in debug mode: `debugLocks`), or a task fails and no code handles the failure. At
   * most once a second: failures at the same time have one cause.
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
    if (events === null)
      throw new Error('FlightRecorder: the kernel was booted with `events: 0`; boot it without that option')
    if (!isRecording(this.view.i32, events)) startRecording(this.view.i32, events, OVERWRITE_OLDEST)
    else takeOverRecording(this.view)
  }

  /** Writes the events in the rings; recording continues. Returns how many older events were overwritten. */
  dump(sink: TrackSink): number {
    const { view } = this
    const collector = new Collector(view.arena, view.plan.scheduler.events!)
    const names = taskNames(view)
    const timeline = new Timeline(sink, { cpus: view.s.cpus, nameOf: slot => names.get(slot) })
    collector.drain(timeline)
    timeline.close(view.s.now())
    return collector.lost
  }

  /** Ends the recording and the guard's dumps. */
  stop(): void {
    for (const unwatch of this.watches.splice(0)) unwatch()
    stopRecording(this.view.i32, this.view.plan.scheduler.events!)
    leaveToViewers(this.view)
  }
}

/** The names of the present tasks, by slot. Later tasks name themselves by an event. */
function taskNames({ s, i32 }: KernelView): Map<number, string> {
  const names = new Map<number, string>()
  for (let slot = 0; slot < s.tasks.capacity; slot++) {
    const task = s.tasks.pointerAt(slot)
    if (s.tasks.isAllocated(i32, task)) names.set(slot, taskName(s, task))
  }
  return names
}
