import { checkWriter } from './checkwriter.ts'
import type { Arrows, Track, TrackArgs, TrackSink } from './tracks.ts'

/**
 * The JSON of Chrome's DevTools and about:tracing, one event a line. Tracks become threads of one process; an
 * arrow is a pair of flow events. The format allows the closing bracket to be missing, so a file that is cut
 * off can be read.
 */
export class ChromeWriter implements TrackSink {
  private readonly write: (text: string) => void
  private readonly counters = new Map<number, string>()
  private readonly pid: number
  private pieces: string[] = []
  private size = 0
  private first = true

  constructor(write: (text: string) => void, options: { readonly pid?: number } = {}) {
    checkWriter('new ChromeWriter', write, options)
    this.write = write
    this.pid = options.pid ?? 1
  }

  track(track: Track): void {
    if (track.kind === 'counter') {
      this.counters.set(track.id, track.name)
      return
    }
    const isProcess = track.kind === 'process'
    this.line({
      ph: 'M',
      name: isProcess ? 'process_name' : 'thread_name',
      tid: isProcess ? 0 : track.id,
      args: { name: track.name },
    })
    if (isProcess) return
    const sort_index = (track.kind === 'cpu' ? 0 : track.kind === 'thread' ? 1 << 20 : 1 << 21) + track.id
    this.line({ ph: 'M', name: 'thread_sort_index', tid: track.id, args: { sort_index } })
  }

  begin(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void {
    this.line({ ph: 'B', ts: time / 1000, tid: track, name, cat: 'heddle', args })
    this.arrows(track, time, arrows)
  }

  end(track: number, time: number, args?: TrackArgs): void {
    this.line({ ph: 'E', ts: time / 1000, tid: track, args })
  }

  instant(track: number, time: number, name: string, args?: TrackArgs, arrows?: Arrows): void {
    this.line({ ph: 'i', s: 't', ts: time / 1000, tid: track, name, cat: 'heddle', args })
    this.arrows(track, time, arrows)
  }

  counter(track: number, time: number, value: number): void {
    const name = this.counters.get(track) ?? `counter ${track}`
    this.line({ ph: 'C', ts: time / 1000, tid: 0, name, args: { value } })
  }

  lost(time: number, count: number): void {
    this.line({
      ph: 'i',
      s: 'p',
      ts: time / 1000,
      tid: 0,
      name: 'events lost',
      cat: 'heddle',
      args: { count },
    })
  }

  close(): void {
    this.text(this.first ? '[]\n' : '\n]\n')
    this.flush()
  }

  private arrows(track: number, time: number, arrows: Arrows | undefined): void {
    const flow = { ts: time / 1000, tid: track, name: 'flow', cat: 'heddle' }
    for (const id of arrows?.starts ?? []) this.line({ ph: 's', ...flow, id })
    for (const id of arrows?.ends ?? []) this.line({ ph: 'f', bp: 'e', ...flow, id })
  }

  private line(event: Record<string, unknown>): void {
    this.text(`${this.first ? '[\n' : ',\n'}${JSON.stringify({ pid: this.pid, ...event })}`)
    this.first = false
  }

  private text(text: string): void {
    this.pieces.push(text)
    this.size += text.length
    if (this.size >= 1 << 16) this.flush()
  }

  private flush(): void {
    if (this.size > 0) this.write(this.pieces.join(''))
    this.pieces = []
    this.size = 0
  }
}
