import { checkOptions, type Kinds } from '../coroutine/core/knownoptions.ts'
import { viewOf } from '../kernel/boot/hooks.ts'
import { OUTCOME_RETURNED } from '../kernel/spawn/job.ts'
import { outcomeName } from '../kernel/join/taskhandle.ts'
import { type Metrics, readMetrics } from './metrics.ts'
import { record, type Recording, type RecordingOptions, recordingOptions } from './recording.ts'
import type { MeterProvider, Span, SpanContext, SpanLink, Tracer, TracerProvider } from './telemetryapi.ts'
import type { Arrows, Track, TrackArgs, TrackSink } from './tracks.ts'

/**
 * OpenTelemetry, through the API package of the program: a span for each task, linked to its spawner's span,
 * with its running time, its waiting time for a CPU and its blocked time; and metrics under the names below.
 * Spans are made from the kernel's trace, so they add no cost to a running task.
 *
 *     const tracerProvider = trace.getTracerProvider()
 *     const meterProvider = metrics.getMeterProvider()
 *     const telemetry = openTelemetry(kernel, { tracerProvider, meterProvider })
 */
export interface TelemetryOptions extends RecordingOptions {
  /** `trace.getTracerProvider()`; without it there are no spans. */
  readonly tracerProvider?: TracerProvider
  /** `metrics.getMeterProvider()`; without it there are no metrics. */
  readonly meterProvider?: MeterProvider
}

const telemetryOptions: Kinds<TelemetryOptions> = {
  ...recordingOptions,
  tracerProvider: 'checked',
  meterProvider: 'checked',
}

export interface Telemetry {
  /** Ends the open spans, and records no more. */
  stop(): void
}

/** SpanStatusCode.ERROR. The API package is not imported: the program brings it. */
const STATUS_ERROR = 2

/** The offset of the spans' clock: OpenTelemetry needs times since 1970. */
function originOf(now: () => number): number {
  return Date.now() - now()
}

export function openTelemetry(kernel: object, options: TelemetryOptions): Telemetry {
  const view = viewOf(kernel)
  checkOptions('openTelemetry(kernel, options)', options, telemetryOptions)
  const { tracerProvider, meterProvider, ...recordingPart } = options
  if (tracerProvider !== undefined && typeof tracerProvider?.getTracer !== 'function')
    throw new TypeError(
      `tracerProvider: ${String(tracerProvider)} has no getTracer; give trace.getTracerProvider() of @opentelemetry/api`,
    )
  if (meterProvider !== undefined && typeof meterProvider?.getMeter !== 'function')
    throw new TypeError(
      `meterProvider: ${String(meterProvider)} has no getMeter; give metrics.getMeterProvider() of @opentelemetry/api`,
    )
  if (tracerProvider === undefined && meterProvider === undefined) {
    throw new TypeError('openTelemetry(kernel, options): give a tracerProvider, a meterProvider, or both')
  }
  let recording: Recording | undefined
  if (tracerProvider !== undefined) {
    const origin = originOf(() => view.s.now())
    recording = record(kernel, new SpanSink(tracerProvider, origin), recordingPart)
  }
  if (meterProvider !== undefined) observeMetrics(meterProvider, () => readMetrics(view.s))
  return { stop: () => recording?.stop() }
}

interface OpenTask {
  readonly span: Span
  readonly name: string
  state: string
  since: number
  readonly spent: Record<string, number>
  switches: number
}

/** Makes a span of each task's track. */
class SpanSink implements TrackSink {
  private readonly tracer: Tracer
  private readonly origin: number
  private readonly names = new Map<number, string>()
  private readonly open = new Map<number, OpenTask>()
  private readonly contexts = new Map<string, SpanContext>()

  constructor(provider: TracerProvider, origin: number) {
    this.tracer = provider.getTracer('heddle')
    this.origin = origin
  }

  track(track: Track): void {
    if (track.kind === 'task') this.names.set(track.id, track.name)
  }

  begin(track: number, time: number, name: string, _args?: TrackArgs, _arrows?: Arrows): void {
    const task = this.taskOf(track, time)
    if (task === null) return
    this.leave(task, time)
    task.state = name.split(/[ :]/)[0]
    if (task.state === 'running') task.switches++
  }

