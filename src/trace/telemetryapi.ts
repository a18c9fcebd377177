/**
 * The parts of @opentelemetry/api that telemetry calls. Its own types are not imported: the package is
 * optional, and the types of heddle must resolve in programs that do not have it. `kernel.test.ts` gives real
 * providers to these types.
 */
export interface TracerProvider {
  getTracer(name: string): Tracer
}

export interface MeterProvider {
  getMeter(name: string): Meter
}

export interface Tracer {
  startSpan(name: string, options?: SpanOptions): Span
}

export interface SpanOptions {
  startTime?: Date | number
  links?: SpanLink[]
  root?: boolean
  kind?: number
  attributes?: Attributes
}

export interface SpanLink {
  context: SpanContext
}

export interface SpanContext {
  traceId: string
  spanId: string
  traceFlags: number
  isRemote?: boolean
}

export interface Attributes {
  [name: string]: string | number
}

export interface Span {
  spanContext(): SpanContext
  setAttribute(name: string, value: string | number): unknown
  setAttributes(attributes: Attributes): unknown
  addEvent(name: string, attributes?: Attributes, time?: number): unknown
  setStatus(status: { code: number; message?: string }): unknown
  end(time?: Date | number): void
}

export interface Meter {
  createCounter(name: string, options?: InstrumentOptions): { add(value: number, of?: Attributes): void }
  createHistogram(name: string, options?: InstrumentOptions): { record(value: number, of?: Attributes): void }
  createObservableGauge(name: string, options?: InstrumentOptions): Observable
  createObservableCounter(name: string, options?: InstrumentOptions): Observable
}

export interface InstrumentOptions {
  description?: string
  unit?: string
}

export interface Observable {
  addCallback(observe: (result: Observation) => void): void
  removeCallback(observe: (result: Observation) => void): void
}

export interface Observation {
  observe(value: number, of?: Attributes): void
}
