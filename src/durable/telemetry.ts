import { checkOptions, type Kinds } from '../coroutine/core/knownoptions.ts'
import type {
  Attributes,
  MeterProvider,
  SpanContext,
  SpanLink,
  TracerProvider,
} from '../trace/telemetryapi.ts'
import type { Durable } from './durable.ts'
import { type RunState, runStates } from './states.ts'
import type { AttemptReport } from './worker/attempt.ts'

/**
 * OpenTelemetry for durable runs, through the API package of the program. A span for each attempt of a run in
 * this process, linked to the span that started the run, which may be another machine's. The tasks of a run
 * are covered by `openTelemetry(kernel, …)` of heddle/trace.
 */
export interface RunTelemetryOptions {
  /** `trace.getTracerProvider()`; without it there are no spans. */
  readonly tracerProvider?: TracerProvider
  /** `metrics.getMeterProvider()`; without it there are no metrics. */
  readonly meterProvider?: MeterProvider
}

const telemetryOptions: Kinds<RunTelemetryOptions> = { tracerProvider: 'checked', meterProvider: 'checked' }

/** SpanKind.CONSUMER and SpanStatusCode.ERROR. The API package is not imported: the program brings it. */
const KIND_CONSUMER = 4
const STATUS_ERROR = 2

/** Returns a function that ends the telemetry. */
export function runTelemetry(durable: Durable, options: RunTelemetryOptions): () => void {
  checkOptions('runTelemetry(durable, options)', options, telemetryOptions)
  const { tracerProvider, meterProvider } = options
  if (tracerProvider === undefined && meterProvider === undefined)
    throw new TypeError('runTelemetry(durable, options): give a tracerProvider, a meterProvider, or both')
  for (const [name, provider, method] of [
    ['tracerProvider', tracerProvider, 'getTracer'],
    ['meterProvider', meterProvider, 'getMeter'],
  ] as const) {
    if (provider !== undefined && typeof (provider as any)?.[method] !== 'function')
      throw new TypeError(`${name}: ${String(provider)} has no ${method}; give that of @opentelemetry/api`)
  }
  const ends: (() => void)[] = []
  if (tracerProvider !== undefined) ends.push(durable.onAttempt(spans(tracerProvider)))
  if (meterProvider !== undefined) ends.push(counters(durable, meterProvider))
  return () => {
    for (const end of ends) end()
  }
}

function spans(provider: TracerProvider): (report: AttemptReport) => void {
  const tracer = provider.getTracer('heddle')
  return report => {
    const from = report.trace === null ? null : spanContextOf(report.trace.traceparent)
    const links: SpanLink[] = from === null ? [] : [{ context: from }]
    const attributes: Attributes = {
      ...attributesOf(report),
      'heddle.run.id': report.run,
      'heddle.run.epoch': report.epoch,
      'heddle.run.attempt': report.attempt,
      'heddle.run.checkpoints': report.checkpoints,
    }
    const startTime = new Date(report.began)
    const span = tracer.startSpan(report.name, {
      startTime,
      links,
      root: true,
      kind: KIND_CONSUMER,
      attributes,
    })
    if (report.end === 'failed' || report.end === 'fenced')
      span.setStatus({ code: STATUS_ERROR, message: report.end })
    span.end(new Date(report.ended))
  }
}

function counters(durable: Durable, provider: MeterProvider): () => void {
  const meter = provider.getMeter('heddle')
  const attempts = meter.createCounter('heddle.runs.attempts', {
    description: 'Attempts of runs that ended in this process, by the state that they left the run in.',
  })
  const time = meter.createHistogram('heddle.runs.attempt.duration', {
    description: 'From the claim of a run until it ended or left.',
    unit: 's',
  })
  const bytes = meter.createCounter('heddle.runs.checkpoint.bytes', {
    description: 'Bytes of checkpoints, compressed.',
    unit: 'By',
  })
  const running = meter.createObservableGauge('heddle.runs.running', {
    description: 'Runs that this process has now.',
  })
  const observe = (result: { observe(value: number): void }): void => result.observe(durable.running.length)
  running.addCallback(observe)
  const stop = durable.onAttempt(report => {
    const attributes = attributesOf(report)
    attempts.add(1, attributes)
    time.record((report.ended - report.began) / 1000, attributes)
    if (report.checkpointBytes > 0) bytes.add(report.checkpointBytes, { queue: report.queue })
  })
  return () => {
    running.removeCallback(observe)
    stop()
  }
}

function attributesOf({ queue, function: fn, end }: AttemptReport): Attributes {
  return { queue, function: fn, end }
}

/** Null: the text is no trace parent. */
function spanContextOf(traceparent: string | undefined): SpanContext | null {
  const match = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})/.exec(traceparent ?? '')
  if (match === null) return null
  const [, traceId, spanId, flags] = match
  return { traceId: traceId!, spanId: spanId!, traceFlags: Number.parseInt(flags!, 16), isRemote: true }
}

/** How many runs of a database are in each state, for a page of metrics. */
export async function runsText(durable: Durable): Promise<string> {
  const counts = await durable.counts()
  const lines = ['# HELP heddle_runs Durable runs by queue and state.', '# TYPE heddle_runs gauge']
  for (const [queue, states] of counts) {
    for (const state of runStates)
      lines.push(
        `heddle_runs{queue="${queue}",state="${state}"} ${(states as Record<RunState, number>)[state] ?? 0}`,
      )
  }
  return `${lines.join('\n')}\n`
}