  end(track: number, time: number): void {
    const task = this.open.get(track)
    if (task !== undefined) this.leave(task, time)
  }

  instant(track: number, time: number, name: string, args?: TrackArgs): void {
    if (name === 'spawn') this.taskOf(track, time, args?.['spawned by'])
    const task = this.open.get(track)
    if (task === undefined) return
    if (name === 'exit') this.finish(track, task, time, Number(args?.code ?? 0))
    else if (name !== 'spawn') task.span.addEvent(name, args, this.date(time))
  }

  counter(): void {}

  lost(): void {}

  close(time: number): void {
    for (const [track, task] of this.open) this.finish(track, task, time, null)
  }

  private taskOf(track: number, time: number, spawner?: string | number): OpenTask | null {
    const known = this.open.get(track)
    if (known !== undefined) return known
    const name = this.names.get(track)
    if (name === undefined) return null
    const context = this.contexts.get(String(spawner))
    const links: SpanLink[] = context === undefined ? [] : [{ context }]
    const span = this.tracer.startSpan(name, { startTime: this.date(time), links, root: true })
    if (spawner !== undefined) span.setAttribute('heddle.task.spawner', spawner)
    const task: OpenTask = { span, name, state: 'new', since: time, spent: {}, switches: 0 }
    this.open.set(track, task)
    this.contexts.set(name, span.spanContext())
    return task
  }

  private leave(task: OpenTask, time: number): void {
    task.spent[task.state] = (task.spent[task.state] ?? 0) + time - task.since
    task.since = time
  }

  private finish(track: number, task: OpenTask, time: number, code: number | null): void {
    this.leave(task, time)
    this.open.delete(track)
    this.names.delete(track)
    const seconds = (state: string): number => (task.spent[state] ?? 0) / 1e9
    task.span.setAttributes({
      'heddle.task.run_time': seconds('running'),
      'heddle.task.queue_time': seconds('runnable'),
      'heddle.task.blocked_time': seconds('blocked'),
      'heddle.task.switches': task.switches,
    })
    if (code !== null) task.span.setAttribute('heddle.task.outcome', outcomeName(code))
    if (code !== null && code !== OUTCOME_RETURNED) task.span.setStatus({ code: STATUS_ERROR })
    task.span.end(this.date(time))
  }

  private date(time: number): number {
    return this.origin + time / 1e6
  }
}

/** Names follow the semantic conventions: seconds, and units in braces for counts. */
function observeMetrics(provider: MeterProvider, read: () => Metrics): void {
  const meter = provider.getMeter('heddle')
  meter
    .createObservableGauge('heddle.run_queue.length', {
      unit: '{task}',
      description: 'Tasks queued on a CPU or running there.',
    })
    .addCallback(result => {
      for (const { cpu, load } of read().cpus) result.observe(load, { 'heddle.cpu': cpu })
    })
  meter
    .createObservableCounter('heddle.cpu.time', { unit: 's', description: 'Time that a CPU ran tasks.' })
    .addCallback(result => {
      for (const { cpu, busyTime } of read().cpus) result.observe(busyTime / 1000, { 'heddle.cpu': cpu })
    })
  for (const key of ['switches', 'preemptions', 'migrations', 'steals', 'moves', 'wakeups'] as const) {
    meter.createObservableCounter(`heddle.${key}`, { unit: `{${key.slice(0, -1)}}` }).addCallback(result => {
      for (const cpu of read().cpus) result.observe(cpu[key], { 'heddle.cpu': cpu.cpu })
    })
  }
  const quantiles = [
    ['0.5', 'p50'],
    ['0.9', 'p90'],
    ['0.99', 'p99'],
  ] as const
  meter
    .createObservableGauge('heddle.latency', { unit: 's', description: 'Quantiles of what is waited for.' })
    .addCallback(result => {
      for (const latency of read().latencies) {
        if (latency.count === 0) continue
        for (const [quantile, key] of quantiles)
          result.observe(latency[key] / 1000, { 'heddle.latency.kind': latency.name, quantile })
      }
    })
}
