/**
 * A trace as a viewer shows it: tracks with slices, instants and counters, and arrows between them. The
 * timeline makes it from the kernel's events. The writers (perfetto.ts, chrome.ts), the summary and the
 * reader of a file use it, so every written trace can be converted and summarised.
 */
export type TrackKind = 'process' | 'cpu' | 'task' | 'thread' | 'counter'

export interface Track {
  /** 1 or more; unique in the trace. */
  readonly id: number
  readonly kind: TrackKind
  readonly name: string
  /** The parent track, or 0. */
  readonly parent: number
  /** The unit of a counter. */
  readonly unit?: string
}

export type TrackArgs = Readonly<Record<string, string | number>>

/** Arrows by number, with a start and an end. */
export interface Arrows {
  readonly starts?: readonly number[]
  readonly ends?: readonly number[]
}

/** Times are whole nanoseconds since the kernel's clock started. */
export interface TrackSink {
  track(track: Track): void
  /** A slice begins. The arrows `starts` begin here, the arrows `ends` end here. */
  begin(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void
  /** The innermost open slice ends. */
  end(track: number, time: number, args?: TrackArgs): void
  /** An event without duration. */
  instant(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void
  counter(track: number, time: number, value: number): void
  /** Missing events so far. */
  lost(time: number, count: number): void
  /** The end of the trace. */
  close(time: number): void
}
