import { viewOf } from '../kernel/boot/hooks.ts'
import type { Track, TrackSink } from './tracks.ts'

/** The colours of Chrome's performance panel for custom tracks. */
type PanelColour =
  | 'primary'
  | 'primary-light'
  | 'primary-dark'
  | 'secondary'
  | 'secondary-light'
  | 'secondary-dark'
  | 'tertiary'
  | 'tertiary-light'
  | 'tertiary-dark'
  | 'error'

type TimeStamp = (
  label: string,
  start: number,
  end: number,
  track: string,
  group: string,
  colour: PanelColour,
) => void

/** On the track of a CPU, tasks have these colours in turn. */
const TASK_COLOURS: readonly PanelColour[] = [
  'primary',
  'secondary',
  'tertiary',
  'primary-light',
  'secondary-light',
  'tertiary-light',
  'primary-dark',
  'secondary-dark',
  'tertiary-dark',
]

interface OpenSlice {
  readonly name: string
  readonly start: number
}

/**
 * Shows a recording of a kernel as tracks of Chrome's performance panel: `record(kernel, new
 * PerformanceTracks(kernel))`. A track a CPU and a track a task, in the group "heddle". The panel shows them
 * in each profile that is taken while the recording runs.
 */
export class PerformanceTracks implements TrackSink {
  /**
   * Whether this is a page or worker of a browser with custom tracks: Chromium 134 and later. Other browsers
   * and Node have a `console.timeStamp` that knows a label only.
   */
  static get isSupported(): boolean {
    const { userAgentData } = (globalThis.navigator ?? {}) as {
      userAgentData?: { brands?: readonly { brand: string; version: string }[] }
    }
    const chromium = userAgentData?.brands?.find(({ brand }) => brand === 'Chromium')
    return typeof stampOf() === 'function' && Number(chromium?.version ?? 0) >= CHROMIUM_WITH_TRACKS
  }

  private readonly tracks = new Map<number, Track>()
  private readonly open = new Map<number, OpenSlice[]>()
  private readonly colours = new Map<string, PanelColour>()
  private readonly stamp: TimeStamp
  /** From the kernel's clock to `performance.now()`, in milliseconds. */
  private readonly offset: number

  constructor(kernel: object) {
    const stamp = stampOf()
    if (!PerformanceTracks.isSupported || stamp === undefined)
      throw new Error(
        'new PerformanceTracks(kernel): this browser has no custom tracks in its performance panel; test `PerformanceTracks.isSupported`, or record with a ChromeWriter and open the file there',
      )
    this.stamp = stamp
    this.offset = performance.now() - viewOf(kernel).s.now()
  }

  track(track: Track): void {
    this.tracks.set(track.id, track)
  }

  begin(track: number, time: number, name: string): void {
    const start = this.pageTime(time)
    const slices = this.open.get(track)
    if (slices === undefined) this.open.set(track, [{ name, start }])
    else slices.push({ name, start })
  }

  end(track: number, time: number): void {
    const slice = this.open.get(track)?.pop()
    if (slice !== undefined) this.draw(track, slice.name, slice.start, this.pageTime(time))
  }

  instant(track: number, time: number, name: string): void {
    this.draw(track, name, this.pageTime(time), this.pageTime(time))
  }

  /** The panel has no counters. */
  counter(): void {}

  lost(time: number, count: number): void {
    const at = this.pageTime(time)
    this.stamp(`${count} events lost`, at, at, 'lost events', GROUP, 'error')
  }

  close(time: number): void {
    for (const track of this.open.keys()) while (this.open.get(track)!.length > 0) this.end(track, time)
  }

  private pageTime(ns: number): number {
    return ns / 1e6 + this.offset
  }

  private draw(id: number, name: string, start: number, end: number): void {
    const track = this.tracks.get(id)
    if (track === undefined || track.kind === 'process' || track.kind === 'counter') return
    const colour = track.kind === 'cpu' ? this.colourOf(name) : stateColour(name)
    this.stamp(name, start, end, track.name, GROUP, colour)
  }

  private colourOf(task: string): PanelColour {
    let colour = this.colours.get(task)
    if (colour === undefined) {
      colour = TASK_COLOURS[this.colours.size % TASK_COLOURS.length]
      this.colours.set(task, colour)
    }
    return colour
  }
}

const GROUP = 'heddle'
const CHROMIUM_WITH_TRACKS = 134

function stampOf(): TimeStamp | undefined {
  const { timeStamp } = console as unknown as { timeStamp?: TimeStamp }
  return timeStamp?.bind(console)
}

/** On the track of a task: its states. */
function stateColour(state: string): PanelColour {
  if (state.startsWith('running')) return 'primary'
  if (state.startsWith('runnable')) return 'tertiary-light'
  return /kill|dead|fail/.test(state) ? 'error' : 'secondary-light'
}
