/** `heddle/trace`: records, measures and shows the events and the state of a kernel. */
export { ChromeWriter } from './chrome.ts'
export { mark } from './mark.ts'
export { type Latency, type Metrics, prometheusText } from './metrics.ts'
export { openTelemetry, type Telemetry, type TelemetryOptions } from './opentelemetry.ts'
export { PerformanceTracks } from './performancetracks.ts'
export { type PerfettoOptions, PerfettoWriter, readPerfetto } from './perfetto.ts'
export {
  FlightRecorder,
  metricsOf,
  record,
  Recording,
  type RecordingOptions,
  snapshotOf,
} from './recording.ts'
export type { CpuSnapshot, KernelSnapshot, TaskSnapshot } from './snapshot.ts'
export { type CpuSummary, type Inversion, Summary, type TaskSummary, type WaitSummary } from './summary.ts'
export type { Arrows, Track, TrackArgs, TrackKind, TrackSink } from './tracks.ts'
