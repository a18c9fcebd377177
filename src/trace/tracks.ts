/**
 * A trace as people look at it: tracks with slices, instants, counters and arrows between them. The timeline
 * makes it from the kernel's events; the writers (perfetto.ts, chrome.ts), the summary, and the reader of a
 * file all speak it, so whatever can be written can be converted and summarised.
 */
export type TrackKind = 'process' | 'cpu' | 'task' | 'thread' | 'counter'

export interface Track {
  /** 1 or more; unique in the trace. */
  readonly id: number
  readonly kind: TrackKind
  readonly name: string
  /** The track that it belongs under, or 0. */
  readonly parent: number
  /** Counters: what is counted. */
  readonly unit?: string
}

export type TrackArgs = Readonly<Record<string, string | number>>

/** Arrows by number: from where it starts to where it ends. */
export interface Arrows {
  readonly starts?: readonly number[]
  readonly ends?: readonly number[]
}

/** Times are nanoseconds, whole, since the kernel's clock started. */
export interface TrackSink {
  track(track: Track): void
  /** A slice begins; so do the arrows `starts`, and the arrows `ends` end here. */
  begin(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void
  /** The innermost slice that is open ends. */
  end(track: number, time: number, args?: TrackArgs): void
  /** Something at a moment. */
  instant(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void
  counter(track: number, time: number, value: number): void
  /** Events that are missing from the trace, so far. */
  lost(time: number, count: number): void
  /** No more comes. */
  close(time: number): void
}
